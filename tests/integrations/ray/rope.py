"""A wire without Ray: client and desk in one process, and scissors."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from plaudit import Engine, Pending, Sample
from plaudit.events import Observer
from plaudit.integrations.ray.client import Client
from plaudit.integrations.ray.desk import Desk
from plaudit.integrations.ray.errand import Joined, asked_of, packed
from plaudit.integrations.ray.parcel import Answers, Ask, Parcel
from plaudit.judges.base import Judge
from plaudit.scheduling.batch import Batch
from plaudit.transports import Transport


class Rope:
    """Leads to a desk, which `connect` makes anew when there is none. Engines are kept, to be closed."""

    def __init__(self, transport: Transport, cache: str | None = None, *, hold: float = 0.0) -> None:
        self.connects = 0
        self.sent: list[list[Parcel]] = []
        self.engines: list[Engine] = []
        self.broken: Exception | None = None
        """What `connect` raises."""
        self.dies_at_send = -1
        """The send, counted from 0, at which the engine dies."""
        self.is_silent = False
        """Whether nothing that is sent arrives, and nobody says so."""
        self.on_answers: Callable[[Answers], Answers | None] = lambda answers: answers
        self._transport = transport
        self._cache = cache
        self._hold = hold
        self._desk: Desk | None = None
        self._cut = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def rounds(self) -> int:
        assert self._desk is not None
        return self._desk.rounds

    @property
    def asks(self) -> list[Ask]:
        return [parcel for parcels in self.sent for parcel in parcels if isinstance(parcel, Ask)]

    def lose(self) -> None:
        """The engine dies: whatever is on the rope falls, and the next connect finds another engine."""
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._lose)

    def forget(self) -> None:
        """The desk takes the process for dead."""
        assert self._loop is not None
        assert self._desk is not None
        self._loop.call_soon_threadsafe(self._desk.forget, "me")

    def _lose(self) -> None:
        self._desk = None
        self._cut.set()
        self._cut = asyncio.Event()

    def _open(self, observer: Observer) -> Engine:
        engine = Engine(
            "http://held/v1",
            model="m",
            cache=self._cache,
            hedge=False,
            observers=[observer],
            transport=lambda _: self._transport,
        )
        self.engines.append(engine)
        return engine

    async def connect(self) -> None:
        self.connects += 1
        self._loop = asyncio.get_running_loop()
        if self.broken is not None:
            raise self.broken
        if self._desk is None:
            self._desk = Desk(self._open, hold=self._hold)

    async def send(self, parcels: Sequence[Parcel], *, is_all: bool) -> bool:
        self.sent.append(list(parcels))
        if len(self.sent) - 1 == self.dies_at_send:
            self._lose()
        desk = self._desk
        if desk is None:
            raise ConnectionError("the engine died")
        return self.is_silent or desk.receive("me", pickle.loads(pickle.dumps(parcels)), is_all=is_all)

    async def collect(self) -> Answers | None:
        desk, cut = self._desk, asyncio.ensure_future(self._cut.wait())
        if desk is None:
            raise ConnectionError("the engine died")
        if self.is_silent:
            await cut
            raise ConnectionError("the engine died")
        got = asyncio.ensure_future(desk.collect("me"))
        await asyncio.wait({got, cut}, return_when=asyncio.FIRST_COMPLETED)
        if not got.done():
            got.cancel()
            raise ConnectionError("the engine died")
        cut.cancel()
        answers = got.result()
        return self.on_answers(answers) if answers is not None else None

    async def close(self) -> None:
        """Nothing to free."""


@contextmanager
def client_over(rope: Rope) -> Iterator[Client]:
    client = Client(rope)
    try:
        yield client
    finally:
        client.close()
        for engine in rope.engines:
            engine.close()


def submit(
    client: Client, samples: Sequence[Sample], judge: Judge, *, deadline: float | None = None
) -> Pending:
    batch = Batch(samples, judge, model="m", deadline=deadline)
    client.start(batch, asked_of(batch, packed(judge, dumps=pickle.dumps), dumps=pickle.dumps))
    return Pending(batch, client)


def join(client: Client, member: str, payload: object, *, size: int, timeout: float = 10.0) -> Joined:
    joined = Joined("g", member, pickle.dumps(payload), size=size, timeout=timeout)
    client.join(joined)
    return joined
