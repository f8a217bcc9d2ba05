"""One rank of a GRPO training: `rank_training.py POLICY FOLDER OPTIONS`, with the variables of torchrun."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any


def main(policy: str, folder: str, options: dict[str, Any]) -> None:
    import torch
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    from plaudit import Rubric
    from plaudit.errors import BatchFailed
    from plaudit.integrations.trl import reward_function

    torch.set_num_threads(1)
    kept: dict[str, Any] = {"rewards": [], "advantages": []}

    class Keeping(GRPOTrainer):  # type: ignore[misc]
        def _calculate_rewards(self, *args: Any) -> Any:
            rewards = super()._calculate_rewards(*args)  # of all ranks
            kept["rewards"].append(rewards[:, 0].tolist())
            return rewards

        def _generate_and_score_completions(self, inputs: Any) -> Any:
            output = super()._generate_and_score_completions(inputs)
            kept["advantages"].append(output["advantages"].tolist())  # of this rank
            return output

    rank = int(os.environ["RANK"])
    urls, steps = options.pop("urls"), options.pop("steps", 1)
    trainer = Keeping(
        model=policy,
        reward_funcs=reward_function(
            Rubric("Is it correct and brief?", scale=(0, 10)),
            url=urls[rank % len(urls)],
            model="m",
            **options,
        ),
        args=GRPOConfig(
            output_dir=f"{folder}/{rank}",
            max_steps=steps,
            per_device_train_batch_size=4,
            num_generations=8,  # so that the group lies across both ranks
            max_completion_length=8,
            report_to=[],
            save_strategy="no",
            use_cpu=True,
            bf16=False,
            disable_tqdm=True,
            seed=1,
        ),
        train_dataset=Dataset.from_dict({"prompt": [f"What is {number} + 2?" for number in range(16)]}),
    )
    try:
        trainer.train()
    except BatchFailed:
        kept["raised"] = "BatchFailed"
    Path(folder, f"rank{rank}.json").write_text(json.dumps(kept), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], json.loads(sys.argv[3]))
    os._exit(0)  # all is written, and torch's native threads may crash at interpreter exit
