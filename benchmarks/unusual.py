"""How the engine does on servers unlike those it was built on: that batch, crash, ban, load, drift or pause.

    python benchmarks/unusual.py                  four servers of each family, in virtual time
    python benchmarks/unusual.py --draws 20       twenty of each
    python benchmarks/unusual.py --only 11,29     these servers again

"Cold" is the batch of an engine that knows nothing; "warm" the same batch with a new engine that starts from
what the first would have stored, on a server that starts anew. No ideal is known for these servers: what both
are compared with is the best of a dozen fixed numbers of calls at once, which only somebody who had tried all
of them would know; each call is sent again until it passes. "Refused" is the share of requests that ended
with an error of the server's.

The status is 1 where a sample was lost that this reference did not lose.
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import random
import statistics
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import table
from unusual_servers import FAMILIES, Server, about, server_of
from weather import CUT, CUT_SECONDS, Run, result_of, said, score_with_engine, timed, watched
from workload import SAMPLES, requests_of, samples

from plaudit import ChatRequest, Sample
from plaudit.errors import TransientError
from plaudit.scheduling.learned_limits import Learned
from plaudit.testing import run

DRAWS = 4
WORST = 10
AT_ONCE = (4, 8, 16, 32, 64, 96, 128, 192, 256, 384, 512, 1024)
IN_VAIN = 3
"""After so many numbers in a row that were no better, larger ones are not tried: most would be refused."""
FIRST_WAIT, LONGEST_WAIT = 0.05, 1.0
"""Seconds before the reference sends a call again where the server names no wait."""
LONGEST = 10_000.0
"""Seconds after which the reference is given up, too."""
BY_FAMILY = ("family", "servers", "cold", "warm", "worst", "warm", "lost", "warm", "refused", "warm")
BY_SERVER = (
    "server", "cold", "warm", "reference", "at once", "lost", "warm", "reference", "refused", "warm",
    "stored",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Reference:
    """The best that a fixed number of calls at once comes to."""

    seconds: float
    at_once: int
    missing: int
    """Samples without a reply."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One server, met in three ways."""

    number: int
    cold: Run
    warm: Run
    reference: Reference

    @property
    def worse(self) -> Run:
        return max(self.cold, self.warm, key=lambda one: one.badness)

    @property
    def is_lossy(self) -> bool:
        """Whether the engine lost more samples than the reference."""
        return max(self.cold.missing, self.warm.missing) > self.reference.missing


# -- the reference ----------------------------------------------------------------------------------------


async def by_fixed_number(
    server: Server, requests: Sequence[ChatRequest], at_once: int, within: float
) -> Reference:
    """Send everything, so many at once, each until it passes."""
    waiting, jitter = iter(requests), random.Random(at_once)
    missing = len(requests)

    async def work() -> None:
        nonlocal missing
        for request in waiting:
            await send_until_it_passes(server, request, jitter)
            missing -= 1

    async def everything() -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(at_once):
                group.create_task(work())

    seconds, _ = await timed(everything(), within=within)
    return Reference(seconds, at_once, missing)


async def send_until_it_passes(server: Server, request: ChatRequest, jitter: random.Random) -> None:
    """Send a request again and again, after the wait that the server asks for or a growing one."""
    wait = FIRST_WAIT
    while True:
        try:
            await server.send(request)
        except TransientError as error:
            asked = error.retry_after
            await asyncio.sleep((wait if asked is None else asked) * jitter.uniform(1.0, 1.5))
            wait = min(2 * wait, LONGEST_WAIT)
        else:
            return


def best_fixed_number(number: int, batch: Sequence[Sample]) -> Reference:
    """The best of all numbers at once; one that takes longer than another before it is not waited for."""
    requests, found, in_vain = requests_of(batch), Reference(LONGEST, 0, len(batch)), 0
    for at_once in AT_ONCE:
        other = run(by_fixed_number(server_of(number), requests, at_once, found.seconds))
        is_better = (other.missing, other.seconds) < (found.missing, found.seconds)
        found, in_vain = (other, 0) if is_better else (found, in_vain + 1)
        if in_vain == IN_VAIN:
            break
    return found


# -- the engine -------------------------------------------------------------------------------------------


async def by_engine(
    server: Server, batch: Sequence[Sample], reference: float, known: Learned | None
) -> tuple[Run, Learned | None]:
    """Score a batch; with it, what the engine would leave behind."""
    seconds, is_finished, verdicts, learned = await score_with_engine(
        server, batch, known, within=CUT * reference + CUT_SECONDS
    )
    stats = {"requests": server.requests, "over_capacity": server.refused, "faults": {}}
    result = result_of(seconds, reference, verdicts, stats, is_finished=is_finished, learned=said(learned))
    return result, learned


def measure(number: int, *, size: int) -> Measured:
    """The three runs, each on a server that starts anew."""
    batch = samples(size)
    reference = best_fixed_number(number, batch)
    cold, learned = run(by_engine(server_of(number), batch, reference.seconds, None))
    warm, _ = run(by_engine(server_of(number), batch, reference.seconds, learned))
    return Measured(number, cold, warm, reference)


def measured(numbers: Sequence[int], size: int, jobs: int) -> Iterator[Measured]:
    """Every server in turn, on so many processes."""
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(functools.partial(measure, size=size), numbers)


# -- what is shown ----------------------------------------------------------------------------------------


def family_row(name: str, found: Sequence[Measured]) -> tuple[str, ...]:
    """The servers of one family in a line; a run that was given up counts for the time it had."""
    both = [one.cold for one in found], [one.warm for one in found]
    return (
        name,
        f"{len(found)}",
        *(f"{statistics.geometric_mean(one.seconds / one.ideal for one in runs):.2f}" for runs in both),
        *(max(runs, key=lambda one: one.badness).shown for runs in both),
        *(f"{sum(one.missing for one in runs)}" for runs in both),
        *(share_refused(runs) for runs in both),
    )


def server_row(one: Measured) -> tuple[str, ...]:
    server = server_of(one.number)
    return (
        f"#{one.number} {server.family}: {about(server)}",
        one.cold.shown,
        one.warm.shown,
        f"{one.reference.seconds:.1f} s",
        f"{one.reference.at_once}",
        f"{one.cold.missing}",
        f"{one.warm.missing}",
        f"{one.reference.missing}",
        share_refused([one.cold]),
        share_refused([one.warm]),
        one.cold.learned,
    )


def share_refused(runs: Sequence[Run]) -> str:
    return f"{sum(one.refused for one in runs) / max(1, sum(one.requests for one in runs)):.0%}"


def report(found: Sequence[Measured], worst: int) -> None:
    """Print the families, and the worst servers."""
    rows = []
    for index, family in enumerate(FAMILIES):
        members = [one for one in found if one.number % len(FAMILIES) == index]
        if members:
            rows.append(family_row(family.family, members))
    table.show(
        "Makespan over that of the best fixed number, virtual time",
        BY_FAMILY,
        [*rows, family_row("all", found)],
    )
    ranked = sorted(found, key=lambda one: one.worse.badness, reverse=True)[:worst]
    table.show(f"The {len(ranked)} worst", BY_SERVER, [server_row(one) for one in ranked])


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=DRAWS, help="servers of each family")
    parser.add_argument("--only", metavar="N,N", help="the servers of these numbers, each with its row")
    parser.add_argument("--samples", type=int, default=SAMPLES)
    parser.add_argument("--jobs", type=int, default=2, help="processes to measure with")
    options = parser.parse_args()
    numbers: Sequence[int] = range(options.draws * len(FAMILIES))
    if options.only:
        numbers = [int(number) for number in options.only.split(",")]
    found = watched(measured(numbers, options.samples, options.jobs), len(numbers), every=len(FAMILIES))
    report(found, len(found) if options.only else WORST)
    lossy = [f"#{one.number}" for one in found if one.is_lossy]
    print(f"samples lost that the reference did not lose: {', '.join(lossy) or 'none'}")
    return 1 if lossy else 0


if __name__ == "__main__":
    sys.exit(main())
