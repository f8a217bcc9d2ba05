"""Calls that take too long: ended by one timer for all of them, since the oldest is always due first."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from plaudit.scheduling.alarm import Alarm
from plaudit.scheduling.lane import NEVER, Lane


class Overdue:
    """Cancels flights that are older than `timeout` seconds, and marks them. A timer each would cost more."""

    def __init__(self, lanes: Sequence[Lane], *, timeout: float) -> None:
        self._lanes = lanes
        self._timeout = timeout
        self._loop = asyncio.get_running_loop()
        self._timer: Alarm | None = None

    def watch(self) -> None:
        """A call has left."""
        if self._timer is None and self._timeout < NEVER:
            self._timer = Alarm(self._timeout, self._look)

    def close(self) -> None:
        """End no more."""
        if self._timer is not None:
            self._timer.cancel()

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
        is_any = due < NEVER
        self._timer = Alarm(max(due - now, 0.0), self._look) if is_any else None
