"""Query mutation: how much faster batching makes it, and whether it learns.

    python benchmarks/mutation.py                 virtual time, the trainer's own code, about a minute
    python benchmarks/mutation.py --real          the same over real sockets, compressed in time
    python benchmarks/mutation.py --learn         three seeds against a random policy and the optimum

Speed: 16 environments, 1,000 steps, on a simulated Ollama where a rewrite takes 1 s, an answer 2 s and a
verdict 0.8 s on average. Needs the extra `mutation`.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import math
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import numpy as np
import table
from simulated import simulators
from simulated_mutation import LoopRunner, SimulatedMutation, WordEncoder, optimum

from plaudit import Endpoint, Engine, Rubric
from plaudit.config import EngineConfig
from plaudit.mutation.async_env import ChainRunner, ThreadRunner
from plaudit.mutation.env import BatchedQueryMutationEnv
from plaudit.mutation.mutation_trainer import train
from plaudit.mutation.operators import builtin_operators
from plaudit.mutation.questions import Item
from plaudit.mutation.task import Models, MutationTask
from plaudit.mutation.training import Pace, Training
from plaudit.report.document import Baseline, Curve, Curves
from plaudit.report.svg import curves
from plaudit.scheduling.batch import Batch
from plaudit.scheduling.dispatcher import Dispatcher
from plaudit.scheduling.lane import Lane
from plaudit.scheduling.scorer import Scorer
from plaudit.simulator import Latency, Queue, Scenario, SimulatedTransport
from plaudit.testing import VirtualLoop
from plaudit.types import Sample, Verdict

SECONDS = {"mutate": 1.0, "target": 2.0, "judge": 0.8}
SPREAD = 0.3
"""Of the logarithm of a reply's length: a standard deviation of about a third of the mean."""
TOKENS = 100
QUESTIONS = [
    Item(f"What is {number} plus {number % 37}?", str(number + number % 37)) for number in range(5000)
]
JUDGE = Rubric("Is the answer correct?", scale=(0, 10))


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table."""

    name: str
    pace: Pace
    slots: int
    servers: int = 1
    goal: float | None = None
    against: int = 0
    """The line that it is compared with."""


ROWS = (
    Row("--no-batching", "one-by-one", 8),
    Row("--use-batching", "together", 8, goal=8.0),
    Row("--use-batching --no-barrier", "free", 8),
    Row("--use-batching", "together", 16),
    Row("--use-batching --no-barrier", "free", 16, goal=12.0),
    Row("--no-barrier, few slots", "free", 4),
    Row("--no-barrier, few slots, two servers", "free", 4, servers=2, goal=1.8, against=5),
)


def scenario(role: str, slots: int, seed: int) -> Scenario:
    """One model of the simulated Ollama: so many slots, and a queue without end."""
    latency = Latency(
        mean_tokens=TOKENS,
        sigma=SPREAD,
        seconds_per_token=SECONDS[role] / TOKENS,
        first_token=0.0,
        round_trip=0.0,
    )
    return Scenario(seed=seed, latency=latency, capacity=Queue(slots=slots))


class VirtualPending:
    """A batch on the loop of whoever waits."""

    def __init__(self, batch: Batch) -> None:
        self._batch = batch
        self._done = asyncio.Event()
        batch.when_done(self._done.set)

    @property
    def summary(self) -> Any:
        return self._batch.summary()

    def cancel(self) -> None:
        """Nothing is left running when a virtual loop ends."""

    def __await__(self) -> Any:
        return self._verdicts().__await__()

    async def _verdicts(self) -> list[Verdict]:
        await self._done.wait()
        return [verdict for verdict in self._batch.verdicts if verdict is not None]


class VirtualEngine:
    """The engine's scorer, dispatcher and lanes on the caller's own loop, in place of a thread."""

    def __init__(self, role: str, scenarios: Sequence[Scenario]) -> None:
        self.model = role
        self._scenarios = scenarios
        self._scorer: Scorer | None = None

    def submit(
        self, samples: Sequence[Sample], judge: Any, *, deadline: float | None = None
    ) -> VirtualPending:
        if self._scorer is None:
            lanes = [
                Lane(
                    Endpoint(f"http://{self.model}-{number}/v1", model=self.model),
                    SimulatedTransport(one, model=self.model),
                )
                for number, one in enumerate(self._scenarios)
            ]
            config = EngineConfig(timeout=600.0)
            self._scorer = Scorer(lambda on_room: Dispatcher(lanes, config, on_room=on_room))
        batch = Batch(list(samples), judge, model=self.model, deadline=deadline)
        self._scorer.start(batch)
        return VirtualPending(batch)


@contextlib.contextmanager
def virtual(row: Row, seed: int) -> Iterator[tuple[dict[str, Any], ChainRunner, Callable[[], float]]]:
    """Engines, runner and clock in virtual time."""
    loop = VirtualLoop()
    engines = {role: VirtualEngine(role, [scenario(role, row.slots, seed)] * row.servers) for role in SECONDS}
    runner = LoopRunner(loop)
    try:
        yield engines, runner, loop.time
    finally:
        runner.close()
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()


@contextlib.contextmanager
def real(
    row: Row, seed: int, speed: float
) -> Iterator[tuple[dict[str, Any], ChainRunner, Callable[[], float]]]:
    """The same with processes, sockets, threads and the clock on the wall, sped up."""
    roles = [role for role in SECONDS for _ in range(row.servers)]
    with (
        simulators([scenario(role, row.slots, seed) for role in roles], speed=speed) as running,
        contextlib.ExitStack() as stack,
    ):
        engines = {
            role: stack.enter_context(
                Engine(
                    endpoints=[
                        Endpoint(one.root, model="simulated", kind="ollama")
                        for other, one in zip(roles, running, strict=True)
                        if other == role
                    ],
                    cache=None,
                )
            )
            for role in SECONDS
        }
        yield engines, ThreadRunner(), lambda: time.monotonic() * speed


def measure(row: Row, *, envs: int, steps: int, seed: int, speed: float | None) -> tuple[float, int]:
    """Simulated seconds that the training took, and how many steps failed."""
    world = virtual(row, seed) if speed is None else real(row, seed, speed)
    with tempfile.TemporaryDirectory() as folder, world as (engines, runner, clock):
        models = Models(
            engines["mutate"], engines["target"], engines["judge"], JUDGE, WordEncoder(), deadline=None
        )
        task = MutationTask(models, QUESTIONS, builtin_operators()[1:])  # without keep, which takes no time
        training = Training(num_processes=envs, num_env_steps=steps, seed=seed, pace=row.pace)
        begun = clock()
        history = train(task, training, Path(folder), runner=runner)
        return clock() - begun, history.steps_failed()


def speed_table(options: argparse.Namespace) -> bool:
    speed = options.speed if options.real else None
    taken: list[float] = []
    rows, is_met = [], True
    for number, row in enumerate(ROWS):
        if options.lines and number + 1 not in options.lines:
            taken.append(math.nan)
            continue
        seconds, failed = measure(row, envs=options.envs, steps=options.steps, seed=options.seed, speed=speed)
        taken.append(seconds)
        factor = taken[row.against] / seconds  # not a number where the other line was left out
        steps = Training(num_processes=options.envs, num_env_steps=options.steps).steps
        met = row.goal is None or math.isnan(factor) or factor >= row.goal
        is_met &= met and not failed
        against = "" if row.against == 0 else f" over line {row.against + 1}"
        rows.append(
            (
                row.name,
                f"{row.slots} x {row.servers}",
                f"{seconds:,.0f} s",
                f"{steps / seconds:.2f}",
                "" if math.isnan(factor) else f"{factor:.1f}x{against}",
                f"{row.goal:g}x" if row.goal else "",
                ("yes" if met else "NO") if row.goal else "",
            )
        )
        print(f"{row.name}: {seconds:,.0f} s, {failed} failed", file=sys.stderr)
    time_is = f"real sockets, {options.speed:g} times faster" if options.real else "virtual time"
    table.show(
        f"{options.envs} environments, {options.steps:,} steps; mutate 1 s, target 2 s, judge 0.8 s, "
        f"spread {SPREAD:g}; {time_is}",
        ("flags", "slots per model x servers", "simulated time", "steps/s", "speed-up", "goal", "met"),
        rows,
    )
    return is_met


def random_reward(practice: SimulatedMutation, seed: int) -> float:
    """The mean reward of an episode under a policy that picks operators at random."""
    env = BatchedQueryMutationEnv(practice.task, 16)
    draw = np.random.default_rng(seed)
    totals: list[float] = []
    try:
        env.reset(seed=seed)
        while len(totals) < 2000:
            _, _, over, _, infos = env.step(draw.integers(0, len(practice.task.operators), 16))
            if over.any():
                totals += [float(total) for total in infos["final_info"]["total"][over]]
    finally:
        env.close()
    return statistics.mean(totals)


def learning(options: argparse.Namespace) -> bool:
    lines, rows, is_met = [], [], True
    with SimulatedMutation() as practice:
        best, chance = optimum(practice.task), random_reward(practice, 0)
        for seed in range(options.seeds):
            with tempfile.TemporaryDirectory() as folder:
                training = Training(num_env_steps=options.steps, seed=seed, pace="free")
                begun = time.monotonic()
                history = train(practice.task, training, Path(folder))
            points = [(float(one.steps), one.reward) for one in history.points if one.reward is not None]
            last = statistics.mean(reward for _, reward in points[-5:])
            reached = next((at for at, reward in points if reward >= 0.8 * best), None)
            is_met &= last >= 0.8 * best
            lines.append(Curve(f"seed {seed}", points))
            rows.append(
                (
                    f"PPO, seed {seed}",
                    f"{last:.3f}",
                    f"{last / best:.0%}",
                    f"{reached:,.0f}" if reached else "never",
                    "yes" if last >= 0.8 * best else "NO",
                )
            )
            print(f"seed {seed}: {time.monotonic() - begun:.0f} s", file=sys.stderr)
    rows.append(("a random policy", f"{chance:.3f}", f"{chance / best:.0%}", "", ""))
    rows.append(("the optimum", f"{best:.3f}", "100%", "", ""))
    table.show(
        f"Learning: {options.steps:,} steps, simulated target; reward per episode in the last 5 rollouts",
        ("policy", "reward", "of the optimum", "80% reached after", "met"),
        rows,
    )
    if options.picture:
        levels = [Baseline("optimum", best), Baseline("80%", 0.8 * best), Baseline("random policy", chance)]
        picture = curves(Curves("", "steps", "reward per episode", lines, levels))
        Path(options.picture).write_text(picture + "\n", encoding="utf-8")
    return is_met


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--learn", action="store_true", help="whether it learns, in place of how fast it is")
    parser.add_argument("--real", action="store_true", help="over real sockets")
    parser.add_argument("--speed", type=float, default=40.0, help="simulated seconds in a real one")
    parser.add_argument("--steps", type=int, help="1,000, or 20,000 with --learn")
    parser.add_argument("--lines", type=int, nargs="*", help="lines of the table to measure, counted from 1")
    parser.add_argument("--envs", type=int, default=16)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--picture", help="file for the curves, as SVG")
    options = parser.parse_args()
    options.steps = options.steps or (20_000 if options.learn else 1_000)
    with tempfile.TemporaryDirectory() as home:
        os.environ["PLAUDIT_HOME"] = home  # what is learned of simulated servers is nobody's business
        return 0 if (learning if options.learn else speed_table)(options) else 1


if __name__ == "__main__":
    sys.exit(main())
