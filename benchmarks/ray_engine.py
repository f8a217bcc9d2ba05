"""What it costs to reach an engine in another process of a Ray cluster, for each sample.

python benchmarks/ray_engine.py [--samples 2000] [--workers 4]
python benchmarks/ray_engine.py --kills 5    kill the engine in mid-batch, count what is lost or paid twice

The samples are settled by rule, without a call, so that nothing is measured but the way there and back.
Compared: one Ray call for each sample to an actor that holds a plain Engine; the shared engine, asked for one
sample at a time, as verl's reward loop does; the shared engine, asked for a whole batch. CPU is that of both
processes, caller and actor. Exits 1 if the shared engine is not at least five times cheaper than one call for
each sample; with --kills, if a sample lacks its verdict, or more was paid twice than was on its way at a kill
or had come in the last milliseconds before it, and was not on disk yet.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import psutil
import ray
from simulated import simulators
from table import show

from plaudit import Engine, Rubric, Sample, Verdict
from plaudit.integrations.ray import SharedEngine
from plaudit.simulator import Latency, Scenario

JUDGE = Rubric("Is the answer correct and brief?")
NOWHERE = "http://127.0.0.1:9/v1"
GOAL = 5.0
UNSTORED = 16
"""Replies that may have come without being on disk yet."""


def rows(number: int) -> list[Sample]:
    """Empty responses to long questions: as dear to carry as others, and settled by rule."""
    return [
        Sample(f"Question {place}: " + "why? " * 100, "", group=str(place % 8)) for place in range(number)
    ]


class Plain:
    """An actor as one would write it first: a call for each sample."""

    def __init__(self) -> None:
        self._engine = Engine(NOWHERE, model="m", cache=None)

    async def score(self, sample: Sample, judge: Rubric) -> Verdict:
        (verdict,) = await self._engine.ascore([sample], judge)
        return verdict

    def pid(self) -> int:
        return os.getpid()


@dataclass(frozen=True)
class Cost:
    wall: float
    cpu: float


def measured(work: Callable[[], list[Verdict]], number: int, processes: list[psutil.Process]) -> Cost:
    """The best of three, for each sample."""
    best = Cost(float("inf"), float("inf"))
    for _ in range(3):
        before, start = cpu_of(processes), time.perf_counter()
        verdicts = work()
        wall = time.perf_counter() - start
        cpu = cpu_of(processes) - before
        assert len(verdicts) == number
        assert {verdict.status for verdict in verdicts} == {"empty"}
        best = min(best, Cost(wall / number, cpu / number), key=lambda cost: cost.cpu)
    return best


def cpu_of(processes: list[psutil.Process]) -> float:
    return sum(sum(process.cpu_times()[:2]) for process in processes)


def call_for_each(actor: Any, asked: list[Sample]) -> list[Verdict]:
    async def main() -> list[Verdict]:
        return list(await asyncio.gather(*(actor.score.remote(sample, JUDGE) for sample in asked)))

    return asyncio.run(main())


def one_by_one(engine: SharedEngine | Engine, asked: list[Sample]) -> list[Verdict]:
    async def main() -> list[Verdict]:
        found = await asyncio.gather(*(engine.ascore([sample], JUDGE) for sample in asked))
        return [verdict for (verdict,) in found]

    return asyncio.run(main())


class Worker:
    """One of several processes that ask the same engine at the same time."""

    def __init__(self, shared: SharedEngine) -> None:
        self._shared = shared

    async def judge(self, asked: list[Sample]) -> list[Verdict]:
        found = await asyncio.gather(*(self._shared.ascore([sample], JUDGE) for sample in asked))
        return [verdict for (verdict,) in found]

    async def score(self, number: int) -> int:
        found = await asyncio.gather(*(self._shared.ascore([sample], JUDGE) for sample in rows(number)))
        return sum(verdict.status == "empty" for (verdict,) in found)


def at_once(crew: list[Any], number: int) -> float:
    """Samples a second that go through the one engine when all workers ask at once."""
    ray.get([worker.score.remote(10) for worker in crew])
    start = time.perf_counter()
    done: int = sum(ray.get([worker.score.remote(number) for worker in crew]))
    assert done == number * len(crew)
    return done / (time.perf_counter() - start)


def killed(kills: int, number: int, workers: int) -> int:
    """Kill the engine's process again and again while workers ask it; 0 if nothing was lost or paid twice."""
    together = 64
    with simulators([Scenario(latency=Latency(mean_tokens=20, sigma=0.5, first_token=0.1))]) as (judge,):
        cache = f"{os.environ['PLAUDIT_HOME']}/verdicts.sqlite"
        shared = SharedEngine(judge.url, model="m", max_concurrent=together, cache=cache, hedge=False)
        asked = [Sample("What is the capital of France?", f"Paris {place}") for place in range(number)]
        crew = [ray.remote(Worker).options(num_cpus=0).remote(shared) for _ in range(workers)]
        ray.get([worker.score.remote(1) for worker in crew])
        start = time.perf_counter()
        found = [worker.judge.remote(asked[place::workers]) for place, worker in enumerate(crew)]
        for kill in range(kills):
            while judge.stats()["answered"] < number * (kill + 1) // (kills + 1):
                time.sleep(0.02)
            actor = ray.get_actor(shared.name, namespace="plaudit")
            os.kill(ray.get(actor.__ray_call__.remote(lambda _: os.getpid())), signal.SIGKILL)
        verdicts = [verdict for verdicts in ray.get(found) for verdict in verdicts]
        seconds = time.perf_counter() - start
        stats = judge.stats()
        shared.close()
    good = sum(verdict.is_valid for verdict in verdicts)
    print(
        f"{kills} kills, {workers} workers: {good} of {number} samples have their verdict after "
        f"{seconds:.1f} s; {stats['duplicates']} of {stats['requests']} requests were asked again, "
        f"and {together} were on their way at each kill"
    )
    is_met = good == len(verdicts) == number and stats["duplicates"] <= kills * (together + UNSTORED)
    print(f"{'met' if is_met else 'MISSED'}: nothing lost, and nothing paid twice but what was on its way")
    return 0 if is_met else 1


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--kills", type=int, default=0)
    options = parser.parse_args()
    asked = rows(options.samples)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_AUTH_MODE", "disabled")
    home = tempfile.TemporaryDirectory(prefix="plaudit-bench-", ignore_cleanup_errors=True)
    os.environ["PLAUDIT_HOME"] = home.name
    ray.init(num_cpus=2, include_dashboard=False, object_store_memory=100 * 1024 * 1024, log_to_driver=False)
    try:
        if options.kills:
            return killed(options.kills, options.samples, options.workers)
        me = psutil.Process()
        plain = ray.remote(Plain).options(num_cpus=0, max_concurrency=10_000).remote()
        there = psutil.Process(ray.get(plain.pid.remote()))
        dear = measured(lambda: call_for_each(plain, asked), len(asked), [me, there])
        with SharedEngine(NOWHERE, model="m", cache=None) as shared:
            actor = ray.get_actor(shared.name, namespace="plaudit")
            pid = ray.get(actor.__ray_call__.remote(lambda _: os.getpid()))
            both = [me, psutil.Process(pid)]
            single = measured(lambda: one_by_one(shared, asked), len(asked), both)
            whole = measured(lambda: shared.score(asked, JUDGE), len(asked), both)
            crew = [ray.remote(Worker).options(num_cpus=0).remote(shared) for _ in range(options.workers)]
            rate = at_once(crew, options.samples)
        with Engine(NOWHERE, model="m", cache=None) as engine:
            local = measured(lambda: one_by_one(engine, asked), len(asked), [me])
    finally:
        ray.shutdown()
        home.cleanup()

    def row(name: str, cost: Cost) -> list[str]:
        return [name, f"{cost.cpu * 1e6:.0f}", f"{cost.wall * 1e6:.0f}", f"{dear.cpu / cost.cpu:.1f}x"]

    show(
        f"The way to the engine and back, for each of {len(asked)} samples that need no call",
        ["how it is asked", "CPU us", "wall us", "cheaper"],
        [
            row("an actor, one Ray call for each sample", dear),
            row("SharedEngine, one sample at a time", single),
            row("SharedEngine, the whole batch", whole),
            row("an Engine in the same process, one sample at a time", local),
        ],
    )
    print(f"{options.workers} workers at once, one sample at a time: {rate:,.0f} samples a second in all")
    is_met = dear.cpu / single.cpu >= GOAL
    goal = f"one sample at a time at least {GOAL:g} times cheaper than one Ray call for each"
    print(f"{'met' if is_met else 'MISSED'}: {goal}")
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main())
