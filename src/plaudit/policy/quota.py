"""Requests and tokens a minute, held exactly at the server: no window of sixty seconds ever holds more.

A request counts from the latest moment at which the server can have read it (see `arrival`), and from its
sending until that is known. Its tokens are reserved at their upper bound when it leaves, and counted as the
endpoint counted them, for a minute from its reply. Where no reply came they count at their bound; and as long
as the server may read the request yet, the minute does not begin.
"""

from __future__ import annotations

from collections import deque
from heapq import merge
from itertools import islice

from plaudit.policy.arrival import GIVE_UP, Arrivals, Heard

WINDOW = 60.0
MARGIN = 0.25
"""Seconds added to the window, because what leaves us evenly may arrive closer together."""


class Quota:
    """One allowance of requests and tokens a minute, over one server or several. None means no limit."""

    def __init__(self, *, rpm: int | None = None, tpm: int | None = None, window: float = WINDOW) -> None:
        self._rpm = rpm
        self._tpm = tpm
        self._window = window + MARGIN
        self._servers: dict[str, Arrivals] = {}
        self._settled: deque[tuple[float, int]] = deque()
        self._settled_tokens = 0
        self._reserved = 0
        self._astray: deque[tuple[float, str, int]] = deque()
        """(ended at, server, tokens) of requests that ended unanswered and may be read yet."""

    def ready_at(self, *, now: float, tokens: int) -> float:
        """The earliest time at which such a request may leave; infinity: not before a reply has come."""
        self._forget(now)
        ready = now
        if self._rpm is not None:
            excess = sum(map(len, self._servers.values())) - self._rpm
            if excess >= 0:
                ends = merge(*(server.ends() for server in self._servers.values()))
                ready = next(islice(ends, excess, None))
        if self._tpm is not None:
            ready = max(ready, self._tokens_ready_at(now, tokens))
        return ready

    def on_send(self, *, now: float, tokens: int, server: str = "") -> None:
        """Count a request that leaves now, and reserve its tokens."""
        arrivals = self._servers.get(server)
        if arrivals is None:
            arrivals = self._servers[server] = Arrivals(self._window)
        arrivals.on_send(now=now)
        if self._tpm is not None:
            self._reserved += tokens

    def on_back(
        self, heard: Heard, *, now: float, sent_at: float, reserved: int, used: int, server: str = ""
    ) -> None:
        """Take in what a request came to; give back what was reserved, and count what was used."""
        arrivals = self._servers[server]
        arrivals.on_back(heard, now=now, sent_at=sent_at)
        if self._tpm is None:
            return
        if heard is Heard.REPLY or heard is Heard.ANSWER:
            self._find(server, now)
        self._reserved -= reserved
        if heard is Heard.NOTHING and arrivals.may_yet_read(sent_at):
            self._astray.append((now, server, used))
        elif heard is not Heard.NOT_SENT:
            self._settle(now, used)

    def _tokens_ready_at(self, now: float, tokens: int) -> float:
        assert self._tpm is not None
        room = self._tpm - self._reserved - sum(used for _, _, used in self._astray) - tokens
        if room < 0:
            # One request larger than the whole allowance goes alone, or it would wait for ever.
            if not (self._reserved or self._settled or self._astray):
                return now
            if self._reserved:
                return float("inf")
            if self._astray:
                return self._astray[0][0] + GIVE_UP
            return self._settled[-1][0] + self._window
        excess = self._settled_tokens - room
        ready = now
        for at, used in self._settled:
            if excess <= 0:
                break
            excess -= used
            ready = at + self._window
        return ready

    def _find(self, server: str, now: float) -> None:
        """The server answers again: what it held unread counts for a minute from now."""
        for _ in range(len(self._astray)):
            entry = self._astray.popleft()
            if entry[1] == server:
                self._settle(now, entry[2])
            else:
                self._astray.append(entry)

    def _settle(self, now: float, used: int) -> None:
        if used:
            self._settled.append((now, used))
            self._settled_tokens += used

    def _forget(self, now: float) -> None:
        for server in self._servers.values():
            server.forget(now=now)
        while self._astray and self._astray[0][0] + GIVE_UP <= now:
            self._astray.popleft()
        horizon = now - self._window
        while self._settled and self._settled[0][0] <= horizon:
            self._settled_tokens -= self._settled.popleft()[1]
