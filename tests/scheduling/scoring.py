"""A scorer on a bench, under virtual time: samples in, verdicts, events and cache contents out."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TypeVar

from dispatching import FakeServer

from plaudit.caches.base import Cache
from plaudit.caches.memory import MemoryCache
from plaudit.config import Endpoint, EngineConfig
from plaudit.errors import Declined, UnreadableVerdict
from plaudit.events import Event
from plaudit.judges.base import Judge
from plaudit.policy.retry import RetryPolicy
from plaudit.scheduling.batch import Batch
from plaudit.scheduling.dispatcher import Dispatcher
from plaudit.scheduling.lane import Lane
from plaudit.scheduling.scorer import Scorer
from plaudit.transports.base import Transport
from plaudit.types import ChatRequest, Reply, Sample, Source, Status, Usage, Verdict

E = TypeVar("E")


class Marks(Judge):
    """A judge that shows the prompt and the response, and takes the reply's text for the score."""

    scale = (0.0, 100.0)

    def __init__(self, version: str = "marks-1") -> None:
        self._version = version
        self.rendered = 0

    @property
    def version(self) -> str:
        return self._version

    def render(self, sample: Sample) -> ChatRequest | Verdict:
        self.rendered += 1
        if not sample.response:
            return Verdict(0.0, Status.EMPTY, "nothing there", source=Source.RULE)
        if sample.text.startswith("cannot render"):
            raise ValueError("no such sample")
        return ChatRequest(({"role": "user", "content": f"{sample.prompt}|{sample.response}"},))

    def parse(self, reply: Reply, sample: Sample) -> Verdict:
        if reply.text == "refused":
            raise Declined("the judge declined")
        if reply.text == "bug":
            raise KeyError("score")
        try:
            score = float(reply.text)
        except ValueError:
            raise UnreadableVerdict(f"{reply.text!r} is no score") from None
        return Verdict(score, Status.OK, f"because of {sample.response}")


def marks_of(text: str) -> Reply:
    """What a good server answers: a score that depends on the question alone."""
    return Reply(str(float(len(text) * 7 % 11)), model="m-1", usage=Usage(len(text), 3))


def good_server(*, latency: float = 1.0) -> FakeServer:
    return FakeServer(lambda asked: marks_of(asked.text), latency=latency)


def samples(count: int, *, name: str = "answer") -> list[Sample]:
    return [Sample("question", f"{name} {'x' * (n % 13)}{n}") for n in range(count)]


def expected(batch: Sequence[Sample]) -> list[float]:
    return [float(marks_of(f"{sample.prompt}|{sample.response}").text) for sample in batch]


class SlowCache:
    """A cache whose every operation takes a while, and which says when each began and ended."""

    def __init__(self, *, get: float = 0.0, put: float = 0.0) -> None:
        self.inner = MemoryCache()
        self._get, self._put = get, put
        self.stored_at: dict[bytes, float] = {}
        self.puts = 0

    async def get_many(self, keys: Sequence[bytes]) -> Mapping[bytes, bytes]:
        await asyncio.sleep(self._get)
        return await self.inner.get_many(keys)

    async def put_many(self, items: Sequence[tuple[bytes, bytes]]) -> None:
        self.puts += 1
        await asyncio.sleep(self._put)
        await self.inner.put_many(items)
        now = asyncio.get_running_loop().time()
        self.stored_at.update((key, now) for key, _ in items)

    async def close(self) -> None:
        await self.inner.close()


class Desk:
    """A scorer over fake servers. `async with` closes it, and checks that nothing was left running."""

    def __init__(
        self,
        *servers: Transport,
        cache: Cache | None = None,
        config: EngineConfig | None = None,
        retry: RetryPolicy | None = None,
    ) -> None:
        self.events: list[Event] = []
        self.finished = 0
        ceiling = config.max_concurrent if config is not None else None
        lanes = [
            Lane(Endpoint(f"http://server{n}/v1", model="m"), server, ceiling=ceiling)
            for n, server in enumerate(servers)
        ]
        self.scorer = Scorer(
            lambda on_room: Dispatcher(lanes, config, retry=retry, emit=self.events.append, on_room=on_room),
            cache,
            emit=self.events.append,
            on_finished=self._on_finished,
        )

    async def __aenter__(self) -> Desk:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.scorer.close()
        assert asyncio.all_tasks() == {asyncio.current_task()}, "a task was left behind"

    def submit(
        self,
        batch: Sequence[Sample],
        judge: Judge | None = None,
        *,
        deadline: float | None = None,
        model: str = "m",
        job: str = "",
    ) -> Batch:
        started = Batch(batch, judge or Marks(), model=model, deadline=deadline, job=job)
        self.scorer.start(started)
        return started

    async def score(
        self,
        batch: Sequence[Sample],
        judge: Judge | None = None,
        *,
        deadline: float | None = None,
        model: str = "m",
    ) -> list[Verdict]:
        return await verdicts_of(self.submit(batch, judge, deadline=deadline, model=model))

    def seen(self, kind: type[E]) -> list[E]:
        return [event for event in self.events if isinstance(event, kind)]

    def _on_finished(self) -> None:
        self.finished += 1


async def verdicts_of(batch: Batch) -> list[Verdict]:
    """Wait, on this loop, for every verdict of a batch."""
    done = asyncio.Event()
    batch.when_done(done.set)
    await done.wait()
    return final(batch)


def final(batch: Batch) -> list[Verdict]:
    """The verdicts of a batch that is done."""
    assert not batch.remaining
    verdicts = [verdict for verdict in batch.verdicts if verdict is not None]
    assert len(verdicts) == len(batch.samples)
    return verdicts
