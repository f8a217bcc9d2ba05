"""Calls that wait for their next attempt: each has a timer, and holds no permit meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from plaudit.scheduling.call import Call


class WaitingRoom:
    """Hands each call back when its time has come."""

    def __init__(self, back: Callable[[Call], None]) -> None:
        self._back = back
        self._loop = asyncio.get_running_loop()
        self._timers: dict[Call, asyncio.TimerHandle] = {}

    def __len__(self) -> int:
        return len(self._timers)

    def put(self, call: Call, *, seconds: float) -> None:
        """Keep a call for so long. One that waits already keeps its time."""
        if call not in self._timers:
            self._timers[call] = self._loop.call_later(seconds, self._leave, call)

    def clear(self) -> list[Call]:
        """Everybody out, now; the answer is who was there."""
        for timer in self._timers.values():
            timer.cancel()
        calls = list(self._timers)
        self._timers.clear()
        return calls

    def _leave(self, call: Call) -> None:
        del self._timers[call]
        self._back(call)
