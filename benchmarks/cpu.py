"""What a request costs in CPU time: the engine and the command, against bare loops that only send and read.

    python benchmarks/cpu.py [--rounds 7] [--requests 3000] [--only CLIENT ...] [--quick]

The server answers at once, in a process of its own. Each client is a process too, measured from its first
request to its last after a warm-up, all its threads included. Clients take turns, so that a noisy machine
disturbs them alike; ratios are taken within a round. Bare loops and peers get their prompts ready-made;
plaudit renders, fingerprints, schedules and parses within the measured time, and `plaudit score` reads and
writes its files and stores every verdict.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import table
from clients import run_client
from simulated import simulators

from plaudit.simulator import PRESETS

AT_ONCE = 64
WARM_UP = 300
HEAVY = 12
"""Peers that cost milliseconds get so many times fewer requests ..."""
HEAVY_ROUNDS = 3
"""... and no more rounds than this."""


@dataclass(frozen=True, slots=True)
class Row:
    client: str
    about: str
    goal: float | None = None
    """Times the baseline."""
    is_heavy: bool = False


ROWS = (
    Row("bare-aiohttp", "bare loop on aiohttp"),
    Row("bare-pyreqwest", "bare loop on pyreqwest"),
    Row("bare-httptools", "bare loop on plaudit's own client (httptools)"),
    Row("bare-sockets", "bare loop on sockets, nothing checked"),
    Row("plaudit", "engine", 0.6),
    Row("plaudit-aiohttp", "engine on aiohttp"),
    Row("plaudit-pyreqwest", "engine on pyreqwest"),
    Row("plaudit-stored", "engine, every verdict stored in its file"),
    Row("score", "plaudit score", 0.9),
    Row("score-aiohttp", "plaudit score on aiohttp"),
    Row("score-pyreqwest", "plaudit score on pyreqwest"),
    Row("gather-openai", "AsyncOpenAI, gather and semaphore", is_heavy=True),
    Row("gather-litellm", "litellm, gather and semaphore", is_heavy=True),
)
BASELINE = "bare-aiohttp"


def measure(rows: Sequence[Row], rounds: int, requests: int) -> dict[str, list[float]]:
    """Microseconds of CPU a request, for each client and round."""
    costs: dict[str, list[float]] = {row.client: [] for row in rows}
    with simulators([PRESETS["instant"]]) as (server,):
        for number in range(rounds):
            for row in rows:
                if row.is_heavy and number >= HEAVY_ROUNDS:
                    continue
                share = HEAVY if row.is_heavy else 1
                count, warm_up = requests // share, WARM_UP // share
                ran = run_client(row.client, [server.url], count=count, at_once=AT_ONCE, warm_up=warm_up)
                if ran.failed:
                    raise RuntimeError(f"{row.client}: {ran.failed} of {count} requests failed")
                costs[row.client].append(1e6 * ran.cpu / count)
    return costs


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--requests", type=int, default=3000, help="requests of each client in each round")
    parser.add_argument("--quick", action="store_true", help="one short round, to see that it works")
    parser.add_argument("--only", nargs="+", metavar="CLIENT", help="these clients, and the baseline")
    options = parser.parse_args()
    if options.quick:
        options.rounds, options.requests = 1, 1200
    chosen = [row for row in ROWS if options.only is None or row.client in (BASELINE, *options.only)]
    costs = measure(chosen, options.rounds, options.requests)
    rows, misses = [], 0
    for row in chosen:
        mine, base = costs[row.client], costs[BASELINE]
        ratio = statistics.median(one / other for one, other in zip(mine, base, strict=False))
        is_met = row.goal is None or ratio <= row.goal
        misses += not is_met
        rows.append(
            (
                row.about,
                f"{statistics.median(mine):,.0f}",
                f"{min(mine):,.0f}",
                f"{ratio:.2f}",
                f"{row.goal:.1f}" if row.goal else "",
                ("yes" if is_met else "NO") if row.goal else "",
            )
        )
    print("$ python", *sys.argv)
    table.show(
        f"CPU a request, microseconds: {options.requests:,} requests, {AT_ONCE} at once, "
        f"{options.rounds} rounds in turn",
        ("client", "median", "least", f"over {BASELINE}", "goal", "met"),
        rows,
    )
    return 1 if misses and not options.quick else 0


if __name__ == "__main__":
    sys.exit(main())
