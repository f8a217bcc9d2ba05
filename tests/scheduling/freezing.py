"""A server that freezes now and then: it reads nothing for a while, and then all at once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from plaudit.policy.quota import WINDOW
from plaudit.types import Reply, Request, Usage

GOOD = Reply("7", usage=Usage(prompt_tokens=10, completion_tokens=5))


class FreezingServer:
    """Notes when it read each request, whether or not anybody still waits for the answer."""

    def __init__(self, *, latency: float, freezes: Sequence[tuple[float, float]] = ()) -> None:
        self._latency = latency
        self._freezes = freezes
        """(from, for how long), in seconds."""
        self.read_at: list[float] = []

    async def send(self, request: Request) -> Reply:
        loop = asyncio.get_running_loop()
        now = loop.time()
        thaw = self._thaw(now)
        loop.call_at(thaw, lambda: self.read_at.append(loop.time()))
        done = thaw + self._latency
        while (later := self._thaw(done)) > done:
            done = later
        await asyncio.sleep(done - now)
        return GOOD

    async def close(self) -> None:
        pass

    def _thaw(self, at: float) -> float:
        return max(
            (start + length for start, length in self._freezes if start <= at < start + length), default=at
        )

    @property
    def busiest_minute(self) -> int:
        return most_in_a_window(self.read_at)


def most_in_a_window(times: Sequence[float], *, window: float = WINDOW) -> int:
    """The most of them that any half-open window holds."""
    ordered, first, most = sorted(times), 0, 0
    for last, at in enumerate(ordered):
        while ordered[first] <= at - window:
            first += 1
        most = max(most, last - first + 1)
    return most
