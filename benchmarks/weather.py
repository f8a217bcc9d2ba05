"""How close to the ideal makespan the engine gets on servers drawn at random, with the weather APIs have.

    python benchmarks/weather.py                      300 servers, in virtual time
    python benchmarks/weather.py --only 17,203        these servers again
    python benchmarks/weather.py --table              the servers that were once the worst

"Cold" is the batch of an engine that knows nothing; "warm" that of a new engine which starts from what the
first would have stored, on a server that starts anew. "Loop" is what a careful engineer writes: careful.py.
The ideal knows every outage in advance and is never refused: see plaudit.simulator.ideal. "Refused" is the
share of requests that came on top of the server's capacity; "weather" is what failed whatever the load was.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import math
import statistics
import sys
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace

import careful
import table
from workload import JUDGE, MODEL, SAMPLES, requests_of, samples

from plaudit import Endpoint, Sample
from plaudit.core.limit import LimitConfig
from plaudit.scheduler import remembered
from plaudit.scheduler.batch import Batch
from plaudit.scheduler.dispatcher import Dispatcher
from plaudit.scheduler.lane import Lane
from plaudit.scheduler.remembered import Learned
from plaudit.scheduler.scorer import Scorer
from plaudit.simulator import (
    Drawn,
    Fault,
    Knee,
    Latency,
    Rate,
    Reject,
    Scenario,
    SimulatedTransport,
    costs_of,
    draw,
    ideal_makespan,
)
from plaudit.simulator.scenario import Capacity
from plaudit.testing import run

SERVERS = 300
CUT, CUT_SECONDS = 20.0, 60.0
"""A run that takes so many times the ideal, and so many seconds more, is given up."""
GOALS = {"cold": (1.08, 1.35, 2.0), "warm": (1.03, 1.15, 1.5)}
MOST_REFUSED = 0.10
NO_FAILURE = ("slow", "plain_text")
"""Faults that leave the reply as it is."""


@dataclass(frozen=True, slots=True)
class Run:
    """One batch on one server."""

    ratio: float
    """Makespan over ideal; infinity where it was given up."""
    seconds: float
    ideal: float
    lost: int
    """Samples without a verdict."""
    refused: float
    """Share of all requests that came on top of what the capacity allows."""
    weather: float
    """Share of all requests that failed whatever the load was."""
    requests: int
    learned: str = ""

    @property
    def is_finished(self) -> bool:
        return self.ratio < float("inf")


@dataclass(frozen=True, slots=True)
class Case:
    """A server to be measured."""

    drawn: Drawn
    samples: int = SAMPLES
    warm: Scenario | None = None
    """What the server is like in the second run; None: the same."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One server, met in three ways."""

    drawn: Drawn
    cold: Run
    warm: Run
    loop: Run


def _named(
    about: str,
    capacity: Capacity,
    *faults: Fault,
    mean: float = 1.0,
    count: int = SAMPLES,
    heals: bool = False,
) -> Case:
    scenario = Scenario(latency=Latency().scaled_to(mean), capacity=capacity, faults=faults)
    return Case(Drawn(-1, about, scenario), count, scenario.replace(faults=()) if heals else None)


def _shut(length: float, every: float) -> Fault:
    return Fault("error", status=503, during=(1.0, 1.0 + length), every=every, before_limits=True)


NAMED = (
    _named(
        "503 for 0.9 s in every 4.6 s, 278 slots, 0.4 s calls",
        Reject(278),
        _shut(0.9, 4.6),
        mean=0.4,
        count=4096,
    ),
    _named("503 for 1 s in every 6 s, 64 slots, 0.25 s calls", Reject(64), _shut(1.0, 6.0), mean=0.25),
    _named(
        "14% 429 at random, 200 slots; the next run without",
        Reject(200),
        Fault("error", 0.14, status=429, before_limits=True),
        mean=0.4,
        heals=True,
    ),
    _named("51/s, burst 2, Retry-After: 1", Rate(51.0, burst=2, hints="retry-after")),
    _named("372/s, burst 18, headers, Retry-After: 1", Rate(372.0, burst=18, retry_after=1.0)),
    _named("106/s, burst 5, headers, Retry-After: 1", Rate(106.0, burst=5, retry_after=1.0)),
    _named("235/s, burst 1, no headers, 0.8 s calls", Rate(235.0, hints="none"), mean=0.8),
    _named("235/s, burst 14,100, no headers, 0.8 s calls", Rate(235.0, burst=14_100, hints="none"), mean=0.8),
    _named(
        "five 429s that ask for an hour, 64 slots, 200 samples",
        Reject(64),
        Fault("error", status=429, retry_after=3600.0, requests=(10, 15), before_limits=True),
        count=200,
    ),
    _named(
        "3% 500, 1% reset, 0.4% hang, 1% garbage, 18 slots, Retry-After: 2",
        Reject(18, retry_after=2.0),
        Fault("error", 0.03, status=500),
        Fault("reset", 0.01),
        Fault("hang", 0.004),
        Fault("bad_json", 0.005),
        Fault("babble", 0.005),
    ),
    _named("230 slots", Reject(230)),
    _named("500 slots", Reject(500)),
    _named("1,000 slots", Reject(1000)),
    _named("knee at 24", Knee(24)),
    _named("knee at 40", Knee(40)),
)
"""What the engine was once bad at."""


def stored_by(lane: Lane) -> Learned | None:
    """What a run would leave behind for the next."""
    return remembered.learned_of(lane, now=time.time())


def said(known: Learned | None) -> str:
    """What was left behind, in a few characters."""
    if known is None:
        return "-"
    return f"{known.rate:.0f}/s" if known.rate is not None else f"{known.limit}{'!' if known.rejects else ''}"


def lane_from(transport: SimulatedTransport, known: Learned | None) -> Lane:
    """A lane as a new engine makes it from what was left behind: the same as plaudit.session does."""
    start = None
    if known is not None and known.limit is not None:
        least = 1 if known.rejects else LimitConfig().start
        start = LimitConfig(start=max(known.limit, least), is_known=True, rejects=known.rejects)
    lane = Lane(Endpoint("http://server/v1", model=MODEL), transport, start=start)
    if known is not None and known.rate is not None:
        lane.pace.begin(now=asyncio.get_running_loop().time(), rate=known.rate)
    return lane


def best(scenario: Scenario, batch: Sequence[Sample]) -> float:
    """Seconds that nobody can beat."""
    return ideal_makespan(scenario, costs_of(scenario, requests_of(batch), model=MODEL))


async def by_engine(
    scenario: Scenario, batch: Sequence[Sample], known: Learned | None
) -> tuple[Run, Learned | None]:
    """Score a batch with everything of the engine but its thread; with it, what it would leave behind."""
    transport = SimulatedTransport(scenario, model=MODEL)
    lane = lane_from(transport, known)
    scorer = Scorer(lambda on_room: Dispatcher([lane], on_room=on_room))
    work = Batch(batch, JUDGE, model=MODEL)

    async def score() -> int:
        done = asyncio.Event()
        work.when_done(done.set)
        scorer.start(work)
        await done.wait()
        return sum(verdict is not None and verdict.score is not None for verdict in work.verdicts)

    result = await _timed(scenario, batch, transport, score)
    await scorer.close()
    learned = stored_by(lane)
    return replace(result, learned=said(learned)), learned


async def by_careful_loop(scenario: Scenario, batch: Sequence[Sample]) -> Run:
    """Score a batch with the loop that a careful engineer writes."""
    transport = SimulatedTransport(scenario, model=MODEL)
    return await _timed(scenario, batch, transport, lambda: careful.judged(transport, batch))


async def _timed(
    scenario: Scenario,
    batch: Sequence[Sample],
    transport: SimulatedTransport,
    work: Callable[[], Coroutine[None, None, int]],
) -> Run:
    """Do the work, which gives the number of verdicts, unless it takes far too long."""
    ideal = best(scenario, batch)
    clock = asyncio.get_running_loop().time
    start, found, is_finished = clock(), 0, False
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(CUT * ideal + CUT_SECONDS):
            found = await work()
            is_finished = True
    seconds = clock() - start
    stats = transport.server.stats
    faults = sum(count for kind, count in stats.faults.items() if kind not in NO_FAILURE)
    requests = max(1, stats.requests)
    return Run(
        ratio=seconds / ideal if is_finished else math.inf,
        seconds=seconds,
        ideal=ideal,
        lost=len(batch) - found if is_finished else 0,
        refused=stats.over_capacity / requests,
        weather=faults / requests,
        requests=stats.requests,
    )


def measure(case: Case) -> Measured:
    """The three runs on one server, each on a server that starts anew."""
    first, second = samples(case.samples), samples(case.samples, tag=" (2)")
    cold, learned = run(by_engine(case.drawn.scenario, first, None))
    warm, _ = run(by_engine(case.warm or case.drawn.scenario, second, learned))
    return Measured(case.drawn, cold, warm, run(by_careful_loop(case.drawn.scenario, first)))


def measured(cases: Sequence[Case], jobs: int) -> Iterator[Measured]:
    """Every case in turn, on so many processes."""
    if jobs == 1:
        yield from map(measure, cases)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(measure, cases, chunksize=1)


def watched(results: Iterator[Measured], count: int) -> list[Measured]:
    """The results, counted on the terminal while they come in."""
    found: list[Measured] = []
    start = time.perf_counter()
    for result in results:
        found.append(result)
        if sys.stderr.isatty() or len(found) % 50 == 0 or len(found) == count:
            print(f"{len(found)} of {count} servers, {time.perf_counter() - start:.0f} s", file=sys.stderr)
    return found


def report(found: Sequence[Measured], worst: int) -> int:
    """Print what was measured; the answer is how many goals were missed."""
    misses = 0
    for name, runs in (("cold", [one.cold for one in found]), ("warm", [one.warm for one in found])):
        misses += _report_runs(name, runs)
        slower = [one for one, engine in zip(found, runs, strict=True) if one.loop.ratio < engine.ratio]
        fair = [one for one in slower if one.loop.is_finished and not one.loop.lost]
        misses += bool(fair)
        numbers = ", ".join(str(one.drawn.number) for one in fair)
        print(
            f"      slower than the careful loop: {len(slower)}; "
            f"where that lost nothing: {len(fair)} ({numbers})"
        )
    loops = [one.loop for one in found]
    _report_runs("loop", loops)
    for name, key in (("cold", lambda one: one.cold.ratio), ("warm", lambda one: one.warm.ratio)):
        ranked = sorted(found, key=key, reverse=True)[:worst]
        table.show(f"The {len(ranked)} worst {name}", HEADER, [_row(one) for one in ranked])
    return misses


def _report_runs(name: str, runs: Sequence[Run]) -> int:
    ranked = sorted(one.ratio for one in runs)
    found = statistics.median(ranked), ranked[math.ceil(0.9 * len(ranked)) - 1], ranked[-1]
    unfinished, lost = sum(not one.is_finished for one in runs), sum(one.lost for one in runs)
    requests = sum(one.requests for one in runs)
    refused = sum(one.refused * one.requests for one in runs) / requests
    over = sum(one.refused > MOST_REFUSED for one in runs)
    weather = sum(one.weather * one.requests for one in runs) / requests
    goals = GOALS.get(name)
    shown = (f"{label} {ratio:.3f}" for label, ratio in zip(("median", "p90", "worst"), found, strict=True))
    print(f"{name}: {', '.join(shown)}" + (f" (goals {goals})" if goals else ""))
    print(f"      not finished {unfinished}, samples lost {lost}")
    print(
        f"      refused over capacity {100 * refused:.1f}% of {requests:,} requests, over "
        f"{100 * MOST_REFUSED:.0f}% on {over} servers; failed by weather {100 * weather:.1f}%"
    )
    if goals is None:
        return 0
    missed = sum(ratio > goal for ratio, goal in zip(found, goals, strict=True))
    return missed + bool(unfinished or lost) + bool(over)


HEADER = ("server", "cold", "warm", "loop", "ideal", "lost", "loop", "refused", "warm", "weather", "stored")


def _row(one: Measured) -> tuple[str, ...]:
    number = f"#{one.drawn.number} " if one.drawn.number >= 0 else ""
    return (
        f"{number}{one.drawn.about}",
        _ratio(one.cold),
        _ratio(one.warm),
        _ratio(one.loop),
        f"{one.cold.ideal:.1f} s",
        f"{one.cold.lost + one.warm.lost}",
        f"{one.loop.lost}",
        f"{100 * one.cold.refused:.1f}%",
        f"{100 * one.warm.refused:.1f}%",
        f"{100 * one.cold.weather:.1f}%",
        one.cold.learned,
    )


def _ratio(one: Run) -> str:
    return f"{one.ratio:.2f}" if one.is_finished else f"> {one.seconds / one.ideal:.0f}"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--servers", type=int, default=SERVERS)
    parser.add_argument("--seed", type=int, default=0, help="another draw: server numbers from 10,000 x SEED")
    parser.add_argument("--only", metavar="N,N", help="the servers of these numbers, each with its row")
    parser.add_argument("--table", action="store_true", help="named servers instead, each with its row")
    parser.add_argument("--samples", type=int, default=SAMPLES)
    parser.add_argument("--worst", type=int, default=10, help="how many of the worst to show")
    parser.add_argument("--jobs", type=int, default=1, help="processes to measure with")
    options = parser.parse_args()
    if options.table:
        cases = list(NAMED)
    else:
        first = 10_000 * options.seed
        numbers = range(first, first + options.servers)
        if options.only:
            numbers = [int(number) for number in options.only.split(",")]
        cases = [Case(draw(number), options.samples) for number in numbers]
    found = watched(measured(cases, options.jobs), len(cases))
    if options.table or options.only:
        table.show("Makespan over ideal, in virtual time", HEADER, [_row(one) for one in found])
        return 0
    print(
        f"Makespan over ideal on {len(found)} servers drawn at random, "
        f"{options.samples:,} samples, virtual time"
    )
    return 1 if report(found, options.worst) else 0


if __name__ == "__main__":
    sys.exit(main())
