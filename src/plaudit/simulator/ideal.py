"""The best possible makespan: the work of a batch, list-scheduled on what the servers can truly do.

Nobody reaches it: it knows the capacity at every moment, never has a request turned away, and leaves no slot
empty while word of a reply travels. Requests start in the order given, each where it would end first. Faults,
and limits on tokens, are left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from heapq import heappop, heappush

from plaudit.simulator.ask import ask_of
from plaudit.simulator.bucket import Bucket, Window
from plaudit.simulator.chance import output_tokens
from plaudit.simulator.level import Level, levels
from plaudit.simulator.scenario import Queue, Rate, Reject, Scenario
from plaudit.types import Request


def works_of(scenario: Scenario, requests: Sequence[Request], *, model: str = "simulated") -> list[float]:
    """Seconds of service that each request takes on this server at full speed, faults aside."""
    asks = (ask_of(request, model=model) for request in requests)
    return [scenario.latency.work(output_tokens(scenario, ask)) for ask in asks]


def ideal_makespan(scenario: Scenario, works: Sequence[float]) -> float:
    """Seconds from the first request to the last reply, at best, on one server."""
    return ideal_makespan_of([(scenario, works)])


def ideal_makespan_of(servers: Sequence[tuple[Scenario, Sequence[float]]]) -> float:
    """The same on several servers at once; each comes with what every request would cost there."""
    plans = [_plan_for(scenario) for scenario, _ in servers]
    makespan = 0.0
    for works in zip(*(works for _, works in servers), strict=True):
        ends = [
            plan.next_start() + work + scenario.latency.round_trip
            for plan, work, (scenario, _) in zip(plans, works, servers, strict=True)
        ]
        best = ends.index(min(ends))
        plans[best].start(works[best])
        makespan = max(makespan, ends[best])
    return makespan


class _Slots:
    """Reject, queue and knee alike: so many at once at full speed, as the level of the moment has it."""

    def __init__(self, scenario: Scenario) -> None:
        self._levels: Iterator[Level] = levels(scenario)
        self._level = next(self._levels)
        self._next_level = next(self._levels, None)
        self._now = 0.0
        self._ends: list[float] = []
        self._has_slots = isinstance(scenario.capacity, Reject | Queue)

    def next_start(self) -> float:
        while len(self._ends) >= self._slots():
            end = self._ends[0] if self._ends else math.inf
            change = self._next_level.at if self._next_level is not None else math.inf
            self._now = max(self._now, min(end, change))
            if math.isinf(self._now):
                return math.inf
            if self._next_level is not None and change <= end:
                self._level, self._next_level = self._next_level, next(self._levels, None)
            else:
                heappop(self._ends)
        return self._now

    def _slots(self) -> float:
        if not self._has_slots:
            return math.inf if math.isinf(self._level.free) else max(1, math.floor(self._level.free))
        return math.floor(self._level.free)

    def start(self, work: float) -> None:
        heappush(self._ends, self.next_start() + work)


class _Metered:
    """So many a second, and any number at once."""

    def __init__(self, scenario: Scenario, capacity: Rate) -> None:
        self._levels = levels(scenario)
        self._level = next(self._levels)
        self._next_level = next(self._levels, None)
        self._now = 0.0
        rate = self._level.free
        self._allowance: Bucket | Window = (
            Bucket(rate=rate, burst=capacity.burst)
            if capacity.window is None
            else Window(rate=rate, seconds=capacity.window)
        )

    def next_start(self) -> float:
        while wait := self._allowance.wait(1):
            change = self._next_level.at if self._next_level is not None else math.inf
            self._now = min(self._now + wait, max(change, self._now))
            if math.isinf(self._now):
                return math.inf
            self._allowance.refill(self._now)
            if self._next_level is not None and self._now >= change:
                self._level, self._next_level = self._next_level, next(self._levels, None)
                self._allowance.rate = self._level.free
        return self._now

    def start(self, work: float) -> None:  # noqa: ARG002
        self.next_start()
        self._allowance.take(1)


def _plan_for(scenario: Scenario) -> _Slots | _Metered:
    if isinstance(scenario.capacity, Rate):
        return _Metered(scenario, scenario.capacity)
    return _Slots(scenario)
