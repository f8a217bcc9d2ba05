"""The best possible makespan: the work of a batch, list-scheduled on what the servers can truly do.

It cannot be reached: it knows the capacity at every moment and every fault in advance, never has a request
rate limited, and leaves no slot empty while word of a reply travels. Requests start in the order given, each
where it would end first. Nothing starts during an outage (a fault that hits every request of a span of time);
what is in service then goes on. Of the faults drawn by chance, a try refused or reset at once costs nothing,
and neither does one that would hang or be slow, because it is ended at once; each costs a token of a rate,
unless it comes before the limits. A reply spoiled after its service costs that service.

Left out: faults of numbered requests, faults by chance that are confined to a span of time, limits on tokens,
and that requests already waiting in a queue are served during an outage.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

from plaudit.simulator.ask import Ask, ask_of
from plaudit.simulator.capacity import LevelWalk, allowance
from plaudit.simulator.chance import fault_of, output_tokens
from plaudit.simulator.scenario import Fault, Queue, Rate, Reject, Scenario
from plaudit.types import Request

MOST_TRIES = 100
"""Tries after which a request is taken for one that never succeeds."""
_SPOILED = ("cut", "bad_json", "html", "babble", "truncated")
"""Faults after which a full service was for nothing."""
FAR = 1e7
"""Seconds after which an outage is taken for one without an end."""
_HARMLESS = ("slow", "plain_text", "refusal", "filtered")
"""Faults after which a request has its answer, such as it is."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What a request takes of a server, its failed tries included."""

    work: float
    """Seconds of service."""
    tokens: int = 1
    """How often it counts against a rate."""


def works_of(scenario: Scenario, requests: Sequence[Request], *, model: str = "simulated") -> list[float]:
    """Seconds of service that each request takes on this server at full speed, faults aside."""
    asks = (ask_of(request, model=model) for request in requests)
    return [scenario.latency.work(output_tokens(scenario, ask)) for ask in asks]


def costs_of(scenario: Scenario, requests: Sequence[Request], *, model: str = "simulated") -> list[Cost]:
    """The same with the faults that chance has in store for each request."""
    always = scenario.replace(faults=tuple(fault for fault in scenario.faults if _is_by_chance(fault)))
    return [_cost(always, ask_of(request, model=model)) for request in requests]


def _is_by_chance(fault: Fault) -> bool:
    return fault.during is None and fault.requests is None and not fault.comes_first


def _cost(scenario: Scenario, ask: Ask) -> Cost:
    work = scenario.latency.work(output_tokens(scenario, ask))
    services = 1
    for attempt in range(1, MOST_TRIES):
        fault = fault_of(scenario, ask, attempt=attempt, at=0.0, arrival=0)
        if fault is None or (fault.kind in _HARMLESS and fault.kind != "slow"):
            return Cost(services * work, tokens=attempt)
        if fault.kind == "slow" and fault.probability >= 1.0:
            return Cost(services * work * fault.factor, tokens=attempt)
        services += fault.kind in _SPOILED
    return Cost(math.inf)


def ideal_makespan(scenario: Scenario, works: Sequence[float | Cost]) -> float:
    """Seconds from the first request to the last reply, at best, on one server."""
    return ideal_makespan_of([(scenario, works)])


def ideal_makespan_of(servers: Sequence[tuple[Scenario, Sequence[float | Cost]]]) -> float:
    """The same on several servers at once; each comes with what every request would cost there."""
    plans = [_plan_for(scenario) for scenario, _ in servers]
    makespan = 0.0
    for works in zip(*(works for _, works in servers), strict=True):
        costs = [work if isinstance(work, Cost) else Cost(work) for work in works]
        ends = [
            plan.next_start(cost) + cost.work + scenario.latency.round_trip
            for plan, cost, (scenario, _) in zip(plans, costs, servers, strict=True)
        ]
        best = ends.index(min(ends))
        plans[best].start(costs[best])
        makespan = max(makespan, ends[best])
    return makespan


class _Outages:
    """The spans of time in which every request fails."""

    def __init__(self, scenario: Scenario) -> None:
        self._faults = [
            fault
            for fault in scenario.faults
            if fault.during is not None
            and fault.requests is None
            and fault.probability >= 1.0
            and fault.kind not in _HARMLESS
        ]

    def over_at(self, at: float) -> float:
        """The first moment from `at` on that lies in none; infinity for never."""
        start = at
        while any(fault.is_active(at) for fault in self._faults):
            for fault in self._faults:
                if fault.during is not None and fault.is_active(at):
                    at = _after(fault.during[1], fault.every, at)
            if math.isinf(at) or at > start + FAR:
                return math.inf
        return at


def _after(end: float, every: float | None, at: float) -> float:
    """When a span that is on at `at` and ends at `end`, of each period if there is one, is over."""
    if every is None:
        return end
    over = at - at % every + end  # by the remainder, as `Fault.is_active`: a quotient may round up
    return max(over, math.nextafter(at, math.inf))  # rounding must not hold it up


class _Slots:
    """Reject, queue and knee alike: so many at once at full speed, as the level of the moment has it."""

    def __init__(self, scenario: Scenario) -> None:
        self._level = LevelWalk(scenario)
        self._outages = _Outages(scenario)
        self._now = 0.0
        self._ends: list[float] = []
        self._has_slots = isinstance(scenario.capacity, Reject | Queue)

    def next_start(self, cost: Cost) -> float:  # noqa: ARG002
        while not math.isinf(self._now):
            change = self._level.change_at
            if change <= self._now:
                self._level.step()
            elif len(self._ends) < self._slots():
                if (over := self._outages.over_at(self._now)) == self._now:
                    break
                self._now = over
            elif self._ends and self._ends[0] < change:
                self._now = max(self._now, heappop(self._ends))
            else:
                self._now = change
        return self._now

    def _slots(self) -> float:
        free = self._level.now.free
        if not self._has_slots:
            return math.inf if math.isinf(free) else max(1, math.floor(free))
        return math.floor(free)

    def start(self, cost: Cost) -> None:
        heappush(self._ends, self.next_start(cost) + cost.work)


class _Metered:
    """So many a second, and any number at once."""

    def __init__(self, scenario: Scenario, capacity: Rate) -> None:
        self._level = LevelWalk(scenario)
        self._outages = _Outages(scenario)
        self._now = 0.0
        self._allowance = allowance(capacity, self._level.now)

    def next_start(self, cost: Cost) -> float:
        """When the last try may leave: its failed ones go before it, as soon as there is a token for each."""
        while not math.isinf(self._now):
            wait = self._allowance.wait(cost.tokens)
            ready = self._now + wait if wait else self._outages.over_at(self._now)
            if ready == self._now:
                break
            change = self._level.change_at
            self._now = min(ready, max(change, self._now))
            if math.isinf(self._now):
                break
            self._allowance.refill(self._now)
            if self._now >= change:
                self._allowance.rate = self._level.step().free
        return self._now

    def start(self, cost: Cost) -> None:
        self.next_start(cost)
        self._allowance.take(cost.tokens)


def _plan_for(scenario: Scenario) -> _Slots | _Metered:
    if isinstance(scenario.capacity, Rate):
        return _Metered(scenario, scenario.capacity)
    return _Slots(scenario)
