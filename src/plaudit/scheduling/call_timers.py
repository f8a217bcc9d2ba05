"""Timers of calls: when one is tried again, and when one under way has taken too long."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from plaudit.scheduling.alarm import Alarm
from plaudit.scheduling.call import Call
from plaudit.scheduling.lane import NEVER, Lane


class RetryQueue:
    """Calls that wait for their next attempt: each has a timer, and holds no permit meanwhile."""

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
        """Stop all timers; the answer is the calls that waited."""
        for timer in self._timers.values():
            timer.cancel()
        calls = list(self._timers)
        self._timers.clear()
        return calls

    def _leave(self, call: Call) -> None:
        del self._timers[call]
        self._back(call)


class Timeouts:
    """Cancels flights that are older than `timeout` seconds, and marks them, by one timer for all of them."""

    def __init__(self, lanes: Sequence[Lane], *, timeout: float) -> None:
        self._lanes = lanes
        self._timeout = timeout
        self._loop = asyncio.get_running_loop()
        self.timer: Alarm | None = None

    def watch(self) -> None:
        if self.timer is None and self._timeout < NEVER:
            self.timer = Alarm(self._timeout, self._look)

    def close(self) -> None:
        if self.timer is not None:
            self.timer.cancel()

    def _look(self) -> None:
        now = self._loop.time()
        due = NEVER
        for lane in self._lanes:
            for flight in lane.flights.values():  # in the order of sending
                if flight.sent_at + self._timeout > now or not flight.has_begun:
                    due = min(due, flight.sent_at + self._timeout)
                    break
                if flight.task is not None and not flight.is_overdue:
                    flight.is_overdue = True
                    flight.task.cancel()
        self.timer = Alarm(max(due - now, 0.0), self._look) if due < NEVER else None
