"""Allowances over time: a bucket that refills steadily, or a window that opens anew.

Pure: the caller says when, and the answer is exact.
"""

from __future__ import annotations

import math

_ROUNDING = 1e-9
"""What sums of floats may be short of a whole token: a refill of 0.1 s at 10/s is one token."""


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
