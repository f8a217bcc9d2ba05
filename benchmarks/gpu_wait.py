"""How long a GPU waits for its judge, in a GRPO step: one call at a time, by threads, in a batch, overlapped.

    python benchmarks/gpu_wait.py --out results                                # on a GPU: ten minutes
    python benchmarks/gpu_wait.py --size tiny --responses 20 --longest 64      # anywhere: that it works

Every way does the same work, that of examples/grpo.py: 100 responses of 32 to 512 tokens, their old and
reference log-probs, and one update. Only the lengths are forced, drawn from a seed, the same for every way.
The judge is simulated in a process of its own: log-normal calls of 0.6 s on average; with so many slots it
works on so many calls at once, and lets the others wait. The engine is told nothing about it.
"""

from __future__ import annotations

import argparse
import copy
import gc
import json
import os
import platform
import random
import statistics
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

import torch
import transformers
from simulated import Simulator, simulators

from plaudit import Engine, Pending, Rubric, Sample, Verdict
from plaudit.simulator import Latency, Queue, Scenario

sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))
from grpo import SIZES, Overlap, Settings, Step, Trainer, new_model

GOAL = 0.02
"""The most of a step that the GPU may wait, on-policy, with a, b and c."""
ZERO_S = 0.005
"""Seconds of wait that count as none."""


@dataclass(frozen=True, slots=True)
class Way:
    """One way of getting the verdicts."""

    key: str
    name: str
    overlap: str = "none"
    threads: int = 0
    """Callers, each with one call at a time, instead of a batch; 0: a batch."""


WAYS = (
    Way("one", "one at a time", threads=1),
    Way("threads", "8 threads", threads=8),
    Way("batch", "one batch after generation"),
    Way("b", "b: behind log-probs", "b"),
    Way("c", "c: update by arrival", "c"),
    Way("a", "a: streamed", "a"),
    Way("ab", "a+b: streamed, behind log-probs", "ab"),
    Way("abc", "a+b+c", "abc"),
    Way("d", "d: one step off-policy", "d"),
)


@dataclass(frozen=True, slots=True)
class Row:
    """One way on one server, measured."""

    way: str
    slots: int
    waits: tuple[float, ...]
    """Seconds of GPU wait in each step."""
    totals: tuple[float, ...]
    """Seconds of each step."""
    calls_per_response: float

    @property
    def share(self) -> float:
        return sum(self.waits) / sum(self.totals)

    def cells(self) -> tuple[str, ...]:
        span = f"{min(self.waits):.2f} to {max(self.waits):.2f}" if len(self.waits) > 1 else ""
        return (
            self.way,
            str(self.slots),
            f"{statistics.fmean(self.waits):.3f}",
            span,
            f"{statistics.fmean(self.totals):.2f}",
            f"{100 * self.share:.2f}%",
            f"{self.calls_per_response:.2f}",
            str(len(self.waits)),
        )


HEADER = ("way", "slots", "GPU wait, s", "range", "step, s", "wait share", "calls a response", "steps")


class Callers:
    """Threads that score one response at a time: how it is done without a batch. Stands in for the engine."""

    def __init__(self, engine: Engine, threads: int) -> None:
        self._engine = engine
        self._threads = threads

    def submit(self, samples: Sequence[Sample], judge: Rubric) -> Pending:
        return cast(Pending, _Called(self._engine, samples, judge, self._threads))


@dataclass(frozen=True, slots=True)
class _Called:
    """Nothing happens before the result is asked for."""

    engine: Engine
    samples: Sequence[Sample]
    judge: Rubric
    threads: int

    def result(self) -> list[Verdict]:
        def score(sample: Sample) -> Verdict:
            return self.engine.score([sample], self.judge)[0]

        if self.threads == 1:
            return [score(sample) for sample in self.samples]
        with ThreadPoolExecutor(self.threads) as pool:
            return list(pool.map(score, self.samples))


class Lengths:
    """Lengths of responses, the same for every way."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options

    def __call__(self, step: int) -> list[int]:
        chance = random.Random(f"{self._options.seed}/{step}")
        shortest, longest = self._options.shortest, self._options.longest
        return [chance.randint(shortest, longest) for _ in range(self._options.responses)]


def measure(way: Way, policy: Any, judge: Simulator, options: argparse.Namespace, *, slots: int) -> Row:
    """Some steps of GRPO, with an engine that is new to the server."""
    overlap = Overlap.of(way.overlap)
    repeats = 1 if way.threads == 1 else options.repeats
    judge.reset()
    with tempfile.TemporaryDirectory() as home:
        os.environ["PLAUDIT_HOME"] = home  # no limit learned earlier
        with Engine(judge.url, model="simulated", cache="memory") as engine:
            scorer = Callers(engine, way.threads) if way.threads else engine
            trainer = Trainer(policy, scorer, overlap, settings_of(options), lengths_of=Lengths(options))
            # With d the last step has no generation left in it, and is no measure.
            steps: list[Step] = list(trainer.train(repeats + overlap.ahead))[:repeats]
    if failed := sum(step.failed for step in steps):
        raise RuntimeError(f"{way.name}: {failed} responses have no verdict")
    asked = options.responses * (repeats + overlap.ahead)
    return Row(
        way.name,
        slots,
        tuple(step.wait_s for step in steps),
        tuple(step.seconds for step in steps),
        judge.stats()["requests"] / asked,
    )


def settings_of(options: argparse.Namespace) -> Settings:
    return Settings(
        prompts=options.responses // options.group,
        group=options.group,
        prompt_tokens=64,
        max_tokens=options.longest,
        learning_rate=1e-6,
        seed=options.seed,
    )


def warm_up(policy: Any, judge: Simulator, options: argparse.Namespace) -> None:
    """One short step, so that no way pays for what the first step of a process has to load."""
    short = argparse.Namespace(**{**vars(options), "longest": options.shortest, "repeats": 1})
    measure(Way("warm-up", "warm-up", "abc"), policy, judge, short, slots=0)


def page(rows: Sequence[Row], facts: dict[str, str], said: Sequence[str]) -> str:
    """The table in Markdown, with what it was measured on."""
    lines = ["# How long the GPU waits for the judge", ""]
    lines += [f"- {name}: {value}" for name, value in facts.items()]
    lines += ["", "| " + " | ".join(HEADER) + " |", "|---|" + "---:|" * (len(HEADER) - 1)]
    lines += ["| " + " | ".join(row.cells()) + " |" for row in rows]
    lines += ["", *said, ""]
    return "\n".join(lines)


def goals(rows: Sequence[Row]) -> list[str]:
    """Whether each goal is met, in words. They are goals for a GPU and a model of a real size."""
    said = []
    for row in rows:
        if row.way == "a+b+c":
            verdict = "met" if row.share < GOAL else "NOT MET"
            said.append(
                f"Goal with {row.slots} slots: {row.way} under {GOAL:.0%}: {row.share:.2%}, {verdict}."
            )
        if row.way.startswith("d"):
            verdict = "met" if max(row.waits) < ZERO_S else "NOT MET"
            said.append(f"Goal with {row.slots} slots: d none: {max(row.waits):.4f} s at most, {verdict}.")
    return said


def facts_of(policy: Any, options: argparse.Namespace) -> dict[str, str]:
    is_gpu = options.device.startswith("cuda")
    device = torch.cuda.get_device_name() if is_gpu else platform.processor()
    words = [word for word in sys.argv[1:] if word not in ("--out", str(options.out))]
    count = sum(weight.numel() for weight in policy.parameters())
    return {
        "device": device or "CPU",
        "software": f"Python {platform.python_version()}, torch {torch.__version__}, "
        f"transformers {transformers.__version__}",
        "model": f"{count:,} parameters, random weights, {options.dtype}"
        + (", matrix products in TF32" if is_gpu and options.dtype == "float32" else ""),
        "step": f"{options.responses} responses in groups of {options.group}, {options.shortest} to "
        f"{options.longest} tokens, seed {options.seed}; old and reference log-probs; one update",
        "judge": f"simulated in its own process, log-normal calls of {options.call_seconds} s on average, "
        f"{' or '.join(map(str, options.slots))} at once, the others wait; one at a time measured once",
        "command": f"python benchmarks/gpu_wait.py {' '.join(words)}".strip(),
    }


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--size", choices=SIZES, default="0.6b")
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--responses", type=int, default=100)
    parser.add_argument("--group", type=int, default=10)
    parser.add_argument("--shortest", type=int, default=32)
    parser.add_argument("--longest", type=int, default=512)
    parser.add_argument("--call-seconds", type=float, default=0.6)
    parser.add_argument("--slots", type=int, nargs="+", default=[10, 64])
    parser.add_argument("--repeats", type=int, default=3, help="steps measured for each way")
    ways = [way.key for way in WAYS]
    parser.add_argument("--ways", nargs="+", choices=ways, default=ways, help="what to measure (all)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="folder for gpu_wait.md and gpu_wait.json")
    return parser.parse_args()


def main() -> int:
    options = arguments()
    torch.set_float32_matmul_precision("high")
    if options.size == "tiny":
        torch.set_num_threads(1)  # so little work is done sooner by one
    policy = new_model(options.size, device=options.device, dtype=getattr(torch, options.dtype))
    weights = copy.deepcopy(policy.state_dict())
    facts = facts_of(policy, options)
    rows: list[Row] = []
    said: list[str] = []
    room = Queue(slots=options.responses)
    scenario = Scenario(latency=Latency().scaled_to(options.call_seconds), capacity=room)
    with simulators([scenario]) as (judge,):
        warm_up(policy, judge, options)
        for slots in options.slots:
            judge.become(scenario.with_capacity(slots))
            for way in WAYS:
                if way.key not in options.ways or (way.threads == 1 and slots != options.slots[0]):
                    continue  # one at a time needs one slot, and takes a minute: once is enough
                gc.collect()  # the optimizer of the way before
                policy.load_state_dict(weights)
                rows.append(measure(way, policy, judge, options, slots=slots))
                print("  ".join(rows[-1].cells()), flush=True)
                said = goals(rows) if options.device.startswith("cuda") else []
                if options.out is not None:  # after each way: a run cut short has something to show
                    write(options.out, rows, facts, said)
    print("\n" + page(rows, facts, said))
    return 1 if any("NOT MET" in line for line in said) else 0


def write(folder: Path, rows: Sequence[Row], facts: dict[str, str], said: Sequence[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "gpu_wait.md").write_text(page(rows, facts, said), encoding="utf-8")
    found = {"facts": facts, "rows": [asdict(row) for row in rows]}
    (folder / "gpu_wait.json").write_text(json.dumps(found, indent=1), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
