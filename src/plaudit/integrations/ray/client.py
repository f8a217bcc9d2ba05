"""A process's side of the shared engine: small requests go out together, and each gets its one outcome.

Knows nothing of Ray but a `Wire`. What has no outcome is remembered here, so that an engine which dies costs
time and nothing else: it is found or started again, and asked again; what it had stored is not paid again.
"""

from __future__ import annotations

import asyncio
import atexit
import ctypes
import functools
import itertools
import logging
import os
import weakref
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Sequence
from concurrent.futures import Future
from typing import Any, Protocol

from plaudit.blocking import LoopThread
from plaudit.errors import ConfigError, EngineClosed
from plaudit.integrations.ray.errand import Asked, Joined
from plaudit.integrations.ray.parcel import Answers, Drop, Parcel
from plaudit.scheduler.batch import Batch
from plaudit.types import Status, Verdict

log = logging.getLogger("plaudit")

GATHER = 0.002
"""Seconds for which requests are gathered, from the first one on."""
TOGETHER = 256
"""Samples that go out at once, without waiting for more."""
LOSSES = 5
"""How often the engine may be lost over one request before that fails."""
OVERDUE = 0.5
"""Seconds past its deadline after which a batch is ended here, whatever the engine does."""
PARTINGS_KEPT = 4096
CLOSE_WITHIN = 15.0


class Wire(Protocol):
    """The way to the shared engine. Any exception but ConfigError means that the way is lost."""

    async def connect(self) -> None:
        """Find the engine, or start it. ConfigError: others run it with other settings, or Ray is missing."""
        ...

    async def send(self, parcels: Sequence[Parcel]) -> None:
        """Hand parcels in."""
        ...

    async def collect(self) -> Answers | None:
        """Wait for answers; None when the engine does not know this process."""
        ...

    async def close(self) -> None:
        """Leave; whoever started the engine ends it."""
        ...


class Client:
    """The callers' end. Ended by `close`, or once neither a SharedEngine nor a batch refers to it."""

    def __init__(self, wire: Wire) -> None:
        self._work = _Work(wire)
        self._thread = LoopThread("plaudit-ray")
        weakref.finalize(self, self._thread.end, self._work.close, within=0.0).atexit = False
        _clients.add(self)

    @property
    def is_alive(self) -> bool:
        """Whether it runs, and in this process."""
        return self._thread.is_alive

    @property
    def is_current(self) -> bool:
        """Whether the caller is on the client's own thread."""
        return self._thread.is_current

    def connect(self) -> None:
        """Find or start the engine now, and raise what is wrong."""
        self._wait_for(self._work.connect)

    def call(self, action: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        """Run a coroutine where the wire lives, and wait for what it gives."""
        return self._wait_for(action)

    def start(self, batch: Batch, asks: Iterable[Asked]) -> None:
        self._thread.post(functools.partial(self._work.start, batch, list(asks)))

    def join(self, joined: Joined) -> None:
        self._thread.post(functools.partial(self._work.join, joined))

    def expire(self, batch: Batch) -> None:
        self._thread.post(functools.partial(self._work.end, batch, Status.DEADLINE, "deadline"))

    def cancel(self, batch: Batch) -> None:
        self._thread.post(functools.partial(self._work.end, batch, Status.FAILED, "cancelled"))

    def close(self) -> None:
        """Fail what has no outcome, leave the engine, end the thread. Safe to call twice."""
        if not self._thread.end(self._work.close, within=CLOSE_WITHIN):
            log.warning("the way to the shared engine did not close within %g s", CLOSE_WITHIN)

    def _wait_for(self, action: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        if self.is_current:
            raise EngineClosed("waiting on the client's own thread would be for ever; wait on another one")
        done: Future[Any] = Future()
        self._thread.post(functools.partial(self._work.run, action, done))
        return done.result()


class _Work:
    """The thread's end: knows wire and errands, and not the Client, whose end it must not put off."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._ids = itertools.count(1)
        self._asks: dict[int, Asked] = {}
        self._joins: dict[int, Joined] = {}
        self._of_batch: dict[Batch, list[int]] = {}
        self._parted: deque[Joined] = deque(maxlen=PARTINGS_KEPT)
        self._outbox: list[Parcel] = []
        self._outbox_size = 0
        self._flushing: asyncio.Handle | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._reaching: asyncio.Task[None] | None = None
        self._listening: asyncio.Task[None] | None = None
        self._is_connected = False
        self._epoch = 0
        """Counts the engines that were lost, so that one loss told twice is one loss."""

    # -- requests in --------------------------------------------------------------------------------------

    def start(self, batch: Batch, asks: Sequence[Asked]) -> None:
        loop = asyncio.get_running_loop()
        due = None if batch.deadline is None else loop.time() + batch.deadline
        if due is not None:
            alarm = loop.call_at(due + OVERDUE, self.end, batch, Status.DEADLINE, "deadline")
            batch.when_done(alarm.cancel)
        for asked in asks:
            asked.id, asked.due = next(self._ids), due
            self._asks[asked.id] = asked
            self._of_batch.setdefault(batch, []).append(asked.id)
            self._post(asked.parcel(now=loop.time()), size=len(asked.missing))

    def join(self, joined: Joined) -> None:
        joined.id = next(self._ids)
        self._joins[joined.id] = joined
        loop = asyncio.get_running_loop()
        joined.begin(now=loop.time())
        alarm = loop.call_at(joined.due + OVERDUE, self._stay_alone, joined.id, "the shared engine is silent")
        joined.found.add_done_callback(lambda _: alarm.cancel())
        self._post(joined.parcel(), size=1)

    def end(self, batch: Batch, status: Status, why: str) -> None:
        """Give every sample without a verdict this one, and have nothing more sent for it."""
        for ask in list(self._of_batch.get(batch, ())):
            asked = self._asks.get(ask)
            if asked is not None:
                self._settle(asked, [(place, Verdict(None, status, error=why)) for place in asked.missing])
                self._post(Drop(ask), size=0)

    def _post(self, parcel: Parcel, *, size: int) -> None:
        self._outbox.append(parcel)
        self._outbox_size += size
        if self._outbox_size >= TOGETHER:
            self._flush()
        elif self._flushing is None:
            self._flushing = asyncio.get_running_loop().call_later(GATHER, self._flush)

    def _flush(self) -> None:
        if self._flushing is not None:
            self._flushing.cancel()
            self._flushing = None
        parcels, self._outbox, self._outbox_size = self._outbox, [], 0
        if self._is_connected:
            self._spawn(self._send(parcels))
            self._listen()
        elif self._reaching is None and (self._asks or self._joins):
            self._reaching = self._spawn(self._reach())  # which sends all that is open, these included

    # -- the engine, lost and found -----------------------------------------------------------------------

    async def connect(self) -> None:
        await self._wire.connect()
        self._is_connected = True

    async def _reach(self) -> None:
        """Find or start the engine, and send everything that has no outcome."""
        try:
            await self.connect()
        except Exception as error:  # noqa: BLE001 - whatever it is, everybody who waits must hear of it
            self._fail(list(self._asks.values()), f"the shared engine cannot be reached: {error}")
            for join in list(self._joins):
                self._stay_alone(join, str(error))
            return
        finally:
            self._reaching = None
        await self._send_all_open()
        self._listen()

    async def _send_all_open(self) -> None:
        now = asyncio.get_running_loop().time()
        parcels: list[Parcel] = [asked.parcel(now=now) for asked in self._asks.values()]
        # A member that has left its group may be missed by one whose answer was lost: it comes once more.
        parcels += [joined.parcel() for joined in self._parted if joined.due > now]
        parcels += [joined.parcel() for joined in self._joins.values()]
        for start in range(0, len(parcels), TOGETHER):
            await self._send(parcels[start : start + TOGETHER])

    async def _send(self, parcels: Sequence[Parcel]) -> None:
        epoch = self._epoch
        try:
            await self._wire.send(parcels)
        except Exception as error:  # noqa: BLE001 - the wire is lost, whatever it says
            self._on_lost(epoch, error)

    def _listen(self) -> None:
        if self._listening is None or self._listening.done():
            self._listening = self._spawn(self._collect())

    async def _collect(self) -> None:
        """Take answers in as long as somebody waits for one."""
        while self._is_connected and (self._asks or self._joins):
            epoch = self._epoch
            try:
                answers = await self._wire.collect()
            except Exception as error:  # noqa: BLE001 - as in _send
                self._on_lost(epoch, error)
                return
            if epoch != self._epoch:
                return
            if answers is None:  # this process was silent for so long that it was taken for dead
                await self._send_all_open()
            else:
                self._take_in(answers)

    def _on_lost(self, epoch: int, error: Exception) -> None:
        if epoch != self._epoch:
            return
        self._epoch += 1
        self._is_connected = False
        log.warning("the shared engine was lost and is sought again: %s", _first_line(error))
        for item in (*self._asks.values(), *self._joins.values()):
            item.losses += 1
        why = f"the shared engine was lost {LOSSES + 1} times over this request: {_first_line(error)}"
        self._fail([asked for asked in self._asks.values() if asked.losses > LOSSES], why)
        for join in [join for join, joined in self._joins.items() if joined.losses > LOSSES]:
            self._stay_alone(join, why)
        self._flush()

    # -- outcomes -----------------------------------------------------------------------------------------

    def _take_in(self, answers: Answers) -> None:
        fresh: dict[int, list[tuple[int, Verdict]]] = {}
        for ask, place, verdict in answers.verdicts:
            fresh.setdefault(ask, []).append((place, verdict))
        for ask, items in fresh.items():
            if (asked := self._asks.get(ask)) is not None:
                self._settle(asked, items)
        for join, found in answers.meetings:
            joined = self._joins.pop(join, None)
            if joined is None:
                continue
            if isinstance(found, str):
                joined.refuse(ConfigError(found))
            else:
                joined.tell(found)
                self._parted.append(joined)

    def _settle(self, asked: Asked, items: list[tuple[int, Verdict]]) -> None:
        asked.deliver(items)
        if asked.missing:
            return
        del self._asks[asked.id]
        rest = self._of_batch[asked.batch]
        rest.remove(asked.id)
        if not rest:
            del self._of_batch[asked.batch]

    def _fail(self, asks: Iterable[Asked], why: str) -> None:
        for asked in asks:
            failed = Verdict(None, Status.FAILED, error=why)
            self._settle(asked, [(place, failed) for place in asked.missing])

    def _stay_alone(self, join: int, why: str) -> None:
        joined = self._joins.pop(join, None)
        if joined is not None:
            log.warning("group %r could not meet: %s", joined.group, why)
            joined.tell({joined.member: joined.payload})

    # -- life ---------------------------------------------------------------------------------------------

    def run(self, action: Callable[[], Coroutine[Any, Any, Any]], done: Future[Any]) -> None:
        async def told() -> None:
            try:
                done.set_result(await action())
            except BaseException as error:  # noqa: BLE001 - another thread waits for it
                done.set_exception(error)

        self._spawn(told())

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def close(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._flushing is not None:
            self._flushing.cancel()
        self._fail(list(self._asks.values()), "the engine was closed")
        for joined in self._joins.values():
            joined.refuse(EngineClosed("the engine was closed"))
        self._joins.clear()
        await self._wire.close()


def _first_line(error: Exception) -> str:
    """Ray's messages run over many lines, with addresses and process numbers in the later ones."""
    return (str(error).strip() or repr(error)).splitlines()[0]


_clients: weakref.WeakSet[Client] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for client in list(_clients):
        client.close()


def _keep_for_ever() -> None:
    """Never free the parent's clients in a forked child: the two share what the event loop watches."""
    for client in list(_clients):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(client))
    _clients.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_keep_for_ever)
