"""A judge that allows 60 requests a minute, behind verl's reward loop with 8 worker processes, in real time.

    .venv-trainers/bin/python benchmarks/verl_rate.py [--rows 90] [--workers 8]

The same rows, on the same server, through a real RewardLoopManager: once with plaudit's RewardManager, once
with verl's own `rate_limited`, which is told the same limit and calls the judge by a reward function as
users write it. Then eight identical rows. Needs verl, Ray and torch; takes two to three minutes, one of which
is the minute that the server's limit lasts.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import table
from simulated import Simulator, simulators

from plaudit.simulator import Latency, Rate, Scenario, ideal_makespan

LIMIT = 60
CALL_S = 0.6
SERVER = Scenario(
    capacity=Rate(per_second=LIMIT / 60, window=60.0, hints="retry-after"),
    latency=Latency(mean_tokens=20, sigma=0.0, seconds_per_token=0.0, first_token=CALL_S, round_trip=0.0),
)
GOAL = 1.10
QUESTION = "What is 7 times 8?"
WIDTH = 8


REWARD_FUNCTION = """
import aiohttp


async def ask_judge(solution_str, url, **_):
    if not solution_str:
        return 0.0
    body = {"model": "simulated", "messages": [{"role": "user", "content": "Is it right? " + solution_str}]}
    async with aiohttp.ClientSession() as session:
        async with session.post(url + "/chat/completions", json=body) as reply:
            reply.raise_for_status()
            await reply.json()
    return 1.0
"""
"""What users of verl's `rate_limited` write: one call, and its score. verl loads it from a file."""


@dataclass(frozen=True, slots=True)
class Ran:
    """What one manager did with a batch."""

    seconds: float
    requests: int
    rejected: int
    busiest: int
    """Most requests that left within one minute."""
    judged: int


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=90)
    parser.add_argument("--workers", type=int, default=8)
    options = parser.parse_args()
    import ray

    os.environ["HF_HUB_OFFLINE"] = "1"
    with tempfile.TemporaryDirectory(prefix="plaudit-bench-") as folder, simulators([SERVER]) as (server,):
        os.environ["PLAUDIT_HOME"] = folder
        ray.init(
            "local",
            num_cpus=options.workers,
            include_dashboard=False,
            log_to_driver=False,
            logging_level="error",
        )
        try:
            ran, twins = measure(server, folder, options.rows, options.workers)
        finally:
            ray.shutdown()
    return report(ran, twins, options)


def measure(server: Simulator, folder: str, rows: int, workers: int) -> tuple[dict[str, Ran], dict[str, int]]:
    tokenizer = save_tokenizer(folder, rows)
    function = Path(folder) / "reward_function.py"
    function.write_text(REWARD_FUNCTION, encoding="utf-8")
    ran, twins = {}, {}
    for name, reward in managers(server.url, function).items():
        manager, end = started(folder, workers, reward)
        manager.compute_rm_score(
            batch(tokenizer, [""] * workers)
        )  # imports and connections are not the limit's
        server.become(SERVER)
        ran[name] = run(manager, server, batch(tokenizer, [f"answer {number}" for number in range(rows)]))
        server.become(Scenario(latency=SERVER.latency))
        manager.compute_rm_score(batch(tokenizer, ["answer"] * 8))
        twins[name] = server.stats()["requests"]
        print(f"{name}: {ran[name]}, {twins[name]} calls for 8 twins", file=sys.stderr, flush=True)
        end()
    return ran, twins


def managers(url: str, function: Path) -> dict[str, dict[str, Any]]:
    """Reward sections of a configuration, by name."""
    return {
        "plaudit": {
            "reward_manager": {
                "source": "importlib",
                "name": "RewardManager",
                "module": {"path": "pkg://plaudit.integrations.verl"},
            },
            "plaudit": {
                "base_url": url,
                "model": "simulated",
                "rpm": LIMIT,
                "cache": "memory",
                "rule": "off",
            },
        },
        "verl rate_limited": {
            "reward_manager": {"source": "register", "name": "rate_limited"},
            "custom_reward_function": {
                "path": str(function),
                "name": "ask_judge",
                "reward_kwargs": {"url": url},
            },
            "max_rpm": LIMIT,
            "max_concurrent": 64,
        },
    }


def run(manager: Any, server: Simulator, data: Any) -> Ran:
    began = time.monotonic()
    result = manager.compute_rm_score(data)
    seconds = time.monotonic() - began
    stats = server.stats()
    arrivals = {int(second): count for second, count in stats["arrivals"].items()}
    busiest = max(sum(arrivals.get(at + offset, 0) for offset in range(60)) for at in arrivals)
    columns = result.non_tensor_batch
    lost = (
        columns["plaudit/judge_valid"] == 0.0 if "plaudit/judge_valid" in columns else columns["acc"] == 0.0
    )
    return Ran(seconds, stats["requests"], stats["rejected"], busiest, len(data) - int(lost.sum()))


# -- verl ----------------------------------------------------------------------------------------------------


def started(folder: str, workers: int, reward: dict[str, Any]) -> tuple[Any, Any]:
    """A RewardLoopManager with its workers, and what ends them."""
    import ray
    import verl
    from omegaconf import OmegaConf
    from verl.experimental.reward_loop.reward_loop import RewardLoopManager

    shipped = OmegaConf.load(Path(verl.__file__).parent / "trainer" / "config" / "reward" / "reward.yaml")
    rollout = {"n": 1, "val_kwargs": {"n": 1}, "multi_turn": {}}
    actor = {"model": {"path": folder, "tokenizer_path": folder}, "rollout": rollout}
    merged = OmegaConf.merge(shipped, {"num_workers": workers}, reward)
    manager = RewardLoopManager(OmegaConf.create({"actor_rollout_ref": actor, "reward": merged}))

    def end() -> None:
        for worker in manager.reward_loop_workers:
            ray.kill(worker)
        time.sleep(1.0)

    return manager, end


def save_tokenizer(folder: str, rows: int) -> Any:
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = ["<pad>", "<eos>", "<unk>", "answer", *(str(number) for number in range(rows))]
    raw = Tokenizer(models.WordLevel({word: number for number, word in enumerate(words)}, unk_token="<unk>"))
    raw.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    special = {"pad_token": "<pad>", "eos_token": "<eos>", "unk_token": "<unk>"}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=raw, **special)
    tokenizer.save_pretrained(folder)
    return tokenizer


def batch(tokenizer: Any, responses: list[str]) -> Any:
    import numpy as np
    import torch
    from verl import DataProto

    count = len(responses)
    answers = torch.zeros(count, WIDTH, dtype=torch.long)
    mask = torch.zeros(count, 2 + WIDTH, dtype=torch.long)
    mask[:, :2] = 1
    for row, text in enumerate(responses):
        ids = tokenizer.encode(text)
        answers[row, : len(ids)] = torch.tensor(ids, dtype=torch.long)
        mask[row, 2 : 2 + len(ids)] = 1
    columns: dict[str, list[Any]] = {
        "uid": [f"u{row}" for row in range(count)],
        "data_source": ["benchmark"] * count,
        "reward_model": [{"ground_truth": "56"}] * count,
        "extra_info": [{"index": row} for row in range(count)],
        "raw_prompt": [[{"role": "user", "content": QUESTION}]] * count,
    }
    non_tensors = {}
    for name, values in columns.items():
        non_tensors[name] = np.empty(count, dtype=object)
        non_tensors[name][:] = values
    tensors = {"prompts": torch.full((count, 2), 3), "responses": answers, "attention_mask": mask}
    return DataProto.from_dict(tensors=tensors, non_tensors=non_tensors)


def report(ran: dict[str, Ran], twins: dict[str, int], options: argparse.Namespace) -> int:
    ideal = ideal_makespan(SERVER, [CALL_S] * options.rows)
    rows = [
        (
            name,
            str(one.busiest),
            str(one.rejected),
            f"{one.judged} of {options.rows}",
            f"{one.seconds:.1f}",
            f"{one.seconds / ideal:.2f}" if one.judged == options.rows else "-",
            str(twins[name]),
        )
        for name, one in ran.items()
    ]
    table.show(
        f"{options.rows} rows through a RewardLoopManager with {options.workers} workers, on a server that "
        f"allows {LIMIT} requests a minute; ideal {ideal:.1f} s "
        f"(verl {version('verl')}, ray {version('ray')})",
        (
            "manager",
            "sent in the busiest minute",
            "turned away",
            "judged",
            "seconds",
            "over ideal",
            "calls for 8 twins",
        ),
        rows,
    )
    ours = ran["plaudit"]
    is_met = (
        ours.busiest <= LIMIT
        and ours.judged == options.rows
        and ours.seconds <= GOAL * ideal
        and twins["plaudit"] == 1
    )
    print(
        "met" if is_met else "MISSED",
        f"(goal: {LIMIT} a minute at most, within {GOAL:.2f} of the ideal, one call)",
    )
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main())
