"""What a sample costs the engine in memory and in time: in a batch of 100,000, and in batches of 1,000.

    python benchmarks/memory.py [--samples 100000]

The server is simulated in this process and answers at once, so that there is nothing to wait for. Time is
the processor's, the simulator's share included; small batches are measured before and after the large one.
Memory is what comes on top of the samples, which exist before the engine starts: at its peak while the batch
runs, and what the verdicts keep afterwards, as Python counts it (in a run of its own: counting takes time).
"""

from __future__ import annotations

import argparse
import gc
import os
import statistics
import tempfile
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager

from plaudit import Endpoint, Engine, Rubric, Sample
from plaudit.simulator import PRESETS, SimulatedTransport
from plaudit.transports import Transport

JUDGE = Rubric("Is it correct and brief?")
SMALL = 1_000
REPEATS = 15
GOAL_BYTES = 2_000
GOAL_SLOWDOWN = 1.1


def samples(count: int, *, first: int = 0) -> list[Sample]:
    numbers = range(first, first + count)
    return [Sample(f"What is {number} + {number}?", f"It is {2 * number}.") for number in numbers]


def instant(_: Endpoint) -> Transport:
    return SimulatedTransport(PRESETS["instant"])


@contextmanager
def opened() -> Iterator[Engine]:
    """An engine that has judged something, so that nothing is counted that is there but once."""
    with Engine("http://simulated/v1", model="simulated", cache=None, transport=instant) as engine:
        engine.score([Sample("Is it warm?", str(number)) for number in range(SMALL)], JUDGE)
        yield engine


def microseconds(engine: Engine, batch: list[Sample]) -> float:
    """Processor time per sample."""
    gc.collect()
    start = time.process_time()
    verdicts = engine.score(batch, JUDGE)
    seconds = time.process_time() - start
    assert all(verdict.is_valid for verdict in verdicts)
    return 1e6 * seconds / len(batch)


def in_small_batches() -> list[float]:
    with opened() as engine:
        return [microseconds(engine, samples(SMALL, first=SMALL * turn)) for turn in range(REPEATS)]


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
    before = in_small_batches()
    with opened() as engine:
        large = microseconds(engine, samples(count))
    small = statistics.median(before + in_small_batches())
    print(f"time per sample: {small:.0f} µs in batches of {SMALL:,}, {large:.0f} µs in one of {count:,}")
    print(f"ratio {large / small:.2f}; goal: at most {GOAL_SLOWDOWN}")
    peak, kept = bytes_each(count)
    print(f"memory per sample beyond the samples: {peak:,.0f} bytes at the peak, {kept:,.0f} afterwards")
    print(f"goal: under {GOAL_BYTES:,} bytes")
    if peak >= GOAL_BYTES or large / small > GOAL_SLOWDOWN:
        raise SystemExit("a goal is missed")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Measure memory and time per sample in large batches.")
    parser.add_argument("--samples", type=int, default=100_000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["PLAUDIT_HOME"] = scratch  # what is learned about this server is of no use to anybody
        main(arguments.samples)
