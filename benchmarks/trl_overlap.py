"""What overlap() saves of a step of TRL's GRPOTrainer and RLOOTrainer.

    .venv-trainers/bin/python benchmarks/trl_overlap.py [--steps 12] [--judge 0.6]

A real trainer, a random policy, a simulated judge in a process of its own (log-normal calls, as many at once
as there are completions). Every other step is overlapped, in one and the same run, so that other load on the
machine falls on both alike. The first step of each kind is left out. On a GPU with a policy of some size:

    benchmarks/trl_overlap.py --hidden 2048 --layers 24 --rows 128 --tokens 256
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import table
import torch
import transformers
import trl
from datasets import Dataset
from simulated import simulators
from tiny_policy import save_tiny_policy

from plaudit import Rubric
from plaudit.integrations.trl import overlap, reward_function
from plaudit.simulator import Latency, Queue, Scenario

GENERATIONS = 8
GOAL = 0.8
"""Of what could be hidden (the wait, or the log-probs where they are shorter), this share is."""


def now() -> float:
    """The time once the GPU has done what it was given."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter()


def switched(trainer_class: Any) -> Any:
    """The trainer with every other step overlapped, and a note of what each took."""
    overlapped = overlap(trainer_class)

    class Switched(overlapped):  # type: ignore[misc, valid-type]
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            self.took: list[dict[str, float]] = []

        def _generate(self, prompts: Any) -> Any:
            chosen = overlapped if self.state.global_step % 2 else trainer_class
            generated = chosen._generate(self, prompts)
            self.generated_at = now()
            return generated

        def _calculate_rewards(self, *args: Any) -> Any:
            start = now()
            rewards = super()._calculate_rewards(*args)
            self.took[-1] |= {
                "logprobs": start - self.generated_at,
                "wait": now() - start,
            }
            return rewards

        def training_step(self, *args: Any, **options: Any) -> Any:
            self.took.append({"overlapped": float(self.state.global_step % 2)})
            start = now()
            loss = super().training_step(*args, **options)
            self.took[-1]["step"] = now() - start
            return loss

    Switched.__name__ = trainer_class.__name__
    return Switched


def train(
    trainer_class: Any, config: Any, policy: str, url: str, options: argparse.Namespace, folder: str
) -> list[dict[str, float]]:
    """One run; what each step took."""
    judge = Rubric("Is it correct and brief?", scale=(0, 10))
    prompts = [f"Tell me what you know about the number {number}." for number in range(options.rows)]
    trainer = switched(trainer_class)(
        model=policy,
        reward_funcs=reward_function(judge, url=url, model="simulated", cache=None),
        args=config(
            output_dir=folder,
            max_steps=options.steps,
            per_device_train_batch_size=options.rows,
            num_generations=GENERATIONS,
            max_completion_length=options.tokens,
            beta=0.04,  # so that there are reference log-probs to compute
            num_iterations=1,
            logging_steps=options.steps,
            save_strategy="no",
            report_to=[],
            use_cpu=not torch.cuda.is_available(),
            bf16=torch.cuda.is_available(),
            model_init_kwargs={"dtype": "bfloat16" if torch.cuda.is_available() else "float32"},
            disable_tqdm=True,
        ),
        train_dataset=Dataset.from_dict({"prompt": prompts}),
    )
    trainer.train()
    return list(trainer.took)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--judge", type=float, default=0.6, help="seconds of an average call")
    parser.add_argument("--hidden", type=int, default=256, help="width of the policy")
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--rows", type=int, default=32, help="completions a step")
    parser.add_argument("--tokens", type=int, default=64, help="the longest completion")
    parser.add_argument("--trainers", nargs="+", choices=("GRPO", "RLOO"), default=["GRPO", "RLOO"])
    options = parser.parse_args()
    transformers.logging.set_verbosity_error()
    server = Scenario(latency=Latency().scaled_to(options.judge), capacity=Queue(slots=options.rows))
    rows, misses = [], 0
    with tempfile.TemporaryDirectory() as folder, simulators([server]) as (judge,):
        policy = save_tiny_policy(f"{folder}/policy", hidden=options.hidden, layers=options.layers)
        for name in options.trainers:
            trainer_class, config = getattr(trl, f"{name}Trainer"), getattr(trl, f"{name}Config")
            took = train(trainer_class, config, policy, judge.url, options, folder)[2:]
            medians = [
                {
                    part: statistics.median(step[part] for step in took if step["overlapped"] == kind)
                    for part in ("step", "logprobs", "wait")
                }
                for kind in (0.0, 1.0)
            ]
            ratio = statistics.median(
                b["step"] / a["step"] for a, b in zip(took[::2], took[1::2], strict=False)
            )
            before, after = medians
            hidden = (before["wait"] - after["wait"]) / min(before["wait"], after["logprobs"])
            misses += hidden < GOAL
            for words, found in zip(("without", "with overlap"), medians, strict=True):
                seconds = [f"{found[part]:.2f} s" for part in ("logprobs", "wait", "step")]
                seconds.append(f"{found['wait'] / found['step']:.1%}")
                shares = (f"{ratio:.2f}", f"{hidden:.0%}") if words != "without" else ("", "")
                rows.append((trainer_class.__name__, words, *seconds, *shares))
    table.show(
        f"TRL {trl.__version__}, {options.rows} completions of up to {options.tokens} tokens, a judge of "
        f"{options.judge:g} s a call, median of {(options.steps - 2) // 2} steps each",
        ("trainer", "", "log-probs", "wait for rewards", "step", "share waited", "ratio of steps", "hidden"),
        rows,
    )
    return 1 if misses else 0


if __name__ == "__main__":
    sys.exit(main())
