"""What hedging does to a batch in which 1.5% of the calls take 25 times as long.

    python benchmarks/tail.py [--seeds 5]

The same batch with and without hedging, in virtual time. A slow call gets a twin once it is an outlier and a
slot is idle; whichever reply comes first counts, the other call is ended. "Sent again" is the price.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
from collections.abc import Sequence

import table
from workload import JUDGE, MODEL, SAMPLES, Site, ideal, samples

from plaudit import Endpoint
from plaudit.config import EngineConfig
from plaudit.scheduling.batch import Batch
from plaudit.scheduling.dispatcher import Dispatcher
from plaudit.scheduling.lane import Lane
from plaudit.scheduling.scorer import Scorer
from plaudit.simulator import PRESETS, Queue, Scenario, SimulatedTransport
from plaudit.testing import run

STRAGGLER = PRESETS["straggler"]
GOAL = 0.5
SITES = (
    Site("a second endpoint with room", "", (STRAGGLER, STRAGGLER), GOAL),
    Site(
        "a second, much smaller endpoint", "", (STRAGGLER, STRAGGLER.replace(capacity=Queue(slots=8))), GOAL
    ),
    Site("the same endpoint alone", "", (STRAGGLER,)),
)


async def score(servers: Sequence[Scenario], count: int, *, hedge: bool) -> tuple[float, float]:
    """Seconds for the batch, and the share of calls sent a second time."""
    lanes = [
        Lane(Endpoint(f"http://server-{number}/v1", model=MODEL), SimulatedTransport(server, model=MODEL))
        for number, server in enumerate(servers)
    ]
    config = EngineConfig(hedge=hedge, timeout=600.0)
    scorer = Scorer(lambda on_room: Dispatcher(lanes, config, on_room=on_room))
    batch = Batch(samples(count), JUDGE, model=MODEL)
    done = asyncio.Event()
    clock = asyncio.get_running_loop().time
    start = clock()
    batch.when_done(done.set)
    scorer.start(batch)
    await done.wait()
    seconds = clock() - start
    await scorer.close()
    if any(verdict is None or verdict.score is None for verdict in batch.verdicts):
        raise RuntimeError("a sample has no verdict")
    return seconds, batch.hedges / count


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--samples", type=int, default=SAMPLES)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    rows, misses = [], 0
    for site in SITES:
        without, hedged, ratios, again, bests = [], [], [], [], []
        for seed in range(options.seeds):
            # Seeds apart: what is slow on one machine is not slow on another.
            servers = [server.replace(seed=10 * seed + n) for n, server in enumerate(site.servers)]
            plain, _ = run(score(servers, options.samples, hedge=False))
            quick, twins = run(score(servers, options.samples, hedge=True))
            without.append(plain)
            hedged.append(quick)
            ratios.append(quick / plain)
            again.append(twins)
            bests.append(ideal(servers, samples(options.samples)))
        ratio = statistics.median(ratios)
        is_met = site.goal is None or ratio <= site.goal
        misses += not is_met
        rows.append(
            (
                site.name,
                f"{statistics.median(without):.1f} s",
                f"{statistics.median(hedged):.1f} s",
                f"{statistics.median(bests):.1f} s",
                f"{ratio:.2f}",
                f"{site.goal:.2f}" if site.goal else "",
                f"{100 * statistics.median(again):.1f}%",
                ("yes" if is_met else "NO") if site.goal else "",
            )
        )
    table.show(
        f"Hedging: {options.samples:,} samples, 1.5% of calls 25 times slower, "
        f"median of {options.seeds} seeds, virtual time",
        ("twins go to", "without", "with", "ideal, no slow calls", "ratio", "goal", "sent again", "met"),
        rows,
    )
    return 1 if misses else 0


if __name__ == "__main__":
    sys.exit(main())
