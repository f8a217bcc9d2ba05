"""Memory stays flat: however large a batch is, few of its requests exist at any moment."""

from __future__ import annotations

import asyncio
import gc
import weakref
from dataclasses import dataclass

from dispatching import Asked, FakeServer
from scoring import Desk, Marks, good_server, marks_of, samples, verdicts_of

from plaudit.caches.memory import MemoryCache
from plaudit.config import EngineConfig
from plaudit.errors import TransportFailed
from plaudit.policy.retry import RetryPolicy
from plaudit.scheduling.scorer import CHUNK, WINDOW
from plaudit.testing import run
from plaudit.types import ChatRequest, Reply, Sample, Status, Verdict

MOST = WINDOW + CHUNK


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Watched(ChatRequest):
    """A request that can be watched as it is freed."""


class Watching(Marks):
    """Counts the requests that were rendered and still exist."""

    def __init__(self) -> None:
        super().__init__()
        self.alive = 0
        self.peak = 0

    def render(self, sample: Sample) -> ChatRequest | Verdict:
        request = Watched(({"role": "user", "content": f"{sample.prompt}|{sample.response}"},))
        self.alive += 1
        self.peak = max(self.peak, self.alive)
        weakref.finalize(request, self._freed)
        return request

    def _freed(self) -> None:
        self.alive -= 1


def test_of_20000_samples_only_a_window_is_rendered_at_any_moment() -> None:
    async def main() -> None:
        server, judge = FakeServer(lambda asked: marks_of(asked.text), latency=0.05), Watching()
        config = EngineConfig(max_concurrent=64)
        async with Desk(server, config=config) as desk:
            verdicts = await desk.score(samples(20_000), judge)
            assert {verdict.status for verdict in verdicts} == {Status.OK}
            gc.collect()
            assert judge.peak <= MOST + 2 * 64
            assert judge.alive <= 1

    run(main())


def test_calls_that_wait_for_their_next_attempt_count_as_well() -> None:
    """A server that breaks most calls must not draw the whole batch into memory."""

    def behave(asked: Asked) -> Reply | Exception:
        put_off = asked.nth == 1 and asked.arrival % 3
        return TransportFailed("503") if put_off else marks_of(asked.text)

    async def main() -> None:
        server, judge = FakeServer(behave, latency=0.05), Watching()
        patient = RetryPolicy(first_wait=600.0, max_wait=600.0)
        async with Desk(server, config=EngineConfig(max_concurrent=64), retry=patient) as desk:
            batch = desk.submit(samples(8000), judge)
            await asyncio.sleep(200.0)
            assert batch.remaining > 2000
            assert judge.peak <= MOST + 2 * 64
            desk.scorer.cancel(batch)

    run(main())


def test_a_small_batch_is_not_kept_waiting_by_a_large_one_for_long() -> None:
    """The window is shared: the large batch has at most one window ahead of the small one."""

    async def main() -> None:
        server = good_server(latency=0.1)
        async with Desk(server, config=EngineConfig(max_concurrent=100)) as desk:
            large = desk.submit(samples(20_000))
            await asyncio.sleep(1.0)
            began = asyncio.get_running_loop().time()
            await desk.score([Sample("q", "urgent")])
            waited = asyncio.get_running_loop().time() - began
            assert waited <= 2 * MOST / 1000 + 1.0  # a thousand calls a second
            assert large.remaining > 10_000
            desk.scorer.cancel(large)
            await verdicts_of(large)

    run(main())


def test_batches_that_wait_for_room_are_let_in_as_it_comes_and_their_deadlines_are_kept() -> None:
    """Thousands of batches of one sample, as a trainer that submits one by one has them."""

    async def main() -> None:
        server = good_server(latency=1.0)
        async with Desk(server, config=EngineConfig(max_concurrent=10, hedge=False)) as desk:
            batches = [desk.submit([sample], deadline=20.0) for sample in samples(6000)]
            statuses = [(await verdicts_of(batch))[0].status for batch in batches]
            assert set(statuses) == {Status.OK, Status.DEADLINE}
            assert 190 <= statuses.count(Status.OK) <= 200
            assert asyncio.get_running_loop().time() <= 21.0

    run(main())


def test_a_batch_that_the_cache_knows_keeps_nobody_waiting_behind_it() -> None:
    async def main() -> None:
        cache, known = MemoryCache(), samples(3000)
        async with Desk(good_server(latency=0.01), cache=cache) as desk:
            await desk.score(known)
        server = good_server(latency=1.0)
        async with Desk(server, cache=cache, config=EngineConfig(max_concurrent=10, hedge=False)) as desk:
            full = desk.submit([Sample("q", f"new {i}") for i in range(2100)])
            await asyncio.sleep(0.5)
            asked = [desk.submit(known), desk.submit([Sample("q", "last")])]
            await asyncio.sleep(30.0)
            desk.scorer.cancel(full)
            for batch in asked:
                assert {verdict.status for verdict in await verdicts_of(batch)} == {Status.OK}

    run(main())


def test_a_batch_that_is_over_is_kept_by_nobody_though_its_calls_failed() -> None:
    def answer(asked: Asked) -> Reply | Exception:
        return TransportFailed("reset") if asked.arrival < 20 else marks_of(asked.text)

    async def main() -> None:
        async with Desk(FakeServer(answer, latency=0.05)) as desk:
            judge = Watching()
            assert all(verdict.is_valid for verdict in await desk.score(samples(50), judge))
            gone = weakref.ref(judge)  # which a batch holds
            del judge
            gc.collect()
            assert gone() is None

    run(main())
