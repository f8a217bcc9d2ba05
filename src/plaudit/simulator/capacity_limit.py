"""Who is let in: each kind of capacity's answer to a request that has just arrived."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Protocol

from plaudit.simulator.bucket import Bucket, Window
from plaudit.simulator.capacity_level import CapacityLevel, levels
from plaudit.simulator.outcome import Outcome
from plaudit.simulator.scenario import Hints, Queue, Rate, Reject, Scenario, SlotHints, WrongHeaders
from plaudit.types import RateHeaders


class CapacityLimit(Protocol):
    """One kind of capacity."""

    @property
    def slots(self) -> float:
        """How many may be in service at once, now."""
        ...

    def admit(self, at: float, *, tokens: int, running: int, waiting: int, free_in: float) -> Outcome | None:
        """None lets the request in; an outcome rate limits it. The next one in service ends in `free_in`."""
        ...

    def headers(self) -> RateHeaders | None:
        """What the reply's headers say of the allowance left, where this server says anything."""
        ...

    def change(self, level: CapacityLevel) -> None:
        """From `level.at` on, there is another capacity."""
        ...


def limit_for(scenario: Scenario) -> CapacityLimit:
    """The limit of a scenario, as it stands at time zero."""
    start = next(levels(scenario))
    match scenario.capacity:
        case Reject() as capacity:
            return _SlotLimit(
                start,
                max_queue=0,
                status=capacity.status,
                retry_after=capacity.retry_after,
                hints=capacity.hints,
            )
        case Queue() as capacity:
            room = math.inf if capacity.max_queue is None else capacity.max_queue
            return _SlotLimit(start, max_queue=room, status=capacity.status, retry_after=None)
        case Rate() as capacity:
            return _RateLimit(start, capacity)
    return _NoLimit()


class _NoLimit:
    slots = math.inf

    def admit(self, at: float, *, tokens: int, running: int, waiting: int, free_in: float) -> None:  # noqa: ARG002
        return None

    def headers(self) -> None:
        return None

    def change(self, level: CapacityLevel) -> None:
        """Nothing to do: the speed changes, not who is let in."""


class _SlotLimit:
    """So many requests at once, and so many more that may wait."""

    def __init__(
        self,
        level: CapacityLevel,
        *,
        max_queue: float,
        status: int,
        retry_after: float | None,
        hints: SlotHints = "none",
    ) -> None:
        self.slots = math.floor(level.free)
        self._max_queue = max_queue
        self._status = status
        self._retry_after = retry_after
        self._hints: Hints = hints

    def admit(self, at: float, *, tokens: int, running: int, waiting: int, free_in: float) -> Outcome | None:  # noqa: ARG002
        if running + 1 <= self.slots and not waiting:
            return None
        if waiting < self._max_queue:
            return None
        told = self._retry_after
        return Outcome(
            self._status,
            message="too many requests at once",
            retry_after=told if told is not None else _retry_after(self._hints, free_in),
        )

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
        self._requests: Bucket | Window = (
            Bucket(rate=level.free, burst=capacity.burst)
            if capacity.window is None
            else Window(rate=level.free, seconds=capacity.window)
        )
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
