"""How close to the ideal makespan the engine gets on servers drawn at random, with the weather APIs have.

    python benchmarks/weather.py                      300 servers, in virtual time
    python benchmarks/weather.py --only 17,203        these servers again
    python benchmarks/weather.py --table              servers that are hard on an engine: bad_cases.py
    python benchmarks/weather.py --told               "warm" is told what the server truly is
    python benchmarks/weather.py --real 30 --speed 4  over real sockets, the servers in processes of their own

With --real the same servers are also met in virtual time, for comparison.

"Cold" is the batch of an engine that knows nothing; "warm" that of a new engine which starts from what the
first would have stored, on a server that starts anew. "Loop" is what a careful engineer writes: careful.py.
The ideal knows every outage in advance and is never refused: see plaudit.simulator.ideal. "Refused" is the
share of requests that came on top of the server's capacity; "weather" is what failed whatever the load was.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import functools
import math
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import careful
import table
from bad_cases import BAD_CASES, Case
from simulated import Simulator, simulators
from workload import JUDGE, MODEL, SAMPLES, requests_of, samples

from plaudit import Endpoint, Engine, Sample, Verdict
from plaudit.scheduling import learned_limits
from plaudit.scheduling.batch import Batch
from plaudit.scheduling.dispatcher import Dispatcher
from plaudit.scheduling.lane import Lane
from plaudit.scheduling.learned_limits import Learned
from plaudit.scheduling.scorer import Scorer
from plaudit.simulator import (
    Drawn,
    Knee,
    Queue,
    Rate,
    Reject,
    Scenario,
    SimulatedTransport,
    costs_of,
    draw,
    ideal_makespan,
)
from plaudit.testing import run
from plaudit.transports import Transport, open_transport
from plaudit.types import Status

T = TypeVar("T")

SERVERS = 300
CUT, CUT_SECONDS = 20.0, 60.0
"""A run that takes so many times the ideal, and so many seconds more, is given up."""
GOALS = {"cold": (1.08, 1.35, 2.0), "warm": (1.03, 1.15, 1.5)}
MOST_REFUSED = 0.10
NO_FAILURE = ("slow", "plain_text")
"""Faults that leave the reply as it is."""
MOST_REAL_RATE = 400.0
LEAST_REAL_CALL = 0.05
"""Over sockets: requests a second, and seconds of a call, that two busy cores keep up with."""
LONGEST_REAL = 8.0
"""Seconds of a batch at best, over sockets: more would only take long.

Where the ideal is longer, and only there, time is compressed for the server. It cannot be for the engine: its
own waits, from the 25 ms before it looks at a shut door to the second after which a call may hang, then count
for so many times as much.
"""
REAL_CUT = 5.0
"""Over sockets a run is given up sooner; the loop once it is so many times slower than the engine."""
LOOP_CUT = 1.2
HEADER = (
    "server", "cold", "warm", "loop", "ideal", "lost", "warm", "loop", "refused", "warm", "weather", "stored",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Run:
    """One batch on one server."""

    seconds: float
    ideal: float
    is_finished: bool
    missing: int
    """Samples without a verdict."""
    requests: int
    refused: int
    """Requests that came on top of what the capacity allows."""
    weather: int
    """Requests that failed whatever the load was."""
    learned: str = ""

    @property
    def ratio(self) -> float:
        """Makespan over ideal; infinity where it was given up."""
        return self.seconds / self.ideal if self.is_finished else math.inf

    @property
    def badness(self) -> tuple[bool, bool, float, int]:
        """To rank by: what was given up is the worst, then what lost a sample, then what took long."""
        return not self.is_finished, self.missing > 0, self.ratio, self.missing

    @property
    def shown(self) -> str:
        return f"{self.ratio:.2f}" if self.is_finished else f"> {self.seconds / self.ideal:.1f}"


@dataclass(frozen=True, slots=True)
class Measured:
    """One server, met in three ways."""

    drawn: Drawn
    cold: Run
    warm: Run
    loop: Run


def stored_by(lane: Lane) -> Learned | None:
    """What a run would leave behind for the next."""
    return learned_limits.learned_of(lane, now=time.time())


def lane_from(transport: Transport, known: Learned | None) -> Lane:
    """A lane as a new engine makes it from what was left behind: the same as plaudit._session does."""
    start = known.start if known is not None else None
    lane = Lane(Endpoint("http://server/v1", model=MODEL), transport, start=start)
    if known is not None and known.rate is not None:
        lane.begin_pace(known.rate, now=asyncio.get_running_loop().time(), burst=known.burst)
    return lane


def said(known: Learned | None) -> str:
    """What was left behind, in a few characters."""
    if known is None:
        return "-"
    return f"{known.rate:.0f}/s" if known.rate is not None else f"{known.limit}{'!' if known.refuses else ''}"


def best(scenario: Scenario, batch: Sequence[Sample]) -> float:
    """Seconds that nobody can beat."""
    return ideal_makespan(scenario, costs_of(scenario, requests_of(batch), model=MODEL))


def result_of(
    seconds: float,
    ideal: float,
    verdicts: Sequence[Verdict | None],
    stats: Mapping[str, Any],
    *,
    is_finished: bool,
    learned: str = "",
) -> Run:
    """A run, from what was seen on both ends."""
    return Run(
        seconds,
        ideal,
        is_finished,
        missing=sum(verdict is None or verdict.score is None for verdict in verdicts),
        requests=stats["requests"],
        refused=stats["over_capacity"],
        weather=sum(count for kind, count in stats["faults"].items() if kind not in NO_FAILURE),
        learned=learned,
    )


# -- in virtual time --------------------------------------------------------------------------------------


async def score_with_engine(
    transport: Transport, batch: Sequence[Sample], known: Learned | None, *, within: float
) -> tuple[float, bool, list[Verdict | None], Learned | None]:
    """Score a batch with everything of the engine but its thread.

    Returns:
        Seconds, whether it came to its end in time, the verdicts, and what it would leave behind.
    """
    lane = lane_from(transport, known)
    scorer = Scorer(lambda on_room: Dispatcher([lane], on_room=on_room))
    work = Batch(batch, JUDGE, model=MODEL)

    async def score() -> None:
        done = asyncio.Event()
        work.when_done(done.set)
        scorer.start(work)
        await done.wait()

    seconds, is_finished = await timed(score(), within=within)
    verdicts, learned = list(work.verdicts), stored_by(lane)
    await scorer.close()
    return seconds, is_finished, verdicts, learned


async def by_engine(
    scenario: Scenario, batch: Sequence[Sample], ideal: float, known: Learned | None
) -> tuple[Run, Learned | None]:
    """Score a batch on a server that starts anew; with it, what the engine would leave behind."""
    transport = SimulatedTransport(scenario, model=MODEL)
    seconds, is_finished, verdicts, learned = await score_with_engine(
        transport, batch, known, within=CUT * ideal + CUT_SECONDS
    )
    stats = transport.server.stats.as_dict()
    result = result_of(seconds, ideal, verdicts, stats, is_finished=is_finished, learned=said(learned))
    return result, learned


async def by_careful_loop(scenario: Scenario, batch: Sequence[Sample], ideal: float) -> Run:
    """Score a batch with the loop that a careful engineer writes."""
    transport = SimulatedTransport(scenario, model=MODEL)
    verdicts: list[Verdict | None] = [None] * len(batch)
    work = careful.judge_all(transport, batch, verdicts)
    seconds, is_finished = await timed(work, within=CUT * ideal + CUT_SECONDS)
    return result_of(seconds, ideal, verdicts, transport.server.stats.as_dict(), is_finished=is_finished)


async def timed(work: Coroutine[Any, Any, None], *, within: float) -> tuple[float, bool]:
    """Seconds that the work took, and whether it came to its end in time."""
    clock = asyncio.get_running_loop().time
    start, is_finished = clock(), False
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(within):
            await work
            is_finished = True
    return clock() - start, is_finished


def truth_of(scenario: Scenario) -> Learned | None:
    """What a run would leave behind that has found out everything."""
    match scenario.capacity:
        case Rate(per_second=rate, burst=burst, window=window):
            return Learned(at=0.0, rate=rate, burst=round(rate * window) if window else burst)
        case Reject(slots=slots):
            return Learned(at=0.0, limit=slots, refuses=True)
        case Queue(slots=size) | Knee(knee=size):
            return Learned(at=0.0, limit=size, settled=True)
    return None


def measure(case: Case, *, is_told: bool = False) -> Measured:
    """The three runs on one server, each on a server that starts anew."""
    first, second = samples(case.samples), samples(case.samples, tag=" (2)")
    scenario, later = case.drawn.scenario, case.warm or case.drawn.scenario
    ideal = best(scenario, first)
    cold, learned = run(by_engine(scenario, first, ideal, None))
    learned = truth_of(scenario) if is_told else learned
    warm, _ = run(by_engine(later, second, best(later, second), learned))
    return Measured(case.drawn, cold, warm, run(by_careful_loop(scenario, first, ideal)))


def measured(cases: Sequence[Case], jobs: int, *, is_told: bool = False) -> Iterator[Measured]:
    """Every case in turn, on so many processes."""
    one = functools.partial(measure, is_told=is_told)
    if jobs == 1:
        yield from map(one, cases)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(one, cases, chunksize=1)


# -- over real sockets ------------------------------------------------------------------------------------


def speed_for(case: Case, most: float) -> float:
    """Simulated seconds per second: what it takes to have a batch done soon, `most` at the most."""
    ideal = best(case.drawn.scenario, samples(case.samples))
    return min(most, max(1.0, ideal / LONGEST_REAL))


def is_feasible(case: Case, most: float) -> bool:
    """Whether two cores can play both ends, compressed in time as far as need be."""
    latency, speed = case.drawn.scenario.latency, speed_for(case, most)
    seconds = best(case.drawn.scenario, samples(case.samples)) / speed
    call = (latency.round_trip + latency.work(round(latency.mean_tokens))) / speed
    is_slow_enough = case.samples / seconds <= MOST_REAL_RATE and call >= LEAST_REAL_CALL
    return is_slow_enough and seconds <= LONGEST_REAL * 1.01


def measure_really(case: Case, most: float) -> Measured:
    """The same three runs over HTTP, with the whole engine, on a simulator in a process of its own."""
    speed = speed_for(case, most)
    first, second = samples(case.samples), samples(case.samples, tag=" (2)")
    scenario = case.drawn.scenario
    with tempfile.TemporaryDirectory() as home, simulators([scenario], speed=speed) as (server,):
        os.environ["PLAUDIT_HOME"] = home  # nothing remembered from an earlier run
        cold = _by_whole_engine(server, scenario, first, speed)
        warm = _by_whole_engine(server, case.warm or scenario, second, speed)
        within = LOOP_CUT * max(cold.seconds, warm.seconds)
        loop = asyncio.run(_by_careful_loop_over(server, scenario, first, speed, within))
    return Measured(case.drawn, cold, warm, loop)


def _by_whole_engine(server: Simulator, scenario: Scenario, batch: Sequence[Sample], speed: float) -> Run:
    server.become(scenario)
    ideal = best(scenario, batch)
    with Engine(endpoints=[Endpoint(server.url, model=MODEL)], cache=None) as engine:
        start = time.perf_counter()
        pending = engine.submit(batch, JUDGE)
        verdicts = pending.result(timeout=(REAL_CUT * ideal + CUT_SECONDS) / speed)
        seconds = speed * (time.perf_counter() - start)
        stats = server.stats()
    is_finished = all(verdict.status is not Status.DEADLINE for verdict in verdicts)
    return result_of(seconds, ideal, verdicts, stats, is_finished=is_finished)


async def _by_careful_loop_over(
    server: Simulator, scenario: Scenario, batch: Sequence[Sample], speed: float, within: float
) -> Run:
    server.become(scenario)
    ideal = best(scenario, batch)
    transport = open_transport(Endpoint(server.url, model=MODEL), environ={})
    verdicts: list[Verdict | None] = [None] * len(batch)
    work = careful.judge_all(transport, batch, verdicts)
    seconds, is_finished = await timed(work, within=within / speed)
    await transport.close()
    return result_of(speed * seconds, ideal, verdicts, server.stats(), is_finished=is_finished)


# -- what is shown ----------------------------------------------------------------------------------------


def watched(results: Iterator[T], count: int, *, every: int) -> list[T]:
    """The results, counted on the terminal while they come in."""
    found: list[T] = []
    start = time.perf_counter()
    for result in results:
        found.append(result)
        if len(found) % every == 0 or len(found) == count:
            print(f"{len(found)} of {count} servers, {time.perf_counter() - start:.0f} s", file=sys.stderr)
    return found


def report(found: Sequence[Measured], worst: int) -> int:
    """Print what was measured; the answer is how many goals were missed."""
    misses = 0
    by_name = {
        "cold": [one.cold for one in found],
        "warm": [one.warm for one in found],
        "loop": [one.loop for one in found],
    }
    for name, runs in by_name.items():
        misses += _report_runs(name, runs)
        slower = [one for one, engine in zip(found, runs, strict=True) if one.loop.ratio < engine.ratio]
        fair = [one for one in slower if not one.loop.missing]
        if name != "loop":
            numbers = ", ".join(str(one.drawn.number) for one in fair)
            print(f"      slower than the careful loop: {len(slower)}, {len(fair)} where that lost nothing")
            print(f"      ({numbers})" if fair else "")
            misses += bool(fair)
    for name in ("cold", "warm"):
        ranked = sorted(found, key=lambda one: getattr(one, name).badness, reverse=True)[:worst]
        table.show(f"The {len(ranked)} worst {name}", HEADER, [_row(one) for one in ranked])
    return misses


def _compare(real: Sequence[Measured], virtual: Sequence[Measured]) -> None:
    """The same servers over sockets and in virtual time, the greatest differences first."""
    pairs = sorted(zip(real, virtual, strict=True), key=lambda pair: pair[1].cold.ratio - pair[0].cold.ratio)
    rows = [
        (
            f"#{one.drawn.number}",
            *(run.shown for run in (one.cold, other.cold, one.warm, other.warm)),
            *(f"{run.missing}" for run in (one.cold, other.cold, one.warm, other.warm)),
        )
        for one, other in pairs
    ]
    header = ("server", "cold", "virtual", "warm", "virtual", "lost", "virtual", "warm", "virtual")
    table.show("Over sockets and in virtual time", header, rows)
    for name in ("cold", "warm"):
        print("in virtual time, ", end="")
        _report_runs(name, [getattr(one, name) for one in virtual])


def _report_runs(name: str, runs: Sequence[Run]) -> int:
    """The figures of one kind of run in a few lines; the answer is how many goals they miss."""
    ranked = sorted(one.ratio for one in runs)
    figures = statistics.median(ranked), ranked[math.ceil(0.9 * len(ranked)) - 1], ranked[-1]
    unfinished = sum(not one.is_finished for one in runs)
    lost = sum(one.missing for one in runs if one.is_finished)
    requests = sum(one.requests for one in runs)
    over = sum(one.refused > MOST_REFUSED * one.requests for one in runs)
    goals = GOALS.get(name)
    print(
        f"{name}: median {figures[0]:.3f}, p90 {figures[1]:.3f}, worst {figures[2]:.3f}"
        + (f" (goals {', '.join(map(str, goals))})" if goals else "")
    )
    print(f"      not finished {unfinished}, samples lost in the others {lost}")
    print(
        f"      of {requests:,} requests {_share(sum(one.refused for one in runs), requests)} refused over "
        f"capacity, {_share(sum(one.weather for one in runs), requests)} failed by weather; "
        f"more than {MOST_REFUSED:.0%} refused over capacity on {over} servers"
    )
    if goals is None:
        return 0
    missed = sum(figure > goal for figure, goal in zip(figures, goals, strict=True))
    return missed + bool(unfinished or lost) + bool(over)


def _row(one: Measured) -> tuple[str, ...]:
    number = f"#{one.drawn.number} " if one.drawn.number >= 0 else ""
    return (
        f"{number}{one.drawn.about}",
        one.cold.shown,
        one.warm.shown,
        one.loop.shown,
        f"{one.cold.ideal:.1f} s",
        f"{one.cold.missing}",
        f"{one.warm.missing}",
        f"{one.loop.missing}",
        _share(one.cold.refused, one.cold.requests),
        _share(one.warm.refused, one.warm.requests),
        _share(one.cold.weather, one.cold.requests),
        one.cold.learned,
    )


def _share(part: int, whole: int) -> str:
    return f"{part / max(1, whole):.1%}"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--servers", type=int, default=SERVERS)
    parser.add_argument("--seed", type=int, default=0, help="another draw: server numbers from 10,000 x SEED")
    parser.add_argument("--only", metavar="N,N", help="the servers of these numbers, each with its row")
    parser.add_argument("--table", action="store_true", help="the bad cases instead, each with its row")
    parser.add_argument("--told", action="store_true", help="tell the warm run what the server truly is")
    parser.add_argument("--samples", type=int, default=SAMPLES)
    parser.add_argument("--worst", type=int, default=10, help="how many of the worst to show")
    parser.add_argument("--jobs", type=int, default=1, help="processes to measure with")
    parser.add_argument("--real", type=int, metavar="N", help="the first N feasible, over real sockets")
    parser.add_argument("--speed", type=float, default=4.0, help="simulated seconds per second, with --real")
    options = parser.parse_args()
    first = 10_000 * options.seed
    numbers: Sequence[int] = range(first, first + options.servers)
    if options.only:
        numbers = [int(number) for number in options.only.split(",")]
    cases = list(BAD_CASES) if options.table else [Case(draw(n), options.samples) for n in numbers]
    how = "virtual time"
    if options.real is None:
        results = measured(cases, options.jobs, is_told=options.told)
    else:
        cases = [case for case in cases if is_feasible(case, options.speed)][: options.real]
        results = (measure_really(case, options.speed) for case in cases)
        how = f"real sockets, time compressed up to {options.speed:g} times"
    found = watched(results, len(cases), every=50 if options.real is None else 1)
    if options.table or options.only:
        table.show(f"Makespan over ideal, {how}", HEADER, [_row(one) for one in found])
        return 0
    print(f"Makespan over ideal on {len(found)} servers drawn at random, {options.samples:,} samples, {how}")
    misses = report(found, options.worst)
    if options.real is not None:
        _compare(found, list(measured(cases, options.jobs)))
    return 1 if misses else 0


if __name__ == "__main__":
    sys.exit(main())
