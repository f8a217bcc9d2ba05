"""A timer that lets the loop read first: replies that came while the process was stopped are used.

After a laptop's lid was closed, a debugger or a frozen cgroup, timers find that all time has passed before a
single socket was looked at. One that goes off late therefore waits a moment more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

LATE = 0.2
"""Seconds past its time from which a timer goes off late: the loop did not run meanwhile."""
CATCH_UP = 0.25
"""Seconds for reading and storing what has come in meanwhile."""
LOOK_UP = 0.5
"""Seconds after which a waiting thread looks up: a signal just before the wait interrupts nothing."""


class Alarm:
    """Calls `action` once, after `seconds`, on the running loop."""

    __slots__ = ("_action", "_due", "_handle", "_loop")

    def __init__(self, seconds: float, action: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._action = action
        self._due = self._loop.time() + seconds
        self._handle = self._loop.call_later(seconds, self._ring)

    def cancel(self) -> None:
        self._handle.cancel()

    def _ring(self) -> None:
        if self._loop.time() - self._due > LATE:
            self._handle = self._loop.call_later(CATCH_UP, self._action)
        else:
            self._action()
