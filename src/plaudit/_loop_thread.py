"""The one bridge from synchronous code: an event loop of our own, in a thread of its own.

Work crosses over in groups: posting a thousand things before the loop wakes costs one wake-up.
"""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import ctypes
import functools
import logging
import math
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Generic, Protocol, TypeVar

from plaudit.errors import EngineClosed
from plaudit.scheduling.alarm import LOOK_UP
from plaudit.scheduling.batch import Batch

log = logging.getLogger("plaudit")
T = TypeVar("T")


def new_event_loop() -> asyncio.AbstractEventLoop:
    """A fast loop where there is one (uvloop), else the standard one."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


def result_of(future: concurrent.futures.Future[T], timeout: float | None = None) -> T:
    """Wait for another thread's result, and notice signals meanwhile; TimeoutError when time runs out."""
    until = math.inf if timeout is None else time.monotonic() + timeout
    while not concurrent.futures.wait([future], timeout=min(LOOK_UP, until - time.monotonic())).done:
        if time.monotonic() >= until:
            raise TimeoutError
    return future.result()


class LoopThread:
    """An event loop running in a daemon thread until `end`."""

    def __init__(self, name: str = "plaudit") -> None:
        self._loop = new_event_loop()
        self._inbox: deque[Callable[[], object]] = deque()
        self._is_woken = False
        self._is_ending = False
        self._is_over = False
        self._last: asyncio.Task[None] | None = None
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """Whether it runs, and in this process: a forked child has the object but not the thread."""
        return self._pid == os.getpid() and not self._is_over

    @property
    def is_current(self) -> bool:
        """Whether the caller is on the loop's own thread, where waiting would never end."""
        return threading.current_thread() is self._thread

    def post(self, action: Callable[..., object], *arguments: Any, **options: Any) -> None:
        """Run `action` on the loop soon; actions run in the order of posting."""
        if self._pid != os.getpid():  # before the lock, which another thread may have held at the fork
            raise EngineClosed("the engine was started by the parent of this forked process")
        with self._lock:
            if self._is_over:
                raise EngineClosed("the engine is closed; open a new one")
            self._inbox.append(functools.partial(action, *arguments, **options))
            if not self._is_woken:
                self._is_woken = True
                wake = self._loop.call_soon if self.is_current else self._loop.call_soon_threadsafe
                wake(self._drain)

    def run(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run a coroutine on the loop, beside its other work, and wait for it on another thread."""

        async def main() -> T:
            return await work()

        return result_of(asyncio.run_coroutine_threadsafe(main(), self._loop))

    def end(self, last: Callable[[], Coroutine[Any, Any, None]], *, within: float) -> bool:
        """Run one last coroutine, then end the loop and the thread; False if they have not ended in time.

        Waits for them, except on the loop's own thread. What is posted meanwhile still runs. A second call
        waits for the same end, and runs nothing.
        """
        if self.is_alive and not self._is_ending:
            self._is_ending = True
            # Without the lock: this may be called by a garbage collection inside of it.
            self._loop.call_soon_threadsafe(self._begin_end, last)
        if self._pid != os.getpid() or self.is_current:
            return True
        self._thread.join(within)
        return not self._thread.is_alive()

    def _begin_end(self, last: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._last = self._loop.create_task(last())
        self._last.add_done_callback(self._stop)

    def _stop(self, last: asyncio.Task[None]) -> None:
        if not last.cancelled() and (bug := last.exception()) is not None:
            log.error("a bug while the engine was closed", exc_info=bug)
        with self._lock:
            self._is_over = True
        self._loop.stop()

    def _run(self) -> None:
        while not self._is_over:
            try:
                self._loop.run_forever()
            except SystemExit:  # only the main thread can exit; callers wait for this one
                log.exception("an observer or a judge called sys.exit() on the engine's thread: ignored")
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()

    def _drain(self) -> None:
        with self._lock:
            actions = list(self._inbox)
            self._inbox.clear()
            self._is_woken = False
        for action in actions:
            try:
                action()
            except Exception:  # a bug, and no reason to forget the other actions
                log.exception("a bug on the engine's thread")


class Work(Protocol):
    """What runs on the thread of a LoopOwner."""

    def expire(self, batch: Batch) -> None:
        """Mark what is missing as `deadline`."""

    def cancel(self, batch: Batch, *, abort: bool) -> None:
        """Fail what is missing as `cancelled`, send nothing more for it, and abort what is under way."""

    async def close(self) -> None:
        """The last thing that is run."""


W = TypeVar("W", bound=Work)


class LoopOwner(Generic[W]):
    """Works on batches, on a thread of its own. Ended by `close`, or once nothing refers to it.

    Args:
        name: What it is, for the log.
        work: What runs there. It must not refer to this object, which would never be freed then.
        within: Seconds that `close` waits.
    """

    def __init__(self, name: str, work: W, *, within: float = 10.0) -> None:
        self.work = work
        self._name = name
        self._within = within
        self.thread = LoopThread()
        weakref.finalize(self, self.thread.end, work.close, within=0.0).atexit = False
        _owners.add(self)
        atexit.unregister(_close_all)  # so that it comes before whatever was imported meanwhile shuts down
        atexit.register(_close_all)

    def close(self) -> None:
        """Do the last things, and end the thread. Safe to call twice."""
        if not self.thread.end(self.work.close, within=self._within):
            log.warning("%s did not stop within %g s; its thread is left behind", self._name, self._within)


_owners: weakref.WeakSet[LoopOwner[Any]] = weakref.WeakSet()


def _close_all() -> None:
    for owner in list(_owners):
        owner.close()


def _keep_for_ever() -> None:
    """Never free the parent's threads in a forked child.

    The two share their connections, and the kernel's list of connections to watch: to free them here would
    end the parent's connections, and remove them from the list that the parent goes by.
    """
    for owner in list(_owners):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(owner))
    _owners.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_keep_for_ever)
