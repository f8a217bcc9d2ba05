"""How fast to send to an endpoint that limits by rate: at the rate it accepts, learned from its refusals.

A refusal marks a moment at which the allowance was empty. What was accepted between two such moments, over
the time between them, is the rate: exact for token buckets, and on average for fixed windows.
"""

from __future__ import annotations

from collections import deque

from plaudit.types import RateHeaders

CREEP = 1.05
CREEP_EVERY = 2.0
SEARCH = 1.25
SEARCH_EVERY = 0.25
SPAN = 1.0
"""Seconds over which a rate is measured; in so short a time it is never cut by more than half."""
UNKNOWN = float("inf")
MAX_PAUSE = 3600.0
SLOWEST = 1.0 / MAX_PAUSE
LATE = 0.05
"""Seconds by which our own clock may wake us late; so much is always made up for."""


class Pace:
    """The time of the next send. Without a refusal there is no pace: everything may leave at once."""

    def __init__(self) -> None:
        self.rate: float | None = None
        """Sends a second, or None while nothing limits them."""
        self.paused_until = 0.0
        self._proven = UNKNOWN
        """A rate that was borne for a while: up to near there it may grow fast."""
        self._cut_from = 0.0
        self._cut_until = 0.0
        self._is_binding = False
        self._next = 0.0
        self._slack = LATE
        self._sends: deque[float] = deque()
        self._accepted = 0
        self._empty_at: float | None = None
        self._grow_at = 0.0
        self._last_send = 0.0

    def ready_at(self, *, now: float) -> float:
        """The earliest time at which the next request may leave."""
        if self.rate is None:
            return max(now, self.paused_until)
        self._is_binding |= self._next > now
        if now >= self._grow_at:
            if not self._is_binding:
                pass  # a pace that held nothing back has not been tried: no evidence that more would do
            elif self._is_searching:
                self.rate *= SEARCH
            else:
                self._proven = self.rate
                self.rate *= CREEP
            self._is_binding = False
            self._grow_at = now + self._grow_every
        return max(now, self.paused_until, self._next)

    def on_send(self, *, now: float) -> None:
        if self.rate is not None and now - self._last_send > max(SPAN, 4.0 / self.rate):
            self._empty_at = None  # there was nothing to send: what was accepted meanwhile says nothing
        self._last_send = now
        self._accepted += 1  # until a refusal says otherwise
        self._sends.append(now)
        while self._sends[0] < now - SPAN:
            self._sends.popleft()
        if self.rate is not None:
            # Time lost in a pause may be made up for, no more than that.
            self._next = max(self._next, now - self._slack) + 1.0 / self.rate

    def pause(self, *, now: float, seconds: float) -> None:
        """Send nothing for a while, because the endpoint asked for it."""
        self.paused_until = max(self.paused_until, now + min(max(seconds, 0.0), MAX_PAUSE))

    def begin(self, *, now: float, rate: float | None = None) -> None:
        """Limit the rate from now on: to what the headers told, else to what is found by search."""
        if self.rate is not None:
            return
        self._proven = UNKNOWN if rate is None else rate
        self.rate = max(rate, SLOWEST) if rate else max(1.0, len(self._sends) / SPAN)
        self._next = now
        self._accepted = 0
        self._grow_at = now + self._grow_every

    def on_refusal(self, *, now: float, sent_at: float, retry_after: float | None) -> bool:
        """Note that a request was refused for the rate. True when this starts a new pause."""
        self._accepted -= 1
        if self._sends:
            self._sends.pop()
        if self.rate is None or (self._empty_at is not None and sent_at <= self._empty_at):
            return False  # one of the same burst: it left before the pause began
        if self._is_searching:
            self._proven = 0.0  # found, or no longer true
        if now >= self._cut_until:
            self._cut_from = self.rate
            self._cut_until = now + SPAN
        self.rate = max(min(self.rate, self._measured(now)), self._cut_from / 2.0, SLOWEST)
        self._empty_at = now
        self._accepted = 0
        wait = min(max(retry_after or 0.0, 1.0 / self.rate), MAX_PAUSE)
        self._slack = max(wait, LATE)
        self.paused_until = self._next = now + wait
        self._grow_at = self.paused_until + self._grow_every
        return True

    @property
    def _is_searching(self) -> bool:
        return self.rate is not None and self.rate < 0.8 * self._proven

    @property
    def _grow_every(self) -> float:
        return SEARCH_EVERY if self._is_searching else CREEP_EVERY

    def _measured(self, now: float) -> float:
        """What was accepted since the allowance was last empty, if that is not too short a time."""
        if self._empty_at is not None and now - self._empty_at >= SPAN:
            return self._accepted / (now - self._empty_at)
        return len(self._sends) / SPAN


def rate_hint(headers: RateHeaders) -> float | None:
    """Requests a second as the headers tell: what is used up, over the time until it is full again."""
    limit, remaining, reset = headers.limit_requests, headers.remaining_requests, headers.reset_requests
    if limit is None or remaining is None or not reset or remaining >= limit:
        return None
    return (limit - remaining) / reset
