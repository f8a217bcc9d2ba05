"""What a verdict file's thread does with what it is handed: look-ups at once, writes in groups.

While a write is going on, later ones pile up; they go into the next transaction together, and each is
acknowledged once that is committed.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Any

from plaudit.caches.store import Busy, Store
from plaudit.errors import CacheError

GROUP_ROWS = 4096
"""Rows after which a group of writes is full: look-ups wait no longer than that takes."""

Report = Callable[[str], None]


@dataclass(slots=True, eq=False)
class Job:
    """Work for the file, and who waits for it. `report` hears of trouble, on the loop that waits."""

    future: asyncio.Future[Any]
    report: Report
    call: Callable[[Store], object] | None = None
    items: Sequence[tuple[bytes, bytes]] = ()
    """To be written, when there is no call."""
    patience: float = 30.0
    """Seconds that other processes may keep the file locked before the job fails."""
    give_up_at: float = math.inf


@dataclass(slots=True, eq=False)
class Stop:
    """Finish what is waiting, close the file, end the thread."""

    future: asyncio.Future[None] | None = None


@dataclass(slots=True, eq=False)
class Park:
    """Close the file until `resume`: somebody forks."""

    parked: threading.Event = field(default_factory=threading.Event)
    resume: threading.Event = field(default_factory=threading.Event)


Inbox = SimpleQueue[Job | Stop | Park]


def serve(inbox: Inbox, make_store: Callable[..., Store]) -> None:
    """The thread's life: until told to stop, and then until nothing waits."""
    troubles: list[str] = []
    desk = _Desk(inbox, make_store(on_trouble=troubles.append), troubles)
    while desk.stop is None or desk.has_work:
        desk.receive()
        desk.do_calls()
        desk.do_writes()
    desk.store.close()
    if desk.stop.future is not None:
        with contextlib.suppress(RuntimeError):  # its loop is closed: nobody waits any more
            desk.stop.future.get_loop().call_soon_threadsafe(_acknowledge, desk.stop.future)


class _Desk:
    """What the thread has before it. Between jobs it refers to none, so that their owners can be freed."""

    def __init__(self, inbox: Inbox, store: Store, troubles: list[str]) -> None:
        self.store = store
        self.stop: Stop | None = None
        self._inbox = inbox
        self._troubles = troubles
        self._calls: deque[Job] = deque()
        self._writes: deque[Job] = deque()

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
        group: list[Job] = []
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

    def _sort(self, letter: Job | Stop | Park) -> None:
        if isinstance(letter, Stop):
            self.stop = letter
        elif isinstance(letter, Park):
            self.store.close()
            letter.parked.set()
            letter.resume.wait()
        else:
            letter.give_up_at = time.monotonic() + letter.patience
            (self._writes if letter.call is None else self._calls).append(letter)

    def _still_patient(self, jobs: list[Job], busy: Busy) -> list[Job]:
        now = time.monotonic()
        late = [job for job in jobs if job.give_up_at <= now]
        if late:
            message = f"{busy} for {late[0].patience:g} s; end that process, or name another cache file"
            self._settle(late, error=CacheError(message))
        time.sleep(0.005)  # some refusals come without SQLite having waited at all
        return [job for job in jobs if job.give_up_at > now]

    def _settle(self, jobs: list[Job], *, result: object = None, error: Exception | None = None) -> None:
        """One crossing for each loop, however many jobs it waits for."""
        troubles = self._troubles[:]
        self._troubles.clear()
        by_loop: dict[asyncio.AbstractEventLoop, list[Job]] = {}
        for job in jobs:
            by_loop.setdefault(job.future.get_loop(), []).append(job)
        for loop, waiting in by_loop.items():
            with contextlib.suppress(RuntimeError):  # that loop is closed: nobody waits any more
                loop.call_soon_threadsafe(_deliver, waiting, troubles, result, error)
                troubles = []


def _deliver(jobs: list[Job], troubles: list[str], result: object, error: Exception | None) -> None:
    for job in jobs:
        if job.future.done():
            continue  # cancelled meanwhile
        if error is not None:
            job.future.set_exception(error)
        else:
            job.future.set_result(result)
    for message in troubles:  # still before anybody resumes, and last: a report that raises harms no one
        jobs[0].report(message)


def _acknowledge(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
