"""A connection without Ray: client and server in one process, and it can be cut."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from until import PATIENCE_S

from plaudit import Engine, Pending, Sample
from plaudit.events import Observer
from plaudit.integrations.ray.engine_client import EngineClient, PendingJoin, pickle_judge, split_batch
from plaudit.integrations.ray.engine_server import EngineServer
from plaudit.integrations.ray.messages import Message, Results, ScoreRequest
from plaudit.judges.base import Judge
from plaudit.scheduling.batch import Batch
from plaudit.transports import Transport


class LoopbackConnection:
    """Leads to a server, which `connect` makes anew when there is none. Engines are kept, to be closed."""

    def __init__(self, transport: Transport, cache: str | None = None, *, hold: float = 0.0) -> None:
        self.connects = 0
        self.sent: list[list[Message]] = []
        self.engines: list[Engine] = []
        self.broken: Exception | None = None
        """What `connect` raises."""
        self.dies_at_send = -1
        """The send, counted from 0, at which the engine dies."""
        self.is_silent = False
        """Whether nothing that is sent arrives, and nobody says so."""
        self.on_answers: Callable[[Results], Results] = lambda answers: answers
        self._transport = transport
        self._cache = cache
        self._hold = hold
        self._server: EngineServer | None = None
        self._cut = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def submissions(self) -> int:
        assert self._server is not None
        return self._server.submissions

    @property
    def score_requests(self) -> list[ScoreRequest]:
        return [
            message for messages in self.sent for message in messages if isinstance(message, ScoreRequest)
        ]

    def lose(self) -> None:
        """The engine dies: whatever is on the connection falls, and the next connect finds another engine."""
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._lose)

    def forget(self) -> None:
        """The server takes the process for dead."""
        assert self._loop is not None
        assert self._server is not None
        self._loop.call_soon_threadsafe(self._server.forget, "me")

    def _lose(self) -> None:
        self._server = None
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
        if self._server is None:
            self._server = EngineServer(self._open, hold=self._hold)
        self._server.admit("me")

    async def send(self, messages: Sequence[Message]) -> None:
        self.sent.append(list(messages))
        if len(self.sent) - 1 == self.dies_at_send:
            self._lose()
        server = self._server
        if server is None:
            raise ConnectionError("the engine died")
        if not self.is_silent:
            server.receive("me", pickle.loads(pickle.dumps(messages)))

    async def collect(self) -> Results:
        server, cut = self._server, asyncio.ensure_future(self._cut.wait())
        if server is None:
            raise ConnectionError("the engine died")
        if self.is_silent:
            await cut
            raise ConnectionError("the engine died")
        got = asyncio.ensure_future(server.collect("me"))
        await asyncio.wait({got, cut}, return_when=asyncio.FIRST_COMPLETED)
        if not got.done():
            got.cancel()
            raise ConnectionError("the engine died")
        cut.cancel()
        return self.on_answers(got.result())

    async def close(self) -> None:
        """Nothing to free."""


@contextmanager
def client_over(connection: LoopbackConnection) -> Iterator[EngineClient]:
    client = EngineClient(connection)
    try:
        yield client
    finally:
        client.close()
        for engine in connection.engines:
            engine.close()


def submit(
    client: EngineClient, samples: Sequence[Sample], judge: Judge, *, deadline: float | None = None
) -> Pending:
    batch = Batch(samples, judge, model="m", deadline=deadline)
    client.start(batch, split_batch(batch, pickle_judge(judge, dumps=pickle.dumps)))
    return Pending(batch, client)


def join(
    client: EngineClient, member: str, payload: object, *, size: int, timeout: float = PATIENCE_S
) -> PendingJoin:
    joined = PendingJoin("g", member, pickle.dumps(payload), size=size, timeout=timeout)
    client.join(joined)
    return joined
