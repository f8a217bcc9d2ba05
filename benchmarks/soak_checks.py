"""What a soak asks for and what must hold all the time: one outcome each, ceilings kept, memory flat."""

from __future__ import annotations

import gc
import math
import os
import re
import statistics
import sys
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from workload import JUDGE, MODEL

from plaudit import ChatRequest, Sample, Verdict
from plaudit.events import BatchFinished, BatchStarted, CallFinished, CallStarted, Event, VerdictsReady
from plaudit.simulator import Scenario
from plaudit.simulator.answer import answer
from plaudit.simulator.ask import ask_of
from plaudit.types import Status

SMALLEST, LARGEST = 50, 1500
"""Samples of a batch."""
REPEATED = 0.1
WITH_DEADLINE, CANCELLED = 0.15, 0.1
RECENT = 2000
"""How far back a repeated sample may lie."""
CHECKED = 8
"""One score in so many is compared with the one that the simulated model gives to this very sample."""
MOST_LOST = 0.001
"""Share of the samples that may end without a verdict though nobody called them off."""
MOST_SHOWN = 20
ALL = "all"
GROWTH = 1.05
"""What is held in the last quarter, over the first, that is still flat: no two moments are alike."""
WARM_UP = {"bytes (RSS)": 2_000_000.0, "blocks of memory": 5_000.0}
"""By how much a process grows, on top of that, until it has seen everything once."""


def sample(number: int) -> Sample:
    return Sample(f"What is {number} + 1?", f"It is {number + 1}.")


def true_score(number: int) -> float | None:
    """What the simulated model says of this sample, on every server with seed 0."""
    one = sample(number)
    request = JUDGE.render(one)
    assert isinstance(request, ChatRequest)
    return JUDGE.parse(answer(Scenario(), ask_of(request, model=MODEL), tokens=1), one).score


@dataclass(frozen=True, slots=True)
class Order:
    """One batch to be scored."""

    numbers: Sequence[int]
    after: float
    """Seconds to wait before it is submitted."""
    deadline: float | None = None
    cancel_after: float | None = None

    @property
    def samples(self) -> list[Sample]:
        return [sample(number) for number in self.numbers]

    @property
    def is_called_off(self) -> bool:
        return self.deadline is not None or self.cancel_after is not None


def rounds(seed: int) -> Iterator[list[Order]]:
    """Batches that are on their way at the same time, again and again, most samples never seen before."""
    chance = Random(f"orders {seed}")
    newest = RECENT
    while True:
        orders = []
        for _ in range(chance.choice((1, 1, 2, 3, 4))):
            count = round(SMALLEST * (LARGEST / SMALLEST) ** chance.random())
            numbers = []
            for _ in range(count):
                is_old = chance.random() < REPEATED
                newest += not is_old
                numbers.append(newest - chance.randrange(RECENT) if is_old else newest)
            kind = chance.random()
            deadline = chance.uniform(0.2, 20.0) if kind < WITH_DEADLINE else None
            cancel = chance.uniform(0.0, 10.0) if 0.0 <= kind - WITH_DEADLINE < CANCELLED else None
            orders.append(Order(numbers, chance.uniform(0.0, 8.0), deadline, cancel))
        yield orders


@dataclass(slots=True)
class Watch:
    """An observer that checks while it counts. `ceilings`: calls at once, by endpoint and for `ALL`."""

    ceilings: Mapping[str, int] = field(default_factory=dict)
    rpm: Mapping[str, int] = field(default_factory=dict)
    calls: int = 0
    hedges: int = 0
    samples: int = 0
    batches: int = 0
    longest: float = 0.0
    """Seconds of the batch that took longest, of those that nobody called off."""
    peak: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    """Of calls."""
    verdicts: Counter[str] = field(default_factory=Counter)
    """Of samples, by status and source."""
    lost: Counter[str] = field(default_factory=Counter)
    """Samples that nobody called off and that have no verdict, by error."""
    violations: list[str] = field(default_factory=list)
    under_way: Counter[str] = field(default_factory=Counter)
    _all: int = 0
    _open: dict[int, list[int]] = field(default_factory=dict)
    _starts: dict[str, deque[float]] = field(default_factory=dict)

    def __call__(self, event: Event) -> None:
        match event:
            case CallStarted():
                self._on_start(event)
            case CallFinished():
                self._count(event.endpoint, event.in_flight)
                self.outcomes[event.outcome] += 1
            case BatchStarted():
                self._open[event.batch] = [event.samples, 0]
            case VerdictsReady():
                self._open[event.batch][1] += len(event.verdicts)
            case BatchFinished():
                wanted, got = self._open.pop(event.batch)
                if wanted != got:
                    self.wrong(f"batch {event.batch}: {got} outcomes for {wanted} samples")

    @property
    def in_flight(self) -> int:
        """Calls under way."""
        return self._all

    def _on_start(self, event: CallStarted) -> None:
        self.calls += 1
        self.hedges += event.is_hedge
        name = event.endpoint
        self._count(name, event.in_flight)
        for who, count in ((ALL, self._all), (name, event.in_flight)):
            if count > self.peak[who]:
                self.peak[who] = count
                if count > self.ceilings.get(who, math.inf):
                    self.wrong(f"{count} calls at once to {who}, {self.ceilings[who]} allowed")
        if (rpm := self.rpm.get(name)) is not None:
            starts = self._starts.setdefault(name, deque())
            while starts and starts[0] <= event.at - 60.0:
                starts.popleft()
            starts.append(event.at)
            if len(starts) > rpm:
                self.wrong(f"{len(starts)} requests to {name} within a minute, {rpm} allowed")

    def _count(self, endpoint: str, in_flight: int) -> None:
        self._all += in_flight - self.under_way[endpoint]
        self.under_way[endpoint] = in_flight

    def wrong(self, what: str) -> None:
        """Something happened that must not."""
        if len(self.violations) < MOST_SHOWN:
            print(f"VIOLATION: {what}", file=sys.stderr, flush=True)
        self.violations.append(what)

    def check(
        self, order: Order, verdicts: Sequence[Verdict | None], *, seconds: float, bound: float
    ) -> None:
        """A batch is over, or should be."""
        self.batches += 1
        self.samples += len(order.numbers)
        if missing := sum(verdict is None for verdict in verdicts):
            self.wrong(f"{missing} of {len(verdicts)} samples without an outcome after {seconds:.0f} s")
        if len(verdicts) != len(order.numbers):
            self.wrong(f"{len(verdicts)} outcomes for {len(order.numbers)} samples")
        if not order.is_called_off:
            self.longest = max(self.longest, seconds)
        if seconds > bound:
            self.wrong(f"a batch of {len(verdicts)} took {seconds:.0f} s, {bound:.0f} allowed")
        for number, verdict in zip(order.numbers, verdicts, strict=False):
            if verdict is not None:
                self._check_verdict(number, verdict, is_called_off=order.is_called_off)

    def _check_verdict(self, number: int, verdict: Verdict, *, is_called_off: bool) -> None:
        key = f"{verdict.status.value}, {verdict.source.value}" if verdict.is_valid else verdict.status.value
        self.verdicts[key] += 1
        if (verdict.status is Status.OK) != (verdict.score is not None):
            self.wrong(f"sample {number}: {verdict.status} with the score {verdict.score}")
        elif verdict.status is Status.OK and number % CHECKED == 0 and verdict.score != true_score(number):
            self.wrong(
                f"sample {number}: the score {verdict.score} of another, {true_score(number)} is its own"
            )
        if not verdict.is_valid and not (is_called_off and _is_called_off(verdict)):
            self.lost[_cause(verdict)] += 1

    def check_lost(self) -> None:
        """At the end: a few samples may have met one fault after another, not many."""
        lost = sum(self.lost.values())
        if lost > MOST_LOST * self.samples:
            self.wrong(f"{lost:,} of {self.samples:,} samples without a verdict that nobody called off")


def _is_called_off(verdict: Verdict) -> bool:
    return verdict.status is Status.DEADLINE or verdict.error == "cancelled"


def _cause(verdict: Verdict) -> str:
    text = re.sub(r"https?://\S+( \S+:)?", "", verdict.error or "")
    return f"{verdict.status.value}: {re.sub('[0-9.]+', 'N', text).strip()[:60]}"


@dataclass(frozen=True, slots=True)
class Reading:
    """What this process holds, between batches."""

    calls: int
    figures: Mapping[str, float]


def memory() -> dict[str, float]:
    """Bytes of this process, and blocks that Python has allocated."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return {"bytes (RSS)": pages * os.sysconf("SC_PAGE_SIZE"), "blocks of memory": sys.getallocatedblocks()}


def threads_and_files() -> dict[str, float]:
    """Threads and open files, sockets included."""
    return {
        "threads": sum(1 for _ in Path("/proc/self/task").iterdir()),
        "open files": sum(1 for _ in Path("/proc/self/fd").iterdir()),
    }


def quarters(
    readings: Sequence[Reading], watch: Watch, bounds: Mapping[str, float] | None = None
) -> list[tuple[str, ...]]:
    """Rows for a table: each figure in the first quarter and in the last.

    Growth is a violation; of figures that come and go, with `bounds`, only what is beyond them.
    """
    bounds = bounds or {}
    rows = []
    count = max(1, len(readings) // 4)
    for name in readings[0].figures if readings else ():
        values = [reading.figures[name] for reading in readings]
        first, last = statistics.fmean(values[:count]), statistics.fmean(values[-count:])
        rows.append((name, f"{first:,.0f}", f"{last:,.0f}", f"{last - first:+,.0f}", f"{max(values):,.0f}"))
        if max(values) > bounds.get(name, math.inf):
            watch.wrong(f"{name}: {max(values):,.0f}, {bounds[name]:,.0f} allowed")
        if name not in bounds and last > GROWTH * first + WARM_UP.get(name, 8.0):
            watch.wrong(f"{name}: {first:,.0f} in the first quarter, {last:,.0f} in the last")
    return rows
