"""Whether calls are refused for their number or for their rate: which of the two explains what was seen?

Pure: no clock, no I/O. A capacity refuses what comes while it is full, and lets in the next call as soon as
one has ended. A rate refuses what comes too soon after the calls let in before, however few are under way.
Both are held to the last calls: how many of their fates does the best capacity get wrong, how many the best
rate?
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import NamedTuple

REMEMBERED, JUDGED, FEWEST = 512, 96, 4
"""Calls that are remembered, and groups of them by which both are judged: at the most, and at the least."""
FIRST_REFUSALS = 8
"""Moments with refusals after which to judge for the first time; then after twice as many each time."""
LAG = 1.25
"""How many times as long as refusals take it may be until the fate of a call is known."""
TOGETHER = 0.05
"""Calls that leave within this share of a round trip arrive in any order."""
JITTER = 0.1
"""Share of a round trip by which a call may be late, beside what refusals show of it."""
WORST = 3
"""How many fates of one group count at the most: a single one must not decide."""
LOOSE, SMALL = 0.05, 8
"""Share by which a capacity may seem to change, if it is larger than this."""
ENDLESS = 1_000_000
CLEARLY, SHARE = 6, 0.4
"""How many fewer fates a rate must get wrong, and at most which share of those that a capacity does."""
FIRST_RATE, STEP, STEPS = 0.8, 1.15, 28
"""Rates that are tried: from a share of what was let in, each so many times the one before, so many."""
BURSTS = (1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144)


class Fate(NamedTuple):
    """What became of a call; one that is still under way has no end yet."""

    sent_at: float
    ended_at: float
    is_refused: bool


@dataclass(slots=True)
class CallGroup:
    """Calls that left together."""

    began: float
    ended: float
    beside: int
    """Calls that the endpoint had in work when they arrived, for sure ..."""
    perhaps: int
    """... and perhaps: nobody knows exactly when one ended there."""
    let_in: int = 0
    refused: int = 0


class RefusalRecord:
    """The last calls of one endpoint and their fates."""

    def __init__(self) -> None:
        self._round_trips: deque[float] = deque(maxlen=32)
        """Seconds that the last refusals took."""
        self._fates: deque[Fate] = deque(maxlen=REMEMBERED)
        self.forget()

    def forget(self) -> None:
        """Another time begins: the endpoint was away, or is taken for another kind."""
        self._fates.clear()
        self._refusals, self._refused_at = 0, -math.inf
        self._next_look = FIRST_REFUSALS

    def on_answer(self, *, now: float, sent_at: float) -> None:
        """A call that was let in came back."""
        self._fates.append(Fate(sent_at, now, False))

    def on_refusal(self, *, now: float, sent_at: float) -> bool:
        """A call was refused; whether it is time to ask for the `rate`."""
        self._fates.append(Fate(sent_at, now, True))
        self._round_trips.append(now - sent_at)
        self._refusals += sent_at > self._refused_at
        self._refused_at = max(sent_at, self._refused_at)
        return self._refusals >= self._next_look

    def rate(self, *, now: float, under_way: Iterable[float]) -> float | None:
        """Calls a second that are let in, if that explains the refusals and no capacity does.

        `under_way` is when the calls left that have not come back.
        """
        self._next_look = 2 * self._refusals
        groups = self._groups(now, under_way)
        if len(groups) < FEWEST:
            return None
        sizes = {group.beside + group.let_in for group in groups}
        by_capacity = min(_wrong_with_capacity(groups, size) for size in sizes | {ENDLESS})
        if by_capacity < CLEARLY:
            return None
        seconds = max(groups[-1].ended - groups[0].began, 1e-3)
        slowest = FIRST_RATE * sum(group.let_in for group in groups) / seconds
        most = max(group.let_in for group in groups)
        by_rate, rate = min(
            (_wrong_with_rate(groups, slowest * STEP**step, burst), slowest * STEP**step)
            for burst in BURSTS
            if burst <= 2 * most + 1
            for step in range(STEPS)
        )
        return rate if by_rate <= min(by_capacity - CLEARLY, SHARE * by_capacity) else None

    def _groups(self, now: float, under_way: Iterable[float]) -> list[CallGroup]:
        """The last calls whose fate is known, in the order of leaving."""
        times = sorted(self._round_trips)
        round_trip = times[len(times) // 2]
        jitter = times[9 * len(times) // 10] - times[len(times) // 10] + JITTER * round_trip
        fates = [*self._fates, *(Fate(sent_at, math.inf, False) for sent_at in under_way)]
        fates.sort()
        groups: list[CallGroup] = []
        surely: list[float] = []  # when those came back that are in work, or perhaps are
        perhaps: list[float] = []
        for fate in fates[: bisect_right(fates, now - LAG * round_trip, key=lambda fate: fate.sent_at)]:
            if not groups or fate.sent_at > groups[-1].began + TOGETHER * round_trip:
                arrival = fate.sent_at + round_trip
                while surely and surely[0] <= arrival + jitter:
                    heappush(perhaps, heappop(surely))
                while perhaps and perhaps[0] <= arrival - jitter:
                    heappop(perhaps)
                beside = len(surely)
                groups.append(CallGroup(fate.sent_at, fate.sent_at, beside, beside + len(perhaps)))
            group = groups[-1]
            group.ended = fate.sent_at
            if fate.is_refused:
                group.refused += 1
            else:
                group.let_in += 1
                heappush(surely, fate.ended_at)
        while groups and not groups[-1].let_in:
            groups.pop()  # it may let nothing in since then, whatever the load
        return groups[-JUDGED:]


def _wrong_with_capacity(groups: list[CallGroup], capacity: int) -> int:
    """How many fates a capacity of so many calls at once gets wrong."""
    loose = LOOSE * capacity if capacity > SMALL else 0.0
    wrong = 0
    for group in groups:
        over = group.beside + group.let_in - capacity
        room = capacity - group.perhaps - group.let_in
        if over > loose:
            wrong += min(over, WORST)
        elif room > loose:
            wrong += min(room, group.refused, WORST)
    return wrong


def _wrong_with_rate(groups: list[CallGroup], rate: float, burst: int) -> int:
    """How many fates so many calls a second with such a burst get wrong."""
    tokens, at, wrong = float(burst), groups[0].began, 0
    for group in groups:
        tokens = min(tokens + rate * (group.ended - at), float(burst))
        at = group.ended
        over = group.let_in - int(tokens + LOOSE)
        wrong += min(max(over, min(-over, group.refused)), WORST)
        tokens = max(tokens - group.let_in, 0.0)
    return wrong
