"""A process's side of the shared engine: gathers requests into few calls, and outlives an engine that dies.

`EngineClient` is for any thread; its `AsyncEngineClient` runs on an event loop of its own and remembers what
is open: an engine that is lost is found or started again, and asked again; what it had stored is not paid
again. Nothing here knows Ray, only an `EngineConnection`.
"""

from __future__ import annotations

import asyncio
import functools
import itertools
import logging
import pickle
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from plaudit._loop_thread import LoopOwner
from plaudit.errors import ConfigError, EngineClosed
from plaudit.integrations.ray.messages import CancelRequest, JoinRequest, Message, Results, ScoreRequest
from plaudit.judges.base import Judge, Panel, is_panel
from plaudit.scheduling.batch import Batch
from plaudit.types import Cause, Source, Verdict

log = logging.getLogger("plaudit")

Dumps = Callable[[Any], bytes]
CHUNK = 256
"""Samples of a batch that travel together. A panel sees its whole batch, so that travels whole."""
CLOSE_WITHIN = 15.0
GATHER = 0.002
"""Seconds for which requests are gathered, from the first one on."""
TOGETHER = 256
"""Samples that go out at once, without waiting for more."""
LOSSES = 5
"""How often the engine may be lost over one request before that fails."""
OVERDUE = 0.5
"""Seconds past its deadline after which a batch is ended here, even if the engine says nothing."""
SILENT = 10.0
"""Seconds past its time after which a group is given up. Long, so that all members get the same group."""
FINISHED_JOINS_KEPT = 4096
LEAVE_WITHIN = 1.0


class EngineConnection(Protocol):
    """The connection to the shared engine. Any exception but ConfigError means that it is lost."""

    async def connect(self) -> None:
        """Find the engine, or start it. ConfigError: it runs with other settings, or Ray is missing."""

    async def send(self, messages: Sequence[Message]) -> None:
        """Hand messages over."""

    async def collect(self) -> Results:
        """Wait for results."""

    async def close(self) -> None:
        """Leave; the process that started the engine ends it."""


@dataclass(frozen=True, slots=True)
class PickledJudge:
    """A judge ready to travel: pickled once for as long as it is used, because judges are pure."""

    judge: Judge | Panel
    pickled: bytes
    is_panel: bool
    dumps: Dumps
    """Pickles its samples."""


def pickle_judge(judge: Judge | Panel, *, dumps: Dumps) -> PickledJudge:
    """Pickle a judge. ConfigError where that fails."""
    with _must_pickle("the judge"):
        return PickledJudge(judge, dumps(judge), is_panel(judge), dumps)


class PendingScore:
    """Samples of one batch that travel together."""

    def __init__(self, batch: Batch, places: Sequence[int], judge: PickledJudge) -> None:
        self.id = 0
        self.batch = batch
        self.due: float | None = None
        self.losses = 0
        """How often the engine was lost while this was open."""
        self.missing = dict.fromkeys(places)
        self._places = tuple(places)
        self._judge = judge
        self._samples: bytes | None = judge.dumps([batch.samples[place] for place in places])

    def message(self, *, now: float) -> ScoreRequest:
        """What to send, the second time as the first: of a plain judge's samples, those without a verdict."""
        places = self._places if self._judge.is_panel else tuple(self.missing)
        samples = self._samples
        if samples is None:
            samples = self._judge.dumps([self.batch.samples[place] for place in places])
        self._samples = None  # rarely needed again, and then often not all of them
        deadline = None if self.due is None else max(self.due - now, 0.05)
        return ScoreRequest(self.id, self._judge.pickled, samples, places, deadline, self.batch.job)

    def deliver(self, items: list[tuple[int, Verdict]]) -> None:
        for place, verdict in items:
            if place in self.missing:
                del self.missing[place]
                if verdict.source is Source.CALL:
                    self.batch.calls += verdict.attempts
                    self.batch.retries += max(verdict.attempts - 1, 0)
        self.batch.deliver(items)

    def give_up(self, why: str, cause: Cause = Cause.CLOSED) -> None:
        self.deliver([(place, Verdict.failed(cause, why)) for place in self.missing])


class PendingJoin:
    """A member that waits for its group."""

    def __init__(self, group: str, member: str, payload: bytes, *, size: int, timeout: float) -> None:
        self.id = 0
        self.group = group
        self.member = member
        self.payload = payload
        self.timeout = timeout
        self.losses = 0
        self.due = 0.0
        self.found: Future[dict[str, Any]] = Future()
        self._size = size

    def message(self, *, now: float) -> JoinRequest:  # noqa: ARG002 - its time counts from its arrival
        return JoinRequest(self.id, self.group, self.member, self.payload, self._size, self.timeout)

    def resolve(self, found: Mapping[str, bytes]) -> None:
        try:
            read = {member: pickle.loads(payload) for member, payload in found.items()}  # noqa: S301
            self.found.set_result(read)
        except Exception as error:  # noqa: BLE001 - another member's class, unknown here
            self.found.set_exception(
                ConfigError(f"what a member of {self.group!r} brought cannot be read: {error!r}")
            )

    def give_up(self, why: str) -> None:
        """The member alone is the group."""
        log.warning("group %r could not meet: %s", self.group, why)
        self.resolve({self.member: self.payload})


def split_batch(batch: Batch, judge: PickledJudge) -> list[PendingScore]:
    """Split a batch into parts that travel. ConfigError where a sample cannot be pickled."""
    size = max(len(batch.samples), 1) if judge.is_panel else CHUNK
    with _must_pickle("a sample"):
        return [
            PendingScore(batch, range(start, min(start + size, len(batch.samples))), judge)
            for start in range(0, len(batch.samples), size)
        ]


@contextmanager
def _must_pickle(what: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        raise ConfigError(
            f"{what} cannot be sent to the shared engine: {error!r}; "
            "leave out what cannot be pickled (files, locks, clients), or use a plaudit.Engine right here"
        ) from error


class AsyncEngineClient:
    """Sends requests and settles them. Everything but the constructor is called on the loop."""

    def __init__(self, connection: EngineConnection) -> None:
        self._connection = connection
        self._ids = itertools.count(1)
        self._open: dict[int, PendingScore | PendingJoin] = {}
        self._parts: dict[Batch, Sequence[PendingScore]] = {}
        self._finished_joins: deque[PendingJoin] = deque(maxlen=FINISHED_JOINS_KEPT)
        self._outbox: list[PendingScore | PendingJoin | CancelRequest] = []
        self._outbox_size = 0
        self._flushing: asyncio.Handle | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._reconnecting: asyncio.Task[None] | None = None
        self._listening: asyncio.Task[None] | None = None
        self._is_connected = False
        self._connecting = asyncio.Lock()
        self._epoch = 0
        """Counts the engines that were lost, so that one loss noticed twice is one loss."""

    # -- requests in --------------------------------------------------------------------------------------

    def start(self, batch: Batch, parts: Sequence[PendingScore]) -> None:
        loop = asyncio.get_running_loop()
        due = None if batch.deadline is None else loop.time() + batch.deadline
        if due is not None:
            batch.when_done(loop.call_at(due + OVERDUE, self.expire, batch).cancel)
        self._parts[batch] = parts
        batch.when_done(functools.partial(self._parts.__delitem__, batch))
        for part in parts:
            part.id, part.due = next(self._ids), due
            self._open[part.id] = part
            self._post(part, size=len(part.missing))

    def join(self, joined: PendingJoin) -> None:
        if not joined.found.set_running_or_notify_cancel():
            return
        joined.id = next(self._ids)
        self._open[joined.id] = joined
        loop = asyncio.get_running_loop()
        joined.due = loop.time() + joined.timeout
        alarm = loop.call_at(joined.due + SILENT, self._give_up, joined, "the shared engine is silent")
        joined.found.add_done_callback(lambda _: alarm.cancel())
        self._post(joined, size=1)

    def expire(self, batch: Batch) -> None:
        self._end(batch, Cause.DEADLINE, "deadline")

    def cancel(self, batch: Batch, *, abort: bool) -> None:  # noqa: ARG002 - others may wait for the same
        self._end(batch, Cause.CANCELLED, "cancelled")

    def _end(self, batch: Batch, cause: Cause, why: str) -> None:
        """Give every sample without a verdict this one, and have nothing more sent for it."""
        for part in self._parts.get(batch, ()):
            if self._open.pop(part.id, None):
                part.give_up(why, cause)
                self._post(CancelRequest(part.id), size=0)

    def _post(self, item: PendingScore | PendingJoin | CancelRequest, *, size: int) -> None:
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
        items, self._outbox, self._outbox_size = self._outbox, [], 0
        if self._is_connected:
            self._send(items)
        elif self._reconnecting is None and self._open:
            self._reconnecting = self._spawn(self._reconnect())  # it sends all that is open

    # -- the engine, lost and found -----------------------------------------------------------------------

    async def connect(self) -> None:
        """Find or start the engine, and send everything that has no outcome."""
        async with self._connecting:
            if self._is_connected:
                return
            await self._connection.connect()
            self._is_connected = True
            self._outbox, self._outbox_size = [], 0
            # A member that has left its group may be missed by one whose answer was lost: it comes once more.
            now = asyncio.get_running_loop().time()
            finished = [joined for joined in self._finished_joins if joined.due > now]
            self._send([*finished, *self._open.values()])

    async def call(self, action: Callable[[Any], Coroutine[Any, Any, Any]]) -> Any:
        """Do something else over the connection; the second time with the engine found again."""
        await self.connect()
        epoch = self._epoch
        try:
            return await action(self._connection)
        except Exception as error:  # noqa: BLE001 - as in _hand_over
            self._on_lost(epoch, error)
        await self.connect()
        return await action(self._connection)

    async def _reconnect(self) -> None:
        try:
            await self.connect()
        except Exception as error:  # noqa: BLE001 - every request that waits fails with the reason
            for request in list(self._open.values()):
                is_join = isinstance(request, PendingJoin)
                self._give_up(request, f"{'' if is_join else 'the shared engine cannot be reached: '}{error}")
        finally:
            self._reconnecting = None

    def _send(self, items: Sequence[PendingScore | PendingJoin | CancelRequest]) -> None:
        """Hand these over, not too many in one call, and listen for results."""
        now = asyncio.get_running_loop().time()
        messages = [item if isinstance(item, CancelRequest) else item.message(now=now) for item in items]
        if messages:
            self._spawn(self._hand_over(messages, self._epoch))
        if self._listening is None or self._listening.done():
            self._listening = self._spawn(self._collect(self._epoch))

    async def _hand_over(self, messages: Sequence[Message], epoch: int) -> None:
        try:
            for start in range(0, len(messages), TOGETHER):
                if epoch == self._epoch:  # else it is lost, and the next one gets them all
                    await self._connection.send(messages[start : start + TOGETHER])
        except Exception as error:  # noqa: BLE001 - any error means that the connection is lost
            self._on_lost(epoch, error)

    async def _collect(self, epoch: int) -> None:
        """Fetch results as long as a request is open, of the engine that was there when this was begun."""
        while epoch == self._epoch and self._open:
            try:
                results = await self._connection.collect()
            except Exception as error:  # noqa: BLE001 - as in _hand_over
                self._on_lost(epoch, error)
                return
            if epoch == self._epoch:
                self._take_in(results)

    def _on_lost(self, epoch: int, error: Exception) -> None:
        if epoch != self._epoch:
            return
        self._epoch += 1
        self._is_connected = False
        self._listening = None  # to another one; what the old one still says is not heard
        log.warning("the shared engine was lost; looking for it again: %s", _first_line(error))
        why = f"the shared engine was lost {LOSSES + 1} times over this request: {_first_line(error)}"
        for request in list(self._open.values()):
            request.losses += 1
            if request.losses > LOSSES:
                self._give_up(request, why)
        self._flush()

    # -- outcomes -----------------------------------------------------------------------------------------

    def _take_in(self, results: Results) -> None:
        fresh: dict[int, list[tuple[int, Verdict]]] = {}
        for request, place, verdict in results.verdicts:
            fresh.setdefault(request, []).append((place, verdict))
        for request, items in fresh.items():
            part = self._open.get(request)
            if isinstance(part, PendingScore):
                part.deliver(items)
                if not part.missing:
                    del self._open[request]
        for request, found in results.groups:
            joined = self._open.pop(request, None)
            if not isinstance(joined, PendingJoin):
                continue
            if isinstance(found, str):
                joined.found.set_exception(ConfigError(found))
            else:
                joined.resolve(found)
                self._finished_joins.append(joined)

    def _give_up(self, request: PendingScore | PendingJoin, why: str) -> None:
        if self._open.pop(request.id, None):
            request.give_up(why)

    # -- life ---------------------------------------------------------------------------------------------

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def close(self) -> None:
        under_way = asyncio.all_tasks() - {asyncio.current_task()}
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)
        if self._flushing is not None:
            self._flushing.cancel()
        unwanted: list[CancelRequest] = []
        for request in list(self._open.values()):
            if isinstance(request, PendingScore):
                unwanted.append(CancelRequest(request.id))
                self._give_up(request, "the engine was closed")
            else:
                request.found.set_exception(EngineClosed("the engine was closed"))
        self._open.clear()
        if unwanted and self._is_connected:
            try:
                await asyncio.wait_for(self._connection.send(unwanted), LEAVE_WITHIN)
            except Exception as error:  # noqa: BLE001 - then the server notices after a while
                log.debug(
                    "the shared engine could not be told that this process disconnects: %s",
                    _first_line(error),
                )
        await self._connection.close()


class EngineClient(LoopOwner[AsyncEngineClient]):
    """The client for any thread. Closing fails what has no outcome, and leaves the engine."""

    def __init__(self, connection: EngineConnection) -> None:
        work = AsyncEngineClient(connection)
        super().__init__("the connection to the shared engine", work, within=CLOSE_WITHIN)

    def connect(self) -> None:
        """Find or start the engine now, and raise what is wrong."""
        self.thread.run(self.work.connect)

    def call(self, action: Callable[[Any], Coroutine[Any, Any, Any]]) -> Any:
        """Do something else over the connection, and wait for what it gives."""
        return self.thread.run(functools.partial(self.work.call, action))

    def start(self, batch: Batch, parts: Iterable[PendingScore]) -> None:
        self.thread.post(self.work.start, batch, list(parts))

    def join(self, joined: PendingJoin) -> None:
        self.thread.post(self.work.join, joined)


def _first_line(error: Exception) -> str:
    """Ray's messages run over many lines, with addresses and process numbers in the later ones."""
    return (str(error).strip() or repr(error)).splitlines()[0]
