"""Rewards and advantages of a batch by the verl that is first on the path, as JSON: for test_versions.py.

python version_training.py legacy|loop JUDGE_URL
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
import transformers

from plaudit.errors import BatchFailed

# verl 0.6 and 0.7.0 ask for the name that transformers 4 had for it.
transformers.AutoModelForVision2Seq = transformers.AutoModelForImageTextToText

GROUPS, SIZE = 10, 8
UIDS = [f"g{row % GROUPS}" for row in range(GROUPS * SIZE)]


def legacy(url: str) -> tuple[Any, Any, list[float], list[float]]:
    """By the old managers, loaded and called with verl's own functions."""
    import legacy_data
    from omegaconf import OmegaConf
    from verl.trainer.ppo.reward import compute_reward, load_reward_manager

    import plaudit.integrations.verl.legacy_names  # noqa: F401 - as docs/verl-legacy.md has it

    config = OmegaConf.create(
        {
            "reward_model": {"reward_manager": "length_penalty", "sandbox_fusion": {"url": None}},
            "reward_manager": {
                "source": "importlib",
                "name": "LengthPenaltyRewardManager",
                "module": {"path": "pkg://plaudit.integrations.verl"},
            },
            "data": {"reward_fn_key": "data_source"},
            "custom_reward_function": {"path": None},
        }
    )
    table = {"api_endpoint": url, "model_name": "m", "enable": False, "enable_rule": False, "cache": None}
    nowhere = {**table, "api_endpoint": f"{url}/nowhere"}
    with pytest.raises(BatchFailed, match="will never answer"):  # before anything is generated
        load_reward_manager(config, legacy_data.Letters(), 0, length_penalty_config=nowhere)
    manager = load_reward_manager(config, legacy_data.Letters(), 0, length_penalty_config=table)
    data = legacy_data.batch([f"It is {row}." for row in range(len(UIDS))], uids=UIDS)
    tensor, extra = compute_reward(data, manager)
    return data, tensor, list(extra["plaudit/judge"]), list(extra["plaudit/valid"])


def loop(url: str) -> tuple[Any, Any, list[float], list[float]]:
    """By the reward loop with two workers on Ray."""
    import ray
    from verl.experimental.reward_loop.reward_loop import RewardLoopManager
    from verl.utils import hf_tokenizer
    from verl_batches import batch, configuration, save_tokenizer

    with tempfile.TemporaryDirectory() as folder:
        tokens = save_tokenizer(Path(folder))
        ray.init("local", num_cpus=4, include_dashboard=False, log_to_driver=False)
        table = {"base_url": url, "cache": "memory", "rule": "off"}
        manager = RewardLoopManager(configuration(tokens, n=SIZE, plaudit=table))
        data = batch(hf_tokenizer(folder), [f"answer {row}" for row in range(len(UIDS))], uid=UIDS)
        result = manager.compute_rm_score(data)
        ray.shutdown()
    columns = result.non_tensor_batch
    judged = columns["plaudit/judge"].tolist()
    return data, result.batch["rm_scores"], judged, columns["plaudit/judge_valid"].tolist()


def main(way: str, url: str) -> None:
    import numpy as np
    import verl
    from verl.trainer.ppo.core_algos import compute_grpo_outcome_advantage

    data, tensor, judged, valid = {"legacy": legacy, "loop": loop}[way](url)
    mask = data.batch["attention_mask"][:, -tensor.shape[1] :]
    advantages, _ = compute_grpo_outcome_advantage(tensor, mask, np.array(UIDS, dtype=object))
    rows = zip(UIDS, valid, judged, tensor.sum(dim=1).tolist(), advantages[:, 0].tolist(), strict=True)
    print("FOUND", json.dumps({"version": verl.__version__, "rows": list(rows)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
