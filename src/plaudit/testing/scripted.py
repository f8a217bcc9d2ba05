"""A transport that plays a script: replies and errors, in order, at known times."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable

from plaudit.types import Reply, Request

Step = Reply | Exception | float
"""A reply to give, an error to raise, or seconds to wait before the step after it."""


class ScriptedTransport:
    """Answers each call with the next step of its script; the last step repeats for ever."""

    def __init__(self, script: Iterable[Step], *, latency: float = 0.0) -> None:
        self._script = deque(script)
        self._latency = latency
        self.sent: list[Request] = []
        self.sent_at: list[float] = []
        self.closed = False

    async def send(self, request: Request) -> Reply:
        self.sent.append(request)
        self.sent_at.append(asyncio.get_running_loop().time())
        wait = self._latency
        step = self._next()
        while isinstance(step, (int, float)):
            wait += step
            step = self._next()
        if wait:
            await asyncio.sleep(wait)
        if isinstance(step, Exception):
            raise step
        return step

    async def close(self) -> None:
        self.closed = True

    def _next(self) -> Step:
        return self._script.popleft() if len(self._script) > 1 else self._script[0]
