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
from plaudit.errors import ConfigError, EngineClosed, PlauditError
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
        ...

    async def send(self, messages: Sequence[Message]) -> None:
        """Hand messages over."""
        ...

    async def collect(self) -> Results:
        """Wait for results."""
        ...

    async def close(self) -> None:
        """Leave; the process that started the engine ends it."""
        ...


@dataclass(frozen=True, slots=True)
class PickledJudge:
    """A judge ready to travel. Judges are pure, so it is pickled once for as long as it is used."""

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


class PendingJoin:
    """A member that waits for its group."""

    def __init__(self, group: str, member: str, payload: bytes, *, size: int, timeout: float) -> None:
        self.id = 0
        self.group = group
        self.member = member
        self.payload = payload
        self.losses = 0
        self.due = 0.0
        self.found: Future[dict[str, Any]] = Future()
        self._size = size
        self._timeout = timeout

    def begin(self, *, now: float) -> None:
        self.due = now + self._timeout

    def message(self, *, now: float) -> JoinRequest:  # noqa: ARG002 - its time counts from its arrival
        return JoinRequest(self.id, self.group, self.member, self.payload, self._size, self._timeout)

    def resolve(self, found: Mapping[str, bytes]) -> None:
        if not self.found.done():
            try:
                read = {member: pickle.loads(payload) for member, payload in found.items()}  # noqa: S301
                self.found.set_result(read)
            except Exception as error:  # noqa: BLE001 - another member's class, unknown here
                self.found.set_exception(
                    ConfigError(f"what a member of {self.group!r} brought cannot be read: {error!r}")
                )

    def fail(self, error: PlauditError) -> None:
        if not self.found.done():
            self.found.set_exception(error)


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
        self._scores: dict[int, PendingScore] = {}
        self._joins: dict[int, PendingJoin] = {}
        self._of_batch: dict[Batch, list[int]] = {}
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
            alarm = loop.call_at(due + OVERDUE, self.end, batch, Cause.DEADLINE, "deadline")
            batch.when_done(alarm.cancel)
        for part in parts:
            part.id, part.due = next(self._ids), due
            self._scores[part.id] = part
            self._of_batch.setdefault(batch, []).append(part.id)
            self._post(part, size=len(part.missing))

    def join(self, joined: PendingJoin) -> None:
        if not joined.found.set_running_or_notify_cancel():
            return
        joined.id = next(self._ids)
        self._joins[joined.id] = joined
        loop = asyncio.get_running_loop()
        joined.begin(now=loop.time())
        alarm = loop.call_at(
            joined.due + SILENT, self._give_up_join, joined.id, "the shared engine is silent"
        )
        joined.found.add_done_callback(lambda _: alarm.cancel())
        self._post(joined, size=1)

    def end(self, batch: Batch, cause: Cause, why: str) -> None:
        """Give every sample without a verdict this one, and have nothing more sent for it."""
        for request in list(self._of_batch.get(batch, ())):
            part = self._scores.get(request)
            if part is not None:
                self._settle(part, [(place, Verdict.failed(cause, why)) for place in part.missing])
                self._post(CancelRequest(request), size=0)

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
        elif self._reconnecting is None and (self._scores or self._joins):
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
            self._send([*self._scores.values(), *finished, *self._joins.values()])

    async def call(self, action: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        """Do something else over the connection; the second time with the engine found again."""
        await self.connect()
        epoch = self._epoch
        try:
            return await action()
        except Exception as error:  # noqa: BLE001 - as in _hand_over
            self._on_lost(epoch, error)
        await self.connect()
        return await action()

    async def _reconnect(self) -> None:
        try:
            await self.connect()
        except Exception as error:  # noqa: BLE001 - every request that waits fails with the reason
            self._fail(list(self._scores.values()), f"the shared engine cannot be reached: {error}")
            for join in list(self._joins):
                self._give_up_join(join, str(error))
        finally:
            self._reconnecting = None

    def _send(self, items: Sequence[PendingScore | PendingJoin | CancelRequest]) -> None:
        """Hand these over, not too many in one call, and listen for results."""
        now = asyncio.get_running_loop().time()
        messages = [item if isinstance(item, CancelRequest) else item.message(now=now) for item in items]
        if messages:
            self._spawn(self._hand_over(messages))
        if self._listening is None or self._listening.done():
            self._listening = self._spawn(self._collect())

    async def _hand_over(self, messages: Sequence[Message]) -> None:
        epoch = self._epoch
        try:
            for start in range(0, len(messages), TOGETHER):
                if epoch == self._epoch:  # else it is lost, and the next one gets them all
                    await self._connection.send(messages[start : start + TOGETHER])
        except Exception as error:  # noqa: BLE001 - any error means that the connection is lost
            self._on_lost(epoch, error)

    async def _collect(self) -> None:
        """Fetch results as long as a request is open."""
        epoch = self._epoch
        while epoch == self._epoch and (self._scores or self._joins):
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
        for part in self._scores.values():
            part.losses += 1
        for joined in self._joins.values():
            joined.losses += 1
        why = f"the shared engine was lost {LOSSES + 1} times over this request: {_first_line(error)}"
        self._fail([part for part in self._scores.values() if part.losses > LOSSES], why)
        for join in [join for join, joined in self._joins.items() if joined.losses > LOSSES]:
            self._give_up_join(join, why)
        self._flush()

    # -- outcomes -----------------------------------------------------------------------------------------

    def _take_in(self, results: Results) -> None:
        fresh: dict[int, list[tuple[int, Verdict]]] = {}
        for request, place, verdict in results.verdicts:
            fresh.setdefault(request, []).append((place, verdict))
        for request, items in fresh.items():
            if (part := self._scores.get(request)) is not None:
                self._settle(part, items)
        for join, found in results.groups:
            joined = self._joins.pop(join, None)
            if joined is None:
                continue
            if isinstance(found, str):
                joined.fail(ConfigError(found))
            else:
                joined.resolve(found)
                self._finished_joins.append(joined)

    def _settle(self, part: PendingScore, items: list[tuple[int, Verdict]]) -> None:
        part.deliver(items)
        if part.missing:
            return
        del self._scores[part.id]
        rest = self._of_batch[part.batch]
        rest.remove(part.id)
        if not rest:
            del self._of_batch[part.batch]

    def _fail(self, parts: Iterable[PendingScore], why: str) -> None:
        for part in parts:
            failed = Verdict.failed(Cause.CLOSED, why)
            self._settle(part, [(place, failed) for place in part.missing])

    def _give_up_join(self, join: int, why: str) -> None:
        joined = self._joins.pop(join, None)
        if joined is not None:
            log.warning("group %r could not meet: %s", joined.group, why)
            joined.resolve({joined.member: joined.payload})

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
        unwanted = [CancelRequest(request) for request in self._scores]
        self._fail(list(self._scores.values()), "the engine was closed")
        for joined in self._joins.values():
            joined.fail(EngineClosed("the engine was closed"))
        self._joins.clear()
        if unwanted and self._is_connected:
            try:
                await asyncio.wait_for(self._connection.send(unwanted), LEAVE_WITHIN)
            except Exception as error:  # noqa: BLE001 - then the server notices after a while
                log.debug(
                    "the shared engine could not be told that this process disconnects: %s",
                    _first_line(error),
                )
        await self._connection.close()


class EngineClient(LoopOwner):
    """The client for any thread. Closing fails what has no outcome, and leaves the engine."""

    def __init__(self, connection: EngineConnection) -> None:
        self._async_client = AsyncEngineClient(connection)
        super().__init__("the connection to the shared engine", self._async_client.close, within=CLOSE_WITHIN)

    def connect(self) -> None:
        """Find or start the engine now, and raise what is wrong."""
        self.run(self._async_client.connect)

    def call(self, action: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        """Do something else over the connection, and wait for what it gives."""
        return self.run(functools.partial(self._async_client.call, action))

    def start(self, batch: Batch, parts: Iterable[PendingScore]) -> None:
        self._post(self._async_client.start, batch, list(parts))

    def join(self, joined: PendingJoin) -> None:
        self._post(self._async_client.join, joined)

    def expire(self, batch: Batch) -> None:
        self._post(self._async_client.end, batch, Cause.DEADLINE, "deadline")

    def cancel(self, batch: Batch, *, abort: bool) -> None:  # noqa: ARG002 - others may wait for the same
        self._post(self._async_client.end, batch, Cause.CANCELLED, "cancelled")


def _first_line(error: Exception) -> str:
    """Ray's messages run over many lines, with addresses and process numbers in the later ones."""
    return (str(error).strip() or repr(error)).splitlines()[0]
