"""Requests and tokens a minute, held exactly: no window of sixty seconds ever holds more.

A request counts from the moment it leaves; its tokens are reserved then at their upper bound, and counted
as the endpoint counted them once it has answered.
"""

from __future__ import annotations

from collections import deque

WINDOW = 60.0
MARGIN = 0.25
"""Seconds added to the window, because what leaves us evenly may arrive closer together."""


class Quota:
    """One allowance of requests and tokens a minute. None means no limit."""

    def __init__(self, *, rpm: int | None = None, tpm: int | None = None, window: float = WINDOW) -> None:
        self._rpm = rpm
        self._tpm = tpm
        self._window = window + MARGIN
        self._sends: deque[float] = deque()
        self._settled: deque[tuple[float, int]] = deque()
        self._settled_tokens = 0
        self._reserved = 0

    def ready_at(self, *, now: float, tokens: int) -> float:
        """The earliest time at which such a request may leave; infinity: not before a reply has come."""
        self._forget(now)
        ready = now
        if self._rpm is not None and len(self._sends) >= self._rpm:
            ready = self._sends[-self._rpm] + self._window
        if self._tpm is not None:
            ready = max(ready, self._tokens_ready_at(now, tokens))
        return ready

    def on_send(self, *, now: float, tokens: int) -> None:
        """Count a request that leaves now, and reserve its tokens."""
        if self._rpm is not None:
            self._sends.append(now)
        if self._tpm is not None:
            self._reserved += tokens

    def on_reply(self, *, now: float, reserved: int, used: int) -> None:
        """Give back what was reserved and count what was used, for a minute from now."""
        if self._tpm is None:
            return
        self._reserved -= reserved
        if used:
            self._settled.append((now, used))
            self._settled_tokens += used

    def _tokens_ready_at(self, now: float, tokens: int) -> float:
        assert self._tpm is not None
        room = self._tpm - self._reserved - tokens
        if room < 0:
            # One request larger than the whole allowance goes alone, or it would wait for ever.
            is_alone = self._reserved == 0 and not self._settled
            if is_alone:
                return now
            if self._reserved or not self._settled:
                return float("inf")
            return self._settled[-1][0] + self._window
        excess = self._settled_tokens - room
        ready = now
        for at, used in self._settled:
            if excess <= 0:
                break
            excess -= used
            ready = at + self._window
        return ready

    def _forget(self, now: float) -> None:
        horizon = now - self._window
        while self._sends and self._sends[0] <= horizon:
            self._sends.popleft()
        while self._settled and self._settled[0][0] <= horizon:
            self._settled_tokens -= self._settled.popleft()[1]
