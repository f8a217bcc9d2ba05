"""When a failed call is tried again: backoff with derived jitter, within a share of the traffic."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often a call that broke is tried, and how long it waits in between.

    What the endpoint asks for (Retry-After) is not a matter of one call: see `Breaker`.
    """

    attempts: int = 10
    """Tries in all, the first included. Refusals (429) are not counted: they say nothing of the request."""
    first_wait: float = 0.05
    max_wait: float = 30.0

    def next_wait(
        self, *, attempt: int, jitter: float, longest: float | None = None, failing: float = 0.0
    ) -> float | None:
        """Seconds before the next attempt, or None to give up. `jitter` lies in 0..1.

        `longest` bounds the wait where the endpoint answers other calls: waiting does not help it then. Where
        the share `failing` of all calls fails, a call may fail more often: that is not its own fault.
        """
        if attempt >= self.attempts * luck(failing):
            return None
        most = self.max_wait if longest is None else max(self.first_wait, min(longest, self.max_wait))
        return self._backoff(attempt, most) * (0.5 + jitter / 2)

    def refusal_wait(self, refusals: int, *, jitter: float, longest: float | None = None) -> float:
        """Seconds a call waits after being refused so often: at first none, for another may be let in.

        `longest` bounds the wait where the endpoint lets others in.
        """
        if refusals <= 2:
            return 0.0
        most = 5.0 if longest is None else min(max(self.first_wait, longest), 5.0)
        return self._backoff(refusals - 2, most) * (0.5 + jitter / 2)

    def _backoff(self, times: int, longest: float) -> float:
        return float(min(self.first_wait * 2.0 ** min(max(times, 1) - 1, 60), longest))


ORDINARY = 0.25
"""Share of failing calls for which the number of attempts is meant."""
MOST_FAILING = 0.6


def luck(failing: float) -> float:
    """How many times as many attempts make a loss as improbable as where few calls fail."""
    share = min(max(failing, ORDINARY), MOST_FAILING)
    return math.log(ORDINARY) / math.log(share)


LATEST = 1.0
"""Seconds that a retry waits for its turn, at the most."""


class RetryBudget:
    """Retries and hedges may be a quarter of the traffic, plus a few a second for small batches.

    Where the budget is spent a retry is late, not lost: it waits until traffic or time has paid for it.
    """

    def __init__(self, *, share: float = 0.25, per_second: float = 10.0, burst: float = 64.0) -> None:
        self._share = share
        self._per_second = per_second
        self._burst = burst
        self._tokens = burst
        self._filled_at: float | None = None

    def on_call(self) -> None:
        """Count one first attempt: it pays for a quarter of a retry."""
        self._tokens = min(self._tokens + self._share, 10 * self._burst)

    def take(self, *, now: float) -> float:
        """Spend one retry; the answer is how long it has to wait for its turn (0.0: none)."""
        self._refill(now)
        self._tokens -= 1.0
        return min(max(0.0, -self._tokens / self._per_second), LATEST)

    def can_hedge(self, *, now: float) -> bool:
        """Whether a hedge, which is a luxury, fits in without delaying a retry."""
        self._refill(now)
        return self._tokens >= 1.0

    def _refill(self, now: float) -> None:
        if self._filled_at is not None and self._tokens < self._burst:
            self._tokens = min(self._tokens + (now - self._filled_at) * self._per_second, self._burst)
        self._filled_at = now
