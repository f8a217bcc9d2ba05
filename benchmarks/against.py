"""An earlier commit beside this tree, in one run: makespan over ideal, and CPU a request.

    python benchmarks/against.py COMMIT [--seeds 5] [--rounds 7] [--real] [--quick]

The commit is unpacked into a temporary folder, and each tree runs the benchmarks that it came with, in turn
with the other. In virtual time the makespans are exact; with --real they are taken over sockets, in time
compressed five times. CPU is measured at one server that answers at once; ratios are taken within a round,
because a busy machine slows both alike. A client that one of the trees cannot run here, for want of a package
that it needed then, is left out, and said to be.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import table
from clients import ROOT, run_client
from house import checkout
from simulated import simulators
from workload import SITES

from plaudit.simulator import PRESETS

CLIENTS = {"plaudit": "engine", "plaudit-stored": "engine, every verdict stored", "score": "plaudit score"}
MAKESPAN_COLUMNS = {"cold": 1, "second": 4}
"""Where the table of makespan.py has them."""
AT_ONCE, WARM_UP = 64, 300
WORSE = 1.05
"""A ratio of new over old past this is marked."""


def makespans(tree: Path, site: str, words: Sequence[str]) -> dict[str, float]:
    """Makespan over ideal of a tree's first and second batch on one site."""
    command = [sys.executable, "benchmarks/makespan.py", "--only", site, *words]
    environment = os.environ | {"PYTHONPATH": str(tree / "src")}
    done = subprocess.run(command, cwd=tree, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    rows = [line for line in done.stdout.splitlines() if line.startswith(f"| {site}: ")]
    if len(rows) != 1:  # the status also says whether goals were met, so it proves nothing
        raise RuntimeError(f"{tree}: makespan.py --only {site} printed no row:\n{done.stdout}")
    cells = [cell.strip() for cell in rows[0].strip("|").split("|")]
    return {name: float(cells[column]) for name, column in MAKESPAN_COLUMNS.items()}


def show_makespans(trees: dict[str, Path], words: Sequence[str], how: str) -> None:
    rows = []
    for site in SITES:
        old, new = (makespans(tree, site.name, words) for tree in trees.values())
        cells = [(f"{old[name]:.3f}", f"{new[name]:.3f}", _ratio(new[name] / old[name])) for name in old]
        rows.append((f"{site.name}: {site.about}", *(cell for group in cells for cell in group)))
    before, now = trees
    header = ("server", f"cold {before}", now, "ratio", f"second {before}", now, "ratio")
    table.show(f"Makespan over ideal, 1,024 samples, {how}", header, rows)


def show_costs(trees: dict[str, Path], rounds: int, requests: int) -> None:
    costs: dict[tuple[str, str], list[float]] = {(client, name): [] for client in CLIENTS for name in trees}
    left_out: dict[str, str] = {}
    with simulators([PRESETS["instant"]]) as (server,):
        for number in range(rounds):
            order = list(trees) if number % 2 else list(reversed(trees))
            for client in CLIENTS:
                for name in order if client not in left_out else ():
                    try:
                        ran = run_client(
                            client,
                            [server.url],
                            count=requests,
                            at_once=AT_ONCE,
                            warm_up=WARM_UP,
                            tree=trees[name],
                        )
                    except subprocess.CalledProcessError:
                        left_out[client] = f"{name} cannot run it here"
                        break
                    if ran.failed:
                        raise RuntimeError(f"{client} of {name}: {ran.failed} of {requests} requests failed")
                    costs[client, name].append(1e6 * ran.cpu / requests)
    before, now = trees
    rows = []
    for client, about in CLIENTS.items():
        if client in left_out:
            rows.append((about, "-", "-", left_out[client]))
            continue
        old, new = costs[client, before], costs[client, now]
        ratio = statistics.median(after / base for base, after in zip(old, new, strict=True))
        rows.append(
            (about, f"{statistics.median(old):,.0f}", f"{statistics.median(new):,.0f}", _ratio(ratio))
        )
    table.show(
        f"CPU a request, microseconds: {requests:,} requests, {AT_ONCE} at once, median of {rounds} rounds",
        ("client", before, now, "ratio"),
        rows,
    )


def _ratio(ratio: float) -> str:
    return f"{ratio:.3f}{' WORSE' if ratio > WORSE else ''}"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("commit")
    parser.add_argument("--seeds", type=int, default=5, help="runs on each server")
    parser.add_argument("--rounds", type=int, default=7, help="rounds of the CPU measurement")
    parser.add_argument("--requests", type=int, default=3000, help="requests of each client in each round")
    parser.add_argument("--real", action="store_true", help="makespans over real sockets, too (minutes)")
    parser.add_argument("--quick", action="store_true", help="one short round, to see that it works")
    options = parser.parse_args()
    if options.quick:
        options.seeds, options.rounds, options.requests = 1, 1, 1200
    with tempfile.TemporaryDirectory(prefix="plaudit-against-") as folder:
        trees = {options.commit: checkout(options.commit, Path(folder)), "now": ROOT}
        show_makespans(trees, ["--seeds", str(options.seeds)], f"virtual time, median of {options.seeds}")
        if options.real:
            show_makespans(trees, ["--seeds", "1", "--real", "--speed", "5"], "real sockets, one seed")
        show_costs(trees, options.rounds, options.requests)
    return 0


if __name__ == "__main__":
    sys.exit(main())
