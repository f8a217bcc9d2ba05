"""The thread that owns a verdict file: begun by the first job, ended with the cache, in step with fork."""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import Callable
from queue import SimpleQueue

from plaudit.caches.desk import Inbox, Job, Park, Stop, serve
from plaudit.caches.store import Store
from plaudit.errors import CacheError

FORK_WAIT_S = 10.0
"""How long a fork waits for the file to be closed."""


class Worker:
    """A daemon thread, started by the first job; an interpreter that exits does not wait for it."""

    def __init__(self, make_store: Callable[..., Store]) -> None:
        self.pid = os.getpid()
        self._inbox: Inbox = SimpleQueue()
        self._gate = threading.Lock()
        self._is_stopped = False
        self._park: Park | None = None
        # The thread must not know this object, or it would keep an abandoned cache alive.
        self._thread = threading.Thread(
            target=serve, args=(self._inbox, make_store), name="plaudit-cache", daemon=True
        )
        self._finalizer = weakref.finalize(self, self._inbox.put, Stop())
        self._finalizer.atexit = False  # an engine that closes at exit still has verdicts to store
        _workers.add(self)

    def submit(self, job: Job) -> None:
        """Hand over a job; its future is settled on its own loop."""
        with self._gate:
            if self._is_stopped:
                raise CacheError("the cache is closed; open it anew")
            self._inbox.put(job)
            if self._thread.ident is None:
                self._thread.start()

    async def stop(self) -> None:
        """Finish what is waiting, close the file, end the thread. No job may follow."""
        ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        with self._gate:
            self._is_stopped = True
            if not self._finalizer.detach() or self._thread.ident is None:
                return
            self._inbox.put(Stop(ended))
        await ended
        self._thread.join()  # it has nothing left to do

    def park(self) -> None:
        """Have the file closed, and kept so until `resume`."""
        with self._gate:
            if self.pid != os.getpid() or not self._thread.is_alive():
                return
            self._park = Park()
            self._inbox.put(self._park)
        self._park.parked.wait(FORK_WAIT_S)

    def resume(self) -> None:
        """Go on after `park`."""
        if self._park is not None:
            self._park.resume.set()
            self._park = None


# A child that opens a database which its parent had open at the fork believes to hold locks that it does not
# hold (SQLite counts them in memory, and memory is copied): the two would overwrite each other. So the file
# is closed around every fork; parent and child both open it again when they next need it.
_workers: weakref.WeakSet[Worker] = weakref.WeakSet()
_one_fork = threading.Lock()


def _before_fork() -> None:
    _one_fork.acquire()
    for worker in list(_workers):
        worker.park()


def _after_fork_in_parent() -> None:
    for worker in list(_workers):
        worker.resume()
    _one_fork.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_one_fork.release
    )
