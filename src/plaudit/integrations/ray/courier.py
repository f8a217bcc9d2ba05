"""Carries what a process asks to the shared engine, many requests to a call, and the outcomes back.

Lives on one event loop, and knows nothing of Ray but a `Wire`. What has no outcome is remembered here, so
that an engine which dies costs time and nothing else: it is found or started again, and asked again; what it
had stored is not paid again.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Sequence
from concurrent.futures import Future
from typing import Any, Protocol

from plaudit.errors import ConfigError, EngineClosed
from plaudit.integrations.ray.errand import Asked, Joined
from plaudit.integrations.ray.parcel import Answers, Drop, Parcel
from plaudit.scheduling.batch import Batch
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
SILENT = 10.0
"""Seconds past its time after which a group is given up: so many, lest two members hear different things."""
PARTINGS_KEPT = 4096
LEAVE_WITHIN = 1.0


class Wire(Protocol):
    """The way to the shared engine. Any exception but ConfigError means that the way is lost."""

    async def connect(self) -> None:
        """Find the engine, or start it. ConfigError: others run it with other settings, or Ray is missing."""
        ...

    async def send(self, parcels: Sequence[Parcel], *, is_all: bool) -> bool:
        """Hand parcels in; False: the engine does not know this process, and wants all that is open."""
        ...

    async def collect(self) -> Answers | None:
        """Wait for answers; None when the engine does not know this process."""
        ...

    async def close(self) -> None:
        """Leave; whoever started the engine ends it."""
        ...


class Courier:
    """Errands in, outcomes out. Everything but the constructor is called on the loop."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._ids = itertools.count(1)
        self._asks: dict[int, Asked] = {}
        self._joins: dict[int, Joined] = {}
        self._of_batch: dict[Batch, list[int]] = {}
        self._parted: deque[Joined] = deque(maxlen=PARTINGS_KEPT)
        self._outbox: list[Asked | Joined | Drop] = []
        self._outbox_size = 0
        self._flushing: asyncio.Handle | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._reaching: asyncio.Task[None] | None = None
        self._listening: asyncio.Task[None] | None = None
        self._is_connected = False
        self._connecting = asyncio.Lock()
        self._epoch = 0
        """Counts the engines that were lost, so that one loss told twice is one loss."""
        self._introduced = 0
        """Counts how often everything was sent, so that an engine which asks for it twice gets it once."""
        self._is_introduced = False
        self._is_introducing = False

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
            self._post(asked, size=len(asked.missing))

    def join(self, joined: Joined) -> None:
        if not joined.found.set_running_or_notify_cancel():
            return
        joined.id = next(self._ids)
        self._joins[joined.id] = joined
        loop = asyncio.get_running_loop()
        joined.begin(now=loop.time())
        alarm = loop.call_at(joined.due + SILENT, self._stay_alone, joined.id, "the shared engine is silent")
        joined.found.add_done_callback(lambda _: alarm.cancel())
        self._post(joined, size=1)

    def end(self, batch: Batch, status: Status, why: str) -> None:
        """Give every sample without a verdict this one, and have nothing more sent for it."""
        for ask in list(self._of_batch.get(batch, ())):
            asked = self._asks.get(ask)
            if asked is not None:
                self._settle(asked, [(place, Verdict(None, status, error=why)) for place in asked.missing])
                self._post(Drop(ask), size=0)

    def _post(self, item: Asked | Joined | Drop, *, size: int) -> None:
        self._outbox.append(item)
        self._outbox_size += size
        if self._outbox_size >= TOGETHER:
            self._flush()
        elif self._flushing is None:
            self._flushing = asyncio.get_running_loop().call_later(GATHER, self._flush)

    def _flush(self) -> None:
        if self._flushing is not None:
            self._flushing.cancel()
            self._flushing = None
        if self._is_introducing:
            return  # calls overtake each other, and an engine that does not know us would ask for all again
        items, self._outbox, self._outbox_size = self._outbox, [], 0
        if self._is_connected and not self._is_introduced:
            self._introduce(self._introduced)
        elif self._is_connected:
            now = asyncio.get_running_loop().time()
            parcels = [item if isinstance(item, Drop) else item.parcel(now=now) for item in items]
            if parcels:
                self._spawn(self._send(parcels))
            self._listen()
        elif self._reaching is None and (self._asks or self._joins):
            self._reaching = self._spawn(self._reach())  # which sends all that is open, these included

    # -- the engine, lost and found -----------------------------------------------------------------------

    async def connect(self) -> None:
        async with self._connecting:
            if not self._is_connected:
                await self._wire.connect()
                self._is_connected, self._is_introduced = True, False

    async def call(self, action: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        """Do something else over the wire; the second time with the engine found again."""
        await self.connect()
        epoch = self._epoch
        try:
            return await action()
        except Exception as error:  # noqa: BLE001 - as in _send
            self._on_lost(epoch, error)
        await self.connect()
        return await action()

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
        self._flush()

    def _introduce(self, introduced: int) -> None:
        """Send everything that has no outcome, unless that was done since this was asked for."""
        if introduced != self._introduced:
            return
        self._introduced += 1
        self._is_introduced = self._is_introducing = True
        self._outbox, self._outbox_size = [], 0
        now = asyncio.get_running_loop().time()
        # A member that has left its group may be missed by one whose answer was lost: it comes once more.
        parted = [joined for joined in self._parted if joined.due > now]
        items: list[Asked | Joined] = [*self._asks.values(), *parted, *self._joins.values()]
        self._spawn(self._send_all([item.parcel(now=now) for item in items]))

    async def _send_all(self, parcels: Sequence[Parcel]) -> None:
        epoch = self._epoch
        for start in range(0, len(parcels), TOGETHER):
            if epoch == self._epoch:  # else it is lost, and the next one gets them all
                await self._send(parcels[start : start + TOGETHER], is_all=True)
        self._is_introducing = False
        self._flush()

    async def _send(self, parcels: Sequence[Parcel], *, is_all: bool = False) -> None:
        epoch, introduced = self._epoch, self._introduced
        try:
            if not await self._wire.send(parcels, is_all=is_all):
                self._introduce(introduced)
        except Exception as error:  # noqa: BLE001 - the wire is lost, whatever it says
            self._on_lost(epoch, error)

    def _listen(self) -> None:
        if self._listening is None or self._listening.done():
            self._listening = self._spawn(self._collect())

    async def _collect(self) -> None:
        """Take answers in as long as somebody waits for one."""
        while self._is_connected and not self._is_introducing and (self._asks or self._joins):
            epoch, introduced = self._epoch, self._introduced
            try:
                answers = await self._wire.collect()
            except Exception as error:  # noqa: BLE001 - as in _send
                self._on_lost(epoch, error)
                return
            if epoch != self._epoch:
                return
            if answers is None:  # this process was silent for so long that it was taken for dead
                self._introduce(introduced)
            else:
                self._take_in(answers)

    def _on_lost(self, epoch: int, error: Exception) -> None:
        if epoch != self._epoch:
            return
        self._epoch += 1
        self._is_connected = False
        log.warning("the shared engine was lost and is sought again: %s", _first_line(error))
        for asked in self._asks.values():
            asked.losses += 1
        for joined in self._joins.values():
            joined.losses += 1
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
        unwanted = [Drop(ask) for ask in self._asks]
        self._fail(list(self._asks.values()), "the engine was closed")
        for joined in self._joins.values():
            joined.refuse(EngineClosed("the engine was closed"))
        self._joins.clear()
        if unwanted and self._is_connected:
            try:
                await asyncio.wait_for(self._wire.send(unwanted, is_all=False), LEAVE_WITHIN)
            except Exception as error:  # noqa: BLE001 - then it will notice by itself that nobody comes
                log.debug("the shared engine was left without a word: %s", _first_line(error))
        await self._wire.close()


def _first_line(error: Exception) -> str:
    """Ray's messages run over many lines, with addresses and process numbers in the later ones."""
    return (str(error).strip() or repr(error)).splitlines()[0]
