"""How long 1,024 known verdicts take, through the whole engine: from a small file, and from a large one.

    python benchmarks/cached.py [--entries 1000000] [--folder DIR]

From `engine.score` to its return: rendering, fingerprints, look-up, hand-over. Each batch is one that this
engine has not read before. The server is simulated in memory and must not be asked again: that is checked.
On a busy machine the times are its neighbours'; the CPU time says more.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import table
from workload import JUDGE, MODEL, SAMPLES, samples

from plaudit import Engine, Sample, Source, Status, Verdict
from plaudit.caches.store import Store
from plaudit.scheduling import record
from plaudit.simulator import PRESETS, SimulatedTransport

REPEATS = 15
SMALL_GOAL, LARGE_GOAL = 0.030, 0.100
FILLER = record.encode(
    Verdict(7.0, Status.OK, "It is correct as far as it goes, but leaves out a step.", model=MODEL)
)


def batches() -> list[list[Sample]]:
    return [samples(SAMPLES, tag=f" ({number})") for number in range(REPEATS + 1)]


def engine_on(path: Path) -> Engine:
    return Engine(
        "http://simulated/v1",
        model=MODEL,
        cache=path,
        transport=lambda _: SimulatedTransport(PRESETS["instant"], model=MODEL),
    )


def fill(path: Path) -> None:
    """Have every batch judged once."""
    with engine_on(path) as engine:
        for batch in batches():
            engine.score(batch, JUDGE)


def grow(path: Path, entries: int) -> None:
    """Add verdicts of other people's samples, in the order of their pages: that is quick."""
    store = Store(path, on_trouble=print)
    keys = sorted((os.urandom(32) for _ in range(entries)), key=lambda key: (key[0] < 128, key))
    for start in range(0, entries, 50_000):
        store.put([(key, FILLER) for key in keys[start : start + 50_000]])
    store.close()


def measure(path: Path) -> tuple[list[float], list[float]]:
    """Seconds, and CPU seconds, for each batch but the first, which opens threads and file."""
    times, costs = [], []
    with engine_on(path) as engine:
        for batch in batches():
            start, cpu = time.perf_counter(), time.process_time()
            verdicts = engine.score(batch, JUDGE)
            times.append(time.perf_counter() - start)
            costs.append(time.process_time() - cpu)
            if any(verdict.source is not Source.CACHE for verdict in verdicts):
                raise RuntimeError("a known verdict was asked for again")
    return times[1:], costs[1:]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--entries", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path, help="where to build the file [default: a temporary one]")
    options = parser.parse_args()
    rows, misses = [], 0
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        os.environ["PLAUDIT_HOME"] = folder
        path = Path(folder) / "verdicts.sqlite"
        fill(path)
        for entries, goal in ((SAMPLES * (REPEATS + 1), SMALL_GOAL), (options.entries, LARGE_GOAL)):
            if goal == LARGE_GOAL:
                grow(path, entries)
            times, costs = measure(path)
            middle = statistics.median(times)
            misses += middle >= goal
            size = sum(file.stat().st_size for file in Path(folder).glob("verdicts.sqlite*"))
            rows.append(
                (
                    f"{entries:,} entries, {size / 1e6:,.0f} MB",
                    f"{1000 * middle:.1f} ms",
                    f"{1000 * min(times):.1f} ms",
                    f"{1000 * max(times):.1f} ms",
                    f"{1000 * min(costs):.1f} ms",
                    f"{1000 * goal:.0f} ms",
                    "yes" if middle < goal else "NO",
                )
            )
    table.show(
        f"{SAMPLES:,} known verdicts through the engine, {REPEATS} batches",
        ("file", "median", "least", "most", "CPU, least", "goal", "met"),
        rows,
    )
    return 1 if misses else 0


if __name__ == "__main__":
    sys.exit(main())
