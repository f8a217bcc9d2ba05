"""How much capacity there is at each moment: the schedule and the neighbours, laid on one time line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import merge

from plaudit.simulator.scenario import Knee, Queue, Rate, Reject, Scenario, Tenant


@dataclass(frozen=True, slots=True)
class CapacityLevel:
    """What holds from one moment on: the server's true capacity, and what others take of it."""

    at: float
    capacity: float
    load: float

    @property
    def free(self) -> float:
        """What is left for us."""
        return max(0.0, self.capacity - self.load)


class LevelWalk:
    """The level of the moment, for one who moves along the time line."""

    def __init__(self, scenario: Scenario) -> None:
        self._rest = levels(scenario)
        self.now = next(self._rest)
        self._next = next(self._rest, None)

    @property
    def change_at(self) -> float:
        """When the next level begins; infinity for never."""
        return self._next.at if self._next is not None else float("inf")

    def step(self) -> CapacityLevel:
        """Go on to the next level, which there is."""
        assert self._next is not None
        self.now, self._next = self._next, next(self._rest, None)
        return self.now


def levels(scenario: Scenario) -> Iterator[CapacityLevel]:
    """Every level in order of time, the first at 0. Endless where a tenant comes and goes."""
    capacity, load = _capacity(scenario), 0.0
    at = 0.0
    for when, new_capacity, more_load in merge(
        ((when, to, 0.0) for when, to in scenario.schedule),
        *(_presence(tenant) for tenant in scenario.tenants),
        key=lambda change: change[0],
    ):
        if when > at:
            yield CapacityLevel(at, capacity, load)
            at = when
        capacity = capacity if new_capacity is None else new_capacity
        load += more_load
    yield CapacityLevel(at, capacity, load)


def _capacity(scenario: Scenario) -> float:
    match scenario.capacity:
        case Reject(slots=slots) | Queue(slots=slots):
            return float(slots)
        case Rate(per_second=per_second):
            return per_second
        case Knee(knee=knee):
            return float(knee)
    return float("inf")


def _presence(tenant: Tenant) -> Iterator[tuple[float, float | None, float]]:
    at = tenant.start
    yield at, None, tenant.load
    if tenant.on is None:
        return
    while True:
        yield (at := at + tenant.on), None, -tenant.load
        yield (at := at + tenant.off), None, tenant.load
