"""The same makespans for the usual ways of sending a thousand prompts, beside plaudit, on the same servers.

    python benchmarks/peers.py [--only rejecting knee] [--rate 60] [--quick]

Over real HTTP, servers and clients each in a process of its own. Time is compressed, for each server by as
much as makes an ideal client finish `--rate` calls a second: the least that the costliest peer keeps up with
on one core. The last column shows the busiest a client was; near 100% its processor, and not its policy, was
the limit, and the rate should be lower. Ratios that hold at half the rate do not depend on it.

A failed call that nobody retries to the end leaves a sample without a verdict: "lost". A makespan with lost
samples is no makespan. Two ways are too slow to wait for and are extrapolated from a part of the batch, by
the work in it: one at a time (16 samples) and 8 threads (128).
"""

from __future__ import annotations

import argparse
import importlib.metadata
import sys
from dataclasses import dataclass

import table
from clients import Ran, run_client
from simulated import simulators
from workload import MODEL, SAMPLES, SITES, Site, ideal, requests_of, samples

from plaudit.simulator import PRESETS, Rate, works_of

FIRST_TAG = " (1)"
WARM_UP = 16
"""Requests to another server beforehand: what a client imports on first use is not its makespan."""


@dataclass(frozen=True, slots=True)
class Peer:
    name: str
    client: str
    at_once: int
    part: int | None = None
    """How many samples are really sent, where the rest is extrapolated."""


PEERS = (
    Peer("plaudit", "plaudit", 0),
    Peer("one at a time, OpenAI SDK (extrapolated)", "threads-openai", 1, part=16),
    Peer("8 threads, OpenAI SDK (extrapolated)", "threads-openai", 8, part=128),
    Peer("60 threads, OpenAI SDK", "threads-openai", 60),
    Peer("gather, semaphore 60, AsyncOpenAI", "gather-openai", 60),
    Peer("gather, semaphore 60, litellm", "gather-litellm", 60),
    Peer("gather, semaphore 60, aiohttp, no retries", "gather-aiohttp", 60),
    Peer("cookbook's parallel processor", "cookbook", 0),
)


@dataclass(frozen=True, slots=True)
class Cell:
    """One peer on one site."""

    ratio: float
    lost: int
    rejected: float
    busy: float
    """CPU seconds of the client per second."""


def measure(site: Site, peer: Peer, *, seed: int, count: int, rate: float) -> Cell:
    servers = site.seeded(seed)
    batch = samples(count, tag=FIRST_TAG)
    best = ideal(servers, batch)
    speed = max(1.0, rate * best / count)
    part = min(peer.part or count, count)
    with simulators([PRESETS["instant"], *servers], speed=speed) as (instant, *running):
        ran: Ran = run_client(
            peer.client,
            [server.url for server in running],
            warm_up=WARM_UP,
            warm_up_url=instant.url,
            count=part,
            at_once=peer.at_once,
            speed=speed,
            rpm=rpm_for(site),
        )
        stats = [server.stats() for server in running]
    seconds = ran.seconds * speed * share_of_work(site, seed, count=count, part=part)
    rejected = sum(one["rejected"] for one in stats) / max(1, sum(one["requests"] for one in stats))
    return Cell(seconds / best, ran.failed * count // part, rejected, ran.cpu / ran.seconds)


def rpm_for(site: Site) -> float:
    """What the cookbook's user writes down: the true rate where there is one, else its default."""
    capacity = site.servers[0].capacity
    return 60 * capacity.per_second if isinstance(capacity, Rate) else 1500.0


def share_of_work(site: Site, seed: int, *, count: int, part: int) -> float:
    """The work of the whole batch over that of its first samples, as its first server would do it."""
    works = works_of(site.seeded(seed)[0], requests_of(samples(count, tag=FIRST_TAG)), model=MODEL)
    return sum(works) / sum(works[:part])


def versions() -> str:
    found = {one.name: one.version for one in importlib.metadata.distributions()}
    return ", ".join(f"{name} {found[name]}" for name in ("aiohttp", "openai", "litellm") if name in found)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="*", metavar="SERVER", help=", ".join(site.name for site in SITES))
    parser.add_argument("--peers", nargs="*", metavar="WORD", help="only peers whose name has such a word")
    parser.add_argument("--samples", type=int, default=SAMPLES)
    parser.add_argument("--seeds", type=int, default=1, help="runs of each, of which the median counts")
    parser.add_argument("--rate", type=float, default=60.0, help="calls a second that an ideal client makes")
    parser.add_argument("--quick", action="store_true", help="256 samples on one server, at 120 a second")
    options = parser.parse_args()
    if options.quick:
        options.only, options.samples, options.rate = ["rejecting"], 256, 120.0
    sites = [site for site in SITES if not options.only or site.name in options.only]
    peers = [peer for peer in PEERS if not options.peers or any(w in peer.name for w in options.peers)]
    cells: dict[tuple[str, str], Cell] = {}
    for site in sites:
        for peer in peers:
            runs = [
                measure(site, peer, seed=seed, count=options.samples, rate=options.rate)
                for seed in range(options.seeds)
            ]
            cells[peer.name, site.name] = sorted(runs, key=lambda cell: cell.ratio)[len(runs) // 2]
            print(".", end="", flush=True, file=sys.stderr)
    report(sites, peers, cells, options)
    return 0


def report(
    sites: list[Site], peers: list[Peer], cells: dict[tuple[str, str], Cell], options: argparse.Namespace
) -> None:
    def shown(cell: Cell) -> str:
        return f"{cell.ratio:.2f}" + (f", {cell.lost:,} lost" if cell.lost else "")

    rows = []
    rejects = []
    for peer in peers:
        mine = [cells[peer.name, site.name] for site in sites]
        busiest = max(cell.busy for cell in mine)
        rows.append((peer.name, *(shown(cell) for cell in mine), f"{100 * busiest:.0f}%"))
        rejects.append((peer.name, *(f"{100 * cell.rejected:.0f}%" for cell in mine)))
    names = [site.name for site in sites]
    goals = ["" if site.goal is None else f"{site.goal:.2f}" for site in sites]
    table.show(
        f"Makespan over ideal: {options.samples:,} samples, cold, median of {options.seeds}, over HTTP, "
        f"{options.rate:g} calls a second at best ({versions()})",
        ("client", *names, "CPU"),
        [*rows, ("goal for plaudit", *goals, "")],
    )
    table.show("Requests turned away, of all that were sent", ("client", *names), rejects)
    print(
        "verl's rate_limited manager needs torch and Ray: benchmarks/verl_rate.py measures it beside plaudit."
    )


if __name__ == "__main__":
    sys.exit(main())
