"""How close to the ideal makespan a batch of 1,024 gets, on servers whose capacity nobody told the engine.

    python benchmarks/makespan.py                     in virtual time: exact, and a few seconds of CPU
    python benchmarks/makespan.py --real --speed 10   over real sockets, the servers in processes of their own
    python benchmarks/makespan.py --wild 30           on servers drawn at random

"Cold" is the first batch of a new engine. "Second" is the next batch, half a minute later. The ideal knows
the server's capacity at every moment, has no request turned away, and leaves no slot empty: see
plaudit.simulator.ideal. In virtual time everything but the engine's thread and the sockets is the real thing.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass

import table
from simulated import simulators
from workload import JUDGE, MODEL, SAMPLES, SITES, Site, ideal, samples, settled, wild_site

from plaudit import Endpoint, Engine, Verdict
from plaudit.scheduling.batch import Batch
from plaudit.scheduling.dispatcher import Dispatcher
from plaudit.scheduling.lane import Lane
from plaudit.scheduling.scorer import Scorer
from plaudit.simulator import Scenario, SimulatedTransport
from plaudit.testing import run

PAUSE = 30.0
"""Seconds between two batches: the trainer's own work."""
MOST_REJECTED = 0.10
HEADER = ("server", "cold", "spread", "goal", "second", "goal", "rejected", "second", "missing", "met")


@dataclass(frozen=True, slots=True)
class Measured:
    """One batch on one site."""

    ratio: float
    seconds: float
    rejected: float
    """Share of all requests that were turned away."""
    missing: int
    """Samples without a verdict."""
    limits: tuple[int, ...] = ()


async def in_virtual_time(servers: Sequence[Scenario], count: int, batches: int) -> list[Measured]:
    """Score batches one after the other with one scorer, on servers in memory."""
    clock = asyncio.get_running_loop().time
    transports = [SimulatedTransport(server, model=MODEL) for server in servers]
    lanes = [
        Lane(Endpoint(f"http://server-{number}/v1", model=MODEL), transport)
        for number, transport in enumerate(transports)
    ]
    scorer = Scorer(lambda on_room: Dispatcher(lanes, on_room=on_room))
    results = []
    for number in range(batches):
        best, batch = _next(servers, count, number)
        for transport in transports:
            transport.server.stats = transport.server.stats.reset()
        done = asyncio.Event()
        start = clock()
        batch.when_done(done.set)
        scorer.start(batch)
        async with asyncio.timeout(50 * best + 60):
            await done.wait()
        seconds = clock() - start
        stats = [transport.server.stats for transport in transports]
        rejected = sum(sum(one.rejects.values()) for one in stats) / sum(one.requests for one in stats)
        limits = tuple(lane.limit.limit for lane in lanes)
        results.append(Measured(seconds / best, seconds, rejected, _missing(batch.verdicts), limits))
        await asyncio.sleep(PAUSE)
    await scorer.close()
    return results


def over_sockets(servers: Sequence[Scenario], count: int, batches: int, speed: float) -> list[Measured]:
    """Score batches with one engine, over HTTP, on simulators in processes of their own."""
    results = []
    with tempfile.TemporaryDirectory() as home, simulators(servers, speed=speed) as running:
        endpoints = [Endpoint(server.url, model=MODEL) for server in running]
        os.environ["PLAUDIT_HOME"] = home  # no limit remembered from an earlier run
        with Engine(endpoints=endpoints, cache=None) as engine:
            for number in range(batches):
                best, batch = _next(servers, count, number)
                for server in running:
                    server.reset()
                start = time.perf_counter()
                verdicts = engine.score(batch.samples, JUDGE)
                seconds = speed * (time.perf_counter() - start)
                stats = [server.stats() for server in running]
                rejected = sum(one["rejected"] for one in stats) / sum(one["requests"] for one in stats)
                results.append(Measured(seconds / best, seconds, rejected, _missing(verdicts)))
                time.sleep(PAUSE / speed)
    return results


def _next(servers: Sequence[Scenario], count: int, number: int) -> tuple[float, Batch]:
    """A batch that was never seen before, and its ideal makespan on the servers as they then are."""
    batch = samples(count, tag=f" ({number})")
    now = servers if number == 0 else [settled(server) for server in servers]
    return ideal(now, batch), Batch(batch, JUDGE, model=MODEL)


def _missing(verdicts: Sequence[Verdict | None]) -> int:
    return sum(verdict is None or verdict.score is None for verdict in verdicts)


def measure(site: Site, options: argparse.Namespace) -> list[list[Measured]]:
    """For each seed, the batches in turn."""
    seeded = [site.seeded(seed) for seed in range(options.seeds)]
    if options.real:
        return [over_sockets(servers, options.samples, 2, options.speed) for servers in seeded]
    return [run(in_virtual_time(servers, options.samples, 2)) for servers in seeded]


def on_known_sites(options: argparse.Namespace) -> int:
    rows = []
    misses = 0
    for site in SITES:
        if options.only and site.name not in options.only:
            continue
        runs = measure(site, options)
        cold, second = [one[0] for one in runs], [one[1] for one in runs]
        rejected = statistics.median(one.rejected for one in cold)
        missing = sum(one.missing for batches in runs for one in batches)
        first, next_ = _median(cold), _median(second)
        is_met = first <= (site.goal or first) and next_ <= (site.second_goal or next_)
        is_met = is_met and rejected <= MOST_REJECTED and not missing
        misses += not is_met
        rows.append(
            (
                f"{site.name}: {site.about}",
                f"{first:.3f}",
                f"{min(one.ratio for one in cold):.2f}-{max(one.ratio for one in cold):.2f}",
                _goal(site.goal),
                f"{next_:.3f}",
                _goal(site.second_goal),
                f"{100 * rejected:.1f}%",
                f"{100 * statistics.median(one.rejected for one in second):.1f}%",
                f"{missing}",
                "yes" if is_met else "NO",
            )
        )
    how = f"real sockets, time compressed {options.speed:g} times" if options.real else "virtual time"
    table.show(
        f"Makespan over ideal: {options.samples:,} samples, median of {options.seeds} seeds, {how}; "
        f"at most {100 * MOST_REJECTED:.0f}% rejected",
        HEADER,
        rows,
    )
    return misses


def on_wild_sites(options: argparse.Namespace) -> int:
    rows: list[tuple[float, tuple[str, ...]]] = []
    cold_ratios, second_ratios, rejected = [], [], []
    for number in range(options.wild):
        site = wild_site(number, seed=options.seed)
        try:
            cold, second = run(in_virtual_time(site.seeded(number), options.samples, 2))
        except TimeoutError:
            cold = second = Measured(float("inf"), float("inf"), 1.0, options.samples)
        cold_ratios.append(cold.ratio)
        second_ratios.append(second.ratio)
        rejected.append(cold.rejected)
        rows.append(
            (
                cold.ratio,
                (
                    f"#{number} {site.name}: {site.about}",
                    f"{cold.ratio:.3f}",
                    f"{second.ratio:.3f}",
                    f"{100 * cold.rejected:.1f}%",
                    f"{100 * second.rejected:.1f}%",
                    f"{cold.seconds / cold.ratio:.1f} s",
                    f"{cold.limits[0] if cold.limits else '-'}",
                    f"{cold.missing + second.missing}",
                ),
            )
        )
    table.show(
        f"Makespan over ideal on {options.wild} servers drawn at random (seed {options.seed}), worst first",
        ("server", "cold", "second", "rejected", "second", "ideal", "limit", "missing"),
        [row for _, row in sorted(rows, key=lambda item: -item[0])],
    )
    for name, values in (("cold", cold_ratios), ("second", second_ratios), ("rejected", rejected)):
        ranked = sorted(values)
        tenth = ranked[min(len(ranked) - 1, round(0.9 * (len(ranked) - 1)))]
        print(f"{name:>9}: median {statistics.median(ranked):.3f}, p90 {tenth:.3f}, worst {ranked[-1]:.3f}")
    return 0


def _median(batches: Sequence[Measured]) -> float:
    return statistics.median(one.ratio for one in batches)


def _goal(goal: float | None) -> str:
    return "" if goal is None else f"{goal:.2f}"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="*", metavar="SERVER", help=", ".join(site.name for site in SITES))
    parser.add_argument("--samples", type=int, default=SAMPLES)
    parser.add_argument("--seeds", type=int, default=5, help="runs of each, with other reply lengths")
    parser.add_argument("--real", action="store_true", help="over real sockets, in compressed time")
    parser.add_argument("--speed", type=float, default=10.0, help="simulated seconds per second, with --real")
    parser.add_argument("--wild", type=int, default=0, metavar="N", help="N servers drawn at random instead")
    parser.add_argument("--seed", type=int, default=0, help="another draw, with --wild")
    options = parser.parse_args()
    misses = on_wild_sites(options) if options.wild else on_known_sites(options)
    return 1 if misses else 0


if __name__ == "__main__":
    sys.exit(main())
