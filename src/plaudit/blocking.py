"""The one bridge from synchronous code: an event loop of our own, in a thread of its own.

Work crosses over in groups: posting a thousand things before the loop wakes costs one wake-up.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from plaudit.errors import EngineClosed

T = TypeVar("T")


def new_event_loop() -> asyncio.AbstractEventLoop:
    """A fast loop where there is one (uvloop), else the standard one."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


class LoopThread:
    """An event loop running in a daemon thread until `stop`."""

    def __init__(self, name: str = "plaudit") -> None:
        self._loop = new_event_loop()
        self._inbox: deque[Callable[[], None]] = deque()
        self._is_woken = False
        self._is_stopped = False
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """Whether it runs, and in this process: a forked child has the object but not the thread."""
        return self._pid == os.getpid() and not self._is_stopped

    @property
    def is_current(self) -> bool:
        """Whether the caller is on the loop's own thread, where waiting would be for ever."""
        return threading.current_thread() is self._thread

    def post(self, action: Callable[[], None]) -> None:
        """Run `action` on the loop soon; actions run in the order of posting."""
        with self._lock:
            if not self.is_alive:
                raise EngineClosed("the engine is closed; open a new one")
            self._inbox.append(action)
            if self._is_woken:
                return
            self._is_woken = True
        self._loop.call_soon_threadsafe(self._drain)

    def run(self, coroutine: Coroutine[Any, Any, T], timeout: float | None = None) -> T:
        """Run a coroutine on the loop and wait for its result."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(timeout)

    def stop(self) -> None:
        """End the loop and the thread. Safe to call twice."""
        with self._lock:
            if not self.is_alive:
                return
            self._is_stopped = True
        self._loop.call_soon_threadsafe(self._loop.stop)
        if not self.is_current:
            self._thread.join()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()

    def _drain(self) -> None:
        with self._lock:
            actions = list(self._inbox)
            self._inbox.clear()
            self._is_woken = False
        for action in actions:
            action()
