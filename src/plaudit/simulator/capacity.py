"""Capacity: how much there is at each moment, and who is let in.

The schedule and the neighbours of a scenario lie on one time line of levels; each kind of capacity answers a
request that has just arrived; what a rate allows is a bucket that refills steadily, or a window that opens
anew. Pure: the caller says when, and the answer is exact.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from heapq import merge

from plaudit.simulator.ask import Outcome
from plaudit.simulator.scenario import Capacity, Hints, Queue, Rate, Reject, Scenario, Tenant, WrongHeaders
from plaudit.types import RateHeaders

_ROUNDING = 1e-9
"""What sums of floats may be short of a whole token: a refill of 0.1 s at 10/s is one token."""


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
    capacity, load = scenario.size, 0.0
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


def _presence(tenant: Tenant) -> Iterator[tuple[float, float | None, float]]:
    at = tenant.start
    yield at, None, tenant.load
    if tenant.on is None:
        return
    while True:
        yield (at := at + tenant.on), None, -tenant.load
        yield (at := at + tenant.off), None, tenant.load


# -- who is let in ------------------------------------------------------------------------------------------


class _NoLimit:
    """Everybody is let in: where the capacity changes, the speed does."""

    slots = math.inf
    """How many may be in service at once, now."""

    def admit(self, at: float, *, tokens: int, running: int, waiting: int, free_in: float) -> Outcome | None:  # noqa: ARG002
        """None lets the request in; an outcome rate limits it. The next one in service ends in `free_in`."""
        return None

    def headers(self) -> RateHeaders | None:
        """What the reply's headers say of the allowance left, where this server says anything."""
        return None

    def change(self, level: CapacityLevel) -> None:
        """From `level.at` on, there is another capacity."""


class _SlotLimit:
    """So many requests at once, and so many more that may wait."""

    def __init__(self, level: CapacityLevel, capacity: Reject | Queue) -> None:
        self.slots = math.floor(level.free)
        self._capacity = capacity

    def admit(self, at: float, *, tokens: int, running: int, waiting: int, free_in: float) -> Outcome | None:  # noqa: ARG002
        if running + 1 <= self.slots and not waiting:
            return None
        status, message, told = self._capacity.status, "too many requests at once", None
        if isinstance(self._capacity, Reject):
            told = self._capacity.retry_after
            told = _retry_after(self._capacity.hints, free_in) if told is None else told
        elif self._capacity.max_queue is None or waiting < self._capacity.max_queue:
            return None
        return Outcome(status, message=message, retry_after=told)

    def headers(self) -> None:
        return None

    def change(self, level: CapacityLevel) -> None:
        self.slots = math.floor(level.free)


class _RateLimit:
    """So many requests, and perhaps tokens, a second."""

    slots = math.inf

    def __init__(self, level: CapacityLevel, capacity: Rate) -> None:
        self._hints = capacity.hints
        self._told = capacity.retry_after
        self._wrong = capacity.wrong
        self._requests = allowance(capacity, level)
        per_second = capacity.tokens_per_second
        self._tokens = None if per_second is None else Bucket(rate=per_second, burst=60.0 * per_second)

    def admit(self, at: float, *, tokens: int, running: int, waiting: int, free_in: float) -> Outcome | None:  # noqa: ARG002
        self._requests.refill(at)
        wait, what = self._requests.wait(1), "requests"
        if self._tokens is not None:
            self._tokens.refill(at)
            if (token_wait := self._tokens.wait(tokens)) > wait:
                wait, what = token_wait, "tokens"
        if wait > 0.0:
            return Outcome(
                429,
                message=f"rate limit reached for {what}",
                retry_after=self._told if self._told is not None else _retry_after(self._hints, wait),
                rate=self.headers(),
            )
        self._requests.take(1)
        if self._tokens is not None:
            self._tokens.take(tokens)
        return None

    def headers(self) -> RateHeaders | None:
        if self._hints not in ("headers", "all"):
            return None
        requests, tokens = self._requests, self._tokens
        told = RateHeaders(
            limit_requests=int(requests.burst),
            remaining_requests=requests.remaining,
            reset_requests=_milliseconds(requests.until_full),
            limit_tokens=None if tokens is None else int(tokens.burst),
            remaining_tokens=None if tokens is None else tokens.remaining,
            reset_tokens=None if tokens is None else _milliseconds(tokens.until_full),
        )
        return told if self._wrong is None else _off(told, self._wrong)

    def change(self, level: CapacityLevel) -> None:
        self._requests.refill(level.at)
        self._requests.rate = level.free


def limit_for(capacity: Capacity, start: CapacityLevel) -> _NoLimit | _SlotLimit | _RateLimit:
    """The limit that a capacity is, from its level at time zero on."""
    match capacity:
        case Reject() | Queue():
            return _SlotLimit(start, capacity)
        case Rate():
            return _RateLimit(start, capacity)
    return _NoLimit()


def _off(true: RateHeaders, wrong: WrongHeaders) -> RateHeaders:
    """Headers about requests as a server tells them that has it wrong."""
    limit, reset = true.limit_requests, true.reset_requests
    return replace(
        true,
        limit_requests=None if limit is None else round(limit * wrong.limit_factor),
        reset_requests=None if reset is None else _milliseconds(reset * wrong.reset_factor),
        remaining_requests=true.remaining_requests if wrong.remaining is None else wrong.remaining,
    )


def _retry_after(hints: Hints, wait: float) -> float | None:
    """What Retry-After tells of a wait; None for nothing."""
    if hints in ("none", "headers") or math.isinf(wait):
        return None
    return float(math.ceil(wait)) if hints == "retry-after" else _milliseconds(wait)


def _milliseconds(seconds: float) -> float | None:
    """Rounded up to what a header can say; None for never."""
    return None if math.isinf(seconds) else math.ceil(seconds * 1000 - 1e-6) / 1000


# -- what a rate allows -------------------------------------------------------------------------------------


class Bucket:
    """Holds `burst` at most and refills at `rate` a second; starts full."""

    def __init__(self, *, rate: float, burst: float) -> None:
        self.rate = rate
        self.burst = burst
        self._level = burst
        self._at = 0.0

    def refill(self, at: float) -> None:
        if at > self._at:
            self._level = min(self.burst, self._level + (at - self._at) * self.rate)
            self._at = at

    def wait(self, amount: float) -> float:
        """Seconds until `amount` can be taken, 0 for now; more than fits has to wait for a full bucket."""
        missing = min(amount, self.burst) - self._level
        if missing <= _ROUNDING:
            return 0.0
        return missing / self.rate if self.rate > 0 else math.inf

    def take(self, amount: float) -> None:
        self._level -= amount

    @property
    def remaining(self) -> int:
        return max(0, math.floor(self._level + _ROUNDING))

    @property
    def until_full(self) -> float:
        missing = self.burst - self._level
        return missing / self.rate if self.rate > 0 else math.inf


class Window:
    """Allows rate x seconds within each stretch of so many seconds, counted from time zero."""

    def __init__(self, *, rate: float, seconds: float) -> None:
        self.rate = rate
        self._seconds = seconds
        self._number = 0
        self._used = 0.0
        self._at = 0.0

    @property
    def burst(self) -> float:
        return math.floor(self.rate * self._seconds + _ROUNDING)

    def refill(self, at: float) -> None:
        self._at = max(at, self._at)
        number = int((self._at + _ROUNDING) // self._seconds)
        if number != self._number:
            self._number, self._used = number, 0.0

    def wait(self, amount: float) -> float:
        if self._used + min(amount, self.burst) <= self.burst and self.burst > 0:
            return 0.0
        return self.until_full if self.burst > 0 else math.inf

    def take(self, amount: float) -> None:
        self._used += amount

    @property
    def remaining(self) -> int:
        return max(0, math.floor(self.burst - self._used))

    @property
    def until_full(self) -> float:
        return (self._number + 1) * self._seconds - self._at


def allowance(capacity: Rate, level: CapacityLevel) -> Bucket | Window:
    """The requests that a rate allows, as it stands at time zero."""
    if capacity.window is None:
        return Bucket(rate=level.free, burst=capacity.burst)
    return Window(rate=level.free, seconds=capacity.window)
