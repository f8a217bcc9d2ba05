"""What a sample costs the engine in memory and in time: in a batch of 100,000, and in batches of 1,000.

    python benchmarks/memory.py [--samples 100000]

The server is simulated in this process and answers at once, so that there is nothing to wait for. Time is
the processor's, the simulator's share included. It is taken for each tenth of the samples: neighbours on the
machine can only add to it, so the least of several turns counts, and the last tenth of the large batch shows
whether size slows it down.
Memory is what comes on top of the samples, which exist before the engine starts: at its peak while the batch
runs, and what the verdicts keep afterwards, as Python counts it (in a run of its own: counting takes time).
"""

from __future__ import annotations

import argparse
import gc
import itertools
import os
import statistics
import tempfile
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager

from plaudit import Endpoint, Engine, Rubric, Sample
from plaudit.events import Event, Observer, VerdictsReady
from plaudit.simulator import PRESETS, SimulatedTransport
from plaudit.transports import Transport

JUDGE = Rubric("Is it correct and brief?")
SMALL = 1_000
TURNS = 3
TENTHS = 10
GOAL_BYTES = 2_000
GOAL_SLOWDOWN = 1.1


def samples(count: int, *, first: int = 0) -> list[Sample]:
    numbers = range(first, first + count)
    return [Sample(f"What is {number} + {number}?", f"It is {2 * number}.") for number in numbers]


def instant(_: Endpoint) -> Transport:
    return SimulatedTransport(PRESETS["instant"])


@contextmanager
def opened(*observers: Observer) -> Iterator[Engine]:
    """An engine that has judged something, so that nothing is counted that is there but once."""
    with Engine(
        "http://simulated/v1", model="simulated", cache=None, transport=instant, observers=observers
    ) as engine:
        engine.score([Sample("Is it warm?", str(number)) for number in range(SMALL)], JUDGE)
        yield engine


def tenths(count: int, size: int) -> list[float]:
    """Microseconds of processor time per sample, for each tenth of so many samples, in batches of a size."""
    marks: list[float] = []
    done = 0

    def mark(event: Event) -> None:
        nonlocal done
        if isinstance(event, VerdictsReady):
            done += len(event.verdicts)
            while done >= SMALL + len(marks) * count // TENTHS:
                marks.append(time.process_time())

    batches = [samples(size, first=start) for start in range(0, count, size)]
    with opened(mark) as engine:
        gc.collect()
        for batch in batches:
            assert all(verdict.is_valid for verdict in engine.score(batch, JUDGE))
    return [1e6 * (end - start) / (count / TENTHS) for start, end in itertools.pairwise(marks)]


def least(count: int, size: int, into: list[float]) -> list[float]:
    """Each tenth at its cheapest so far."""
    new = tenths(count, size)
    return [min(pair) for pair in zip(into, new, strict=True)] if into else new


def bytes_each(count: int) -> tuple[float, float]:
    """Bytes per sample: at the peak, and held by the finished batch."""
    batch = samples(count)
    with opened() as engine:
        gc.collect()
        tracemalloc.start()
        pending = engine.submit(batch, JUDGE)
        assert len(pending.result()) == count
        kept, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    return peak / count, kept / count


def main(count: int) -> None:
    small: list[float] = []
    large: list[float] = []
    for _ in range(TURNS):
        small, large = least(count, SMALL, small), least(count, count, large)
    ratio = statistics.median(large) / statistics.median(small)
    print(f"µs per sample, each tenth at the least of {TURNS} turns:")
    for size, costs in ((SMALL, small), (count, large)):
        middle = statistics.median(costs)
        print(f"  in batches of {size:>7,}: median {middle:.0f}, first {costs[0]:.0f}, last {costs[-1]:.0f}")
    print(f"ratio {ratio:.2f}; goal: at most {GOAL_SLOWDOWN}")
    peak, kept = bytes_each(count)
    print(f"memory per sample beyond the samples: {peak:,.0f} bytes at the peak, {kept:,.0f} afterwards")
    print(f"goal: under {GOAL_BYTES:,} bytes")
    if peak >= GOAL_BYTES or ratio > GOAL_SLOWDOWN:
        raise SystemExit("a goal is missed")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Measure memory and time per sample in large batches.")
    parser.add_argument("--samples", type=int, default=100_000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["PLAUDIT_HOME"] = scratch  # what is learned about this server is of no use to anybody
        main(arguments.samples)
