"""A cache in a file: verdicts that outlive the process, shared by all processes of the machine.

A thread owns the file: look-ups are done at once, writes in groups. While a write is going on, later ones
pile up; they go into the next transaction together, and each is acknowledged once that is committed.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import math
import os
import sqlite3
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from plaudit.caches.base import Claim, check_keys
from plaudit.caches.store import Busy, CacheStats, Store, Writable, compact, connect, export, prune, stats
from plaudit.config import expanded
from plaudit.errors import CacheError

T = TypeVar("T")

_log = logging.getLogger(__name__)

TELL_BEFORE = 0.9
"""Share of the patience with another process that is left when that is said."""


class SqliteCache:
    """Verdicts in one SQLite file, opened on first use by a thread of its own; awaits on any loop.

    What `put_many` has acknowledged survives kill -9. A power cut may cost the last writes (those not yet
    moved out of the write-ahead log), never the file. `on_trouble` hears, on the loop that waits, of damage
    that was set aside and of anything else a user should know; without it, the log does. `patience` is how
    many seconds another process may keep the file locked. `clock` and `connect` serve tests.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        on_trouble: OnTrouble | None = None,
        patience: float = 30.0,
        clock: Callable[[], float] = time.time,
        connect: Callable[[Path], sqlite3.Connection] = connect,
    ) -> None:
        self.path = expanded(path).absolute()
        self._report = on_trouble or _log.warning
        self._patience = patience
        self._clock = clock
        self._connect = connect
        self._file_thread: _CacheThread | None = None
        self._is_closed = False

    def __repr__(self) -> str:
        return f"SqliteCache({str(self.path)!r})"

    async def get_many(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        check_keys(keys)
        if not keys:
            return {}
        return await self._call(lambda store: store.get(keys))

    async def put_many(self, items: Sequence[tuple[bytes, bytes]]) -> None:
        """Store all; returns once they are committed."""
        check_keys(key for key, _ in items)
        if items:
            await self._submitted(items=items)

    async def claim_many(self, keys: Sequence[bytes], *, owner: int, is_idle: bool = False) -> Claim:
        """Look keys up, lease what no run has under way, renew what is held: as LeasingCache says."""
        check_keys(keys)
        return await self._call(lambda store: store.claim(keys, owner=owner, is_idle=is_idle))

    async def release_many(self, keys: Sequence[bytes] | None, *, owner: int) -> None:
        """Give up leases; None: all of this owner's."""
        check_keys(keys or ())
        await self._call(lambda store: store.release(keys, owner=owner))

    async def stats(self) -> CacheStats:
        """How many entries, how big, how old."""
        return await self._call(lambda store: store.run(lambda connection: stats(connection, store.path)))

    async def prune(
        self, *, max_entries: int | None = None, max_bytes: int | None = None, older_than: float | None = None
    ) -> int:
        """Drop what is older than so many seconds, then the oldest until the rest fits; how many went."""
        before = None if older_than is None else self._clock() - older_than
        return await self._shrink(
            lambda connection: prune(
                connection, max_entries=max_entries, max_bytes=max_bytes, created_before=before
            )
        )

    async def clear(self) -> int:
        """Drop everything; how many went."""
        return await self._shrink(lambda connection: prune(connection, max_entries=0))

    async def export(self, out: Writable) -> int:
        """Write every entry as a line of JSON; how many there were."""
        return await self._call(lambda store: store.run(lambda connection: export(connection, out)))

    async def close(self) -> None:
        """Finish what is waiting, close the file, end the thread. Safe to call twice."""
        thread, self._file_thread, self._is_closed = self._file_thread, None, True
        if thread is not None and thread.pid == os.getpid():
            await thread.stop()

    async def _shrink(self, work: Callable[[sqlite3.Connection], int]) -> int:
        count = await self._call(lambda store: store.run(work))
        if count:
            try:
                await self._call(lambda store: store.run(compact))
            except CacheError as error:
                self._report(f"{count} entries dropped, but their space is still in the file: {error}")
        return count

    async def _call(self, call: Callable[[Store], T]) -> T:
        """What the thread that owns the file makes of a call."""
        found: T = await self._submitted(call=call)
        return found

    async def _submitted(self, **work: Any) -> Any:
        if self._is_closed:
            raise CacheError(f"the cache {self.path} is closed; open it again")
        if self._file_thread is None or self._file_thread.pid != os.getpid():
            # A forked child needs a thread and a connection of its own.
            make_store = functools.partial(Store, self.path, clock=self._clock, connect=self._connect)
            self._file_thread = _CacheThread(make_store)
        job = _CacheJob(asyncio.get_running_loop().create_future(), self._report, self._patience, **work)
        self._file_thread.submit(job)
        return await job.future


# -- the thread that owns the file: begun by the first job, ended with the cache, in step with fork ----


FORK_WAIT_S = 10.0
"""How long a fork waits for the file to be closed."""


class _CacheThread:
    """A daemon thread, started by the first job; an interpreter that exits does not wait for it."""

    def __init__(self, make_store: Callable[..., Store]) -> None:
        self.pid = os.getpid()
        self._inbox: _Inbox = SimpleQueue()
        self._gate = threading.Lock()
        self._is_stopped = False
        self._park: _PauseForFork | None = None
        # The thread must not know this object, or it would keep an abandoned cache alive.
        self._thread = threading.Thread(
            target=_serve, args=(self._inbox, make_store), name="plaudit-cache", daemon=True
        )
        self._finalizer = weakref.finalize(self, self._inbox.put, _EndThread())
        self._finalizer.atexit = False  # an engine that closes at exit still has verdicts to store
        _threads.add(self)

    def submit(self, job: _CacheJob) -> None:
        """Hand over a job; its future is settled on its own loop."""
        with self._gate:
            if self._is_stopped:
                raise CacheError("the cache is closed; open it again")
            self._inbox.put(job)
            if self._thread.ident is None:
                self._thread.start()

    async def stop(self) -> None:
        """Finish what is waiting, close the file, end the thread. No job may follow."""
        end = _EndThread()
        with self._gate:
            self._is_stopped = True
            if not self._finalizer.detach() or self._thread.ident is None:
                return
            self._inbox.put(end)
        await asyncio.shield(asyncio.wrap_future(end.ended))
        self._thread.join()  # it has nothing left to do

    def park(self) -> None:
        """Have the file closed, and kept so until `resume`."""
        with self._gate:
            if self.pid != os.getpid() or not self._thread.is_alive():
                return
            self._park = _PauseForFork()
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
_threads: weakref.WeakSet[_CacheThread] = weakref.WeakSet()
_one_fork = threading.Lock()


def _before_fork() -> None:
    _one_fork.acquire()
    for thread in list(_threads):
        thread.park()


def _after_fork_in_parent() -> None:
    for thread in list(_threads):
        thread.resume()
    _one_fork.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_one_fork.release
    )


# -- what it does with the jobs it is handed -----------------------------------------------------------


GROUP_ROWS = 4096
"""Rows after which a group of writes is full: look-ups wait no longer than that takes."""

OnTrouble = Callable[[str], None]


@dataclass(slots=True, eq=False)
class _CacheJob:
    """Work for the file, and who waits for it. `report` hears of trouble, on the loop that waits."""

    future: asyncio.Future[Any]
    report: OnTrouble
    patience: float
    """Seconds that other processes may keep the file locked before the job fails."""
    call: Callable[[Store], object] | None = None
    items: Sequence[tuple[bytes, bytes]] = ()
    """To be written, when there is no call."""
    give_up_at: float = math.inf


@dataclass(slots=True, eq=False)
class _EndThread:
    """Finish what is waiting, close the file, end the thread."""

    ended: Future[None] = field(default_factory=Future)


@dataclass(slots=True, eq=False)
class _PauseForFork:
    """Close the file until `resume`: somebody forks."""

    parked: threading.Event = field(default_factory=threading.Event)
    resume: threading.Event = field(default_factory=threading.Event)


_Inbox = SimpleQueue[_CacheJob | _EndThread | _PauseForFork]


def _serve(inbox: _Inbox, make_store: Callable[..., Store]) -> None:
    """The thread's life: until told to stop, and then until nothing waits."""
    troubles: list[str] = []
    jobs = _JobQueue(inbox, make_store(on_trouble=troubles.append), troubles)
    while jobs.stop is None or jobs.has_work:
        jobs.receive()
        jobs.do_calls()
        jobs.do_writes()
    jobs.store.close()
    jobs.stop.ended.set_result(None)


class _JobQueue:
    """What the thread has before it. Between jobs it refers to none, so that their owners can be freed."""

    def __init__(self, inbox: _Inbox, store: Store, troubles: list[str]) -> None:
        self.store = store
        self.stop: _EndThread | None = None
        self._inbox = inbox
        self._troubles = troubles
        self._calls: deque[_CacheJob] = deque()
        self._writes: deque[_CacheJob] = deque()
        self._is_wait_told = False

    @property
    def has_work(self) -> bool:
        return bool(self._calls or self._writes)

    def receive(self) -> None:
        """Take all that has come; wait only when there is nothing else to do."""
        try:
            self._sort(self._inbox.get(block=self.stop is None and not self.has_work))
            while True:
                self._sort(self._inbox.get_nowait())
        except Empty:
            return

    def do_calls(self) -> None:
        jobs, self._calls = self._calls, deque()
        for job in jobs:
            assert job.call is not None
            try:
                self._settle([job], result=job.call(self.store))
            except Busy as busy:
                self._calls.extend(self._still_patient([job], busy))
            except Exception as error:  # noqa: BLE001 - raised again where it is awaited
                self._settle([job], error=error)

    def do_writes(self) -> None:
        group: list[_CacheJob] = []
        items: list[tuple[bytes, bytes]] = []
        while self._writes and len(items) < GROUP_ROWS:
            group.append(self._writes.popleft())
            items += group[-1].items
        if not group:
            return
        try:
            self.store.put(items)
        except Busy as busy:
            self._writes.extendleft(reversed(self._still_patient(group, busy)))
        except Exception as error:  # noqa: BLE001 - raised again where it is awaited
            self._settle(group, error=error)
        else:
            self._settle(group)

    def _sort(self, item: _CacheJob | _EndThread | _PauseForFork) -> None:
        if isinstance(item, _EndThread):
            self.stop = item
        elif isinstance(item, _PauseForFork):
            self.store.close()
            item.parked.set()
            item.resume.wait()
        else:
            item.give_up_at = time.monotonic() + item.patience
            (self._writes if item.call is None else self._calls).append(item)

    def _still_patient(self, jobs: list[_CacheJob], busy: Busy) -> list[_CacheJob]:
        now = time.monotonic()
        late = [job for job in jobs if job.give_up_at <= now]
        if late:
            message = f"{busy} for {late[0].patience:g} s; end that process, or name another cache file"
            self._settle(late, error=CacheError(message))
        elif not self._is_wait_told and jobs[0].give_up_at - TELL_BEFORE * jobs[0].patience <= now:
            self._is_wait_told = True  # once: a process that is stopped in a write may be so again and again
            job = jobs[0]
            with contextlib.suppress(RuntimeError):  # as in _settle
                told = f"{busy}; waiting for it, for up to {job.patience:g} s"
                job.future.get_loop().call_soon_threadsafe(job.report, told)
        time.sleep(0.005)  # some refusals come without SQLite having waited at all
        return [job for job in jobs if job.give_up_at > now]

    def _settle(
        self, jobs: list[_CacheJob], *, result: object = None, error: Exception | None = None
    ) -> None:
        """One crossing for each loop, however many jobs it waits for."""
        troubles = self._troubles[:]
        self._troubles.clear()
        by_loop: dict[asyncio.AbstractEventLoop, list[_CacheJob]] = {}
        for job in jobs:
            by_loop.setdefault(job.future.get_loop(), []).append(job)
        for loop, waiting in by_loop.items():
            with contextlib.suppress(RuntimeError):  # that loop is closed: there is no waiter any more
                loop.call_soon_threadsafe(_deliver, waiting, troubles, result, error)
                troubles = []


def _deliver(jobs: list[_CacheJob], troubles: list[str], result: object, error: Exception | None) -> None:
    for job in jobs:
        if job.future.done():
            continue  # cancelled meanwhile
        if error is not None:
            job.future.set_exception(error)
        else:
            job.future.set_result(result)
    for message in troubles:  # still before anybody resumes, and last: a report that raises harms no one
        jobs[0].report(message)
