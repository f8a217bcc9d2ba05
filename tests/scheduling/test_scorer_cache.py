"""The cache: good verdicts are durable before they are acknowledged, failures are never kept."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import pytest
from dispatching import Asked, FakeServer
from scoring import Desk, Marks, SlowCache, expected, good_server, marks_of, samples, verdicts_of

from plaudit.caches.memory import MemoryCache
from plaudit.config import EngineConfig
from plaudit.errors import CacheError, TransportFailed
from plaudit.events import BatchFinished, CacheTrouble, VerdictsReady
from plaudit.scheduling.scorer import GATHER
from plaudit.testing import run
from plaudit.types import Reply, Sample, Source, Status, Verdict


class BrokenCache(SlowCache):
    """Fails from some operation on."""

    def __init__(self, error: Exception, *, gets: int = 10**9, puts: int = 10**9) -> None:
        super().__init__()
        self._error, self._gets_left, self._puts_left = error, gets, puts

    async def get_many(self, keys: Sequence[bytes]) -> Mapping[bytes, bytes]:
        self._gets_left -= 1
        if self._gets_left < 0:
            raise self._error
        return await super().get_many(keys)

    async def put_many(self, items: Sequence[tuple[bytes, bytes]]) -> None:
        self._puts_left -= 1
        if self._puts_left < 0:
            raise self._error
        await super().put_many(items)


def test_what_the_cache_has_is_not_sent() -> None:
    async def main() -> None:
        cache, batch = MemoryCache(), samples(300)
        async with Desk(good_server(), cache=cache) as desk:
            first = await desk.score(batch)
        server = good_server()
        async with Desk(server, cache=cache) as desk:
            second = await desk.score(batch)
            assert server.asked == []
            assert [v.score for v in second] == [v.score for v in first] == expected(batch)
            assert [v.reason for v in second] == [v.reason for v in first]
            assert {v.source for v in second} == {Source.CACHE}
            assert {v.usage.cost for v in second} == {0.0}
            summary = desk.seen(BatchFinished)[0].summary
            assert summary.calls == 0
            assert summary.by_source == {"cache": 300}

    run(main())


def test_a_verdict_is_handed_over_only_once_it_is_stored() -> None:
    async def main() -> None:
        cache = SlowCache(put=5.0)
        async with Desk(good_server(), cache=cache) as desk:
            batch = desk.submit(samples(3))
            await asyncio.sleep(3.0)  # the replies are in, and being written
            assert batch.remaining == 3
            assert desk.seen(VerdictsReady) == []
            await verdicts_of(batch)
            assert all(event.at >= 6.0 for event in desk.seen(VerdictsReady))
            assert len(cache.stored_at) == 3

    run(main())


def test_verdicts_that_come_during_a_write_are_written_together_next() -> None:
    async def main() -> None:
        cache = SlowCache(put=10.0)
        server = FakeServer(lambda asked: (1.0 + asked.arrival / 10, marks_of(asked.text)))
        async with Desk(server, cache=cache) as desk:
            await desk.score(samples(50))
            assert cache.puts == 2

    run(main())


def test_verdicts_that_come_shortly_after_a_write_are_written_together_next() -> None:
    async def main() -> None:
        cache = SlowCache()
        server = FakeServer(lambda asked: (1.0 + asked.arrival % 32 * GATHER / 100, marks_of(asked.text)))
        async with Desk(server, cache=cache) as desk:
            batch = desk.submit(samples(1000))
            await asyncio.sleep(1.5)
            assert len(batch.samples) - batch.remaining >= 32
            assert cache.puts <= 8
            await verdicts_of(batch)

    run(main())


def test_a_verdict_does_not_wait_for_others_where_few_are_to_come() -> None:
    async def main() -> None:
        async with Desk(good_server(), cache=SlowCache()) as desk:
            start = asyncio.get_running_loop().time()
            for name in ("one", "another"):
                await desk.score(samples(1, name=name))
            assert asyncio.get_running_loop().time() - start == pytest.approx(2.0)

    run(main())


def test_failures_are_never_cached_so_that_an_outage_passes() -> None:
    """An earlier system cached failures as 0.0: a passing outage became permanent."""

    def behave(asked: Asked) -> Reply | Exception:
        if asked.at >= 1000.0:
            return marks_of(asked.text)
        if "down" in asked.text:
            return TransportFailed("502")
        return Reply("well..." if "babble" in asked.text else "refused")

    async def main() -> None:
        cache = MemoryCache()
        async with Desk(FakeServer(behave), cache=cache) as desk:
            batch = [Sample("q", f"{kind} {n}") for kind in ("down", "babble", "no") for n in range(3)]
            verdicts = await desk.score(batch)
            assert {v.status for v in verdicts} == {Status.FAILED, Status.UNREADABLE, Status.REFUSED}
            assert len(cache) == 0
            await asyncio.sleep(1000.0)
            again = await desk.score(batch)
            assert {v.status for v in again} == {Status.OK}
            assert len(cache) == 9

    run(main())


def test_empty_responses_are_settled_by_rule_every_time() -> None:
    async def main() -> None:
        cache = MemoryCache()
        async with Desk(good_server(), cache=cache) as desk:
            verdicts = await desk.score([Sample("q", "")])
            assert verdicts[0].source is Source.RULE
            assert len(cache) == 0

    run(main())


def test_the_cache_tells_apart_prompt_judge_and_model() -> None:
    """The key was once the response alone: another prompt, rubric or model got the same score."""

    async def main() -> None:
        cache, server = MemoryCache(), good_server()
        async with Desk(server, cache=cache) as desk:
            await desk.score([Sample("one", "yes")], Marks("1"))
            await desk.score([Sample("two", "yes")], Marks("1"))
            await desk.score([Sample("one", "yes")], Marks("2"))
            await desk.score([Sample("one", "yes")], Marks("1"), model="other")
            assert len(server.asked) == 4
            await desk.score([Sample("one", "yes")], Marks("1"))
            assert len(server.asked) == 4

    run(main())


def test_an_entry_that_is_no_verdict_is_asked_anew() -> None:
    async def main() -> None:
        class Scribbled(SlowCache):
            async def get_many(self, keys: Sequence[bytes]) -> Mapping[bytes, bytes]:
                return dict.fromkeys(keys, b'{"score": "high"}')

        server = good_server()
        async with Desk(server, cache=Scribbled()) as desk:
            verdict = (await desk.score([Sample("q", "abc")]))[0]
            assert verdict.source is Source.CALL
            assert len(server.asked) == 1

    run(main())


# -- caches that fail -------------------------------------------------------------------------------------

ERRORS = [CacheError("disk full: /tmp/verdicts.db"), ValueError("a bug in somebody's cache")]


@pytest.mark.parametrize("error", ERRORS, ids=repr)
@pytest.mark.parametrize("broken", [{"gets": 0}, {"gets": 1}, {"puts": 0}, {"puts": 1}], ids=str)
def test_a_cache_that_breaks_costs_no_verdict_and_is_reported_once(
    error: Exception, broken: dict[str, int]
) -> None:
    async def main() -> None:
        cache = BrokenCache(error, **broken)
        server = FakeServer(lambda asked: (1.0 + asked.arrival % 7, marks_of(asked.text)))
        async with Desk(server, cache=cache) as desk:
            batch = samples(700)
            verdicts = await desk.score(batch)
            assert [v.score for v in verdicts] == expected(batch)
            assert len(server.asked) == 700
            assert len(desk.seen(CacheTrouble)) == 1
            assert str(error) in desk.seen(CacheTrouble)[0].message
            assert [v.status for v in await desk.score(samples(5, name="later"))] == [Status.OK] * 5
            assert len(desk.seen(CacheTrouble)) == 1

    run(main())


def test_a_verdict_that_cannot_be_written_as_it_stands_is_kept_all_the_same() -> None:
    class Odd(Marks):
        def parse(self, reply: Reply, sample: Sample) -> Verdict:
            return Verdict(7.0, Status.OK, reason="odd \ud800 words")

    async def main() -> None:
        cache = MemoryCache()
        async with Desk(good_server(), cache=cache) as desk:
            first = await desk.score(samples(3), Odd())
            assert [verdict.score for verdict in first] == [7.0] * 3
            second = await desk.score(samples(3), Odd())
            assert {verdict.source for verdict in second} == {Source.CACHE}
            assert desk.seen(CacheTrouble) == []

    run(main())


def test_a_late_reply_still_fills_the_cache() -> None:
    async def main() -> None:
        cache = MemoryCache()
        server = good_server(latency=20.0)
        async with Desk(server, cache=cache) as desk:
            verdicts = await desk.score(samples(10), deadline=5.0)
            assert {verdict.status for verdict in verdicts} == {Status.DEADLINE}
            await asyncio.sleep(20.0)
            assert len(cache) == 10
            again = await desk.score(samples(10))
            assert {verdict.source for verdict in again} == {Source.CACHE}
            assert len(server.asked) == 10

    run(main())


def test_what_is_being_written_when_the_engine_closes_is_written_and_handed_over() -> None:
    async def main() -> None:
        cache = SlowCache(put=5.0)
        server = FakeServer(lambda asked: (1.0 if asked.arrival < 4 else 1e6, marks_of(asked.text)))
        config = EngineConfig(max_concurrent=8, timeout=1e7)
        async with Desk(server, cache=cache, config=config) as desk:
            batch = desk.submit(samples(5000))
            await asyncio.sleep(2.0)
        verdicts = await verdicts_of(batch)
        assert [verdict.status for verdict in verdicts[:4]] == [Status.OK] * 4
        assert {verdict.status for verdict in verdicts[4:]} == {Status.FAILED}
        assert len(cache.stored_at) == 4

    run(main())


def test_reading_a_slow_cache_does_not_hold_up_other_batches() -> None:
    async def main() -> None:
        class SlowForLarge(SlowCache):
            async def get_many(self, keys: Sequence[bytes]) -> Mapping[bytes, bytes]:
                await asyncio.sleep(60.0 if len(keys) > 100 else 0.0)
                return {}

        async with Desk(good_server(), cache=SlowForLarge()) as desk:
            large = desk.submit(samples(200))
            small = await desk.score([Sample("q", "quick")])
            assert small[0].status is Status.OK
            assert asyncio.get_running_loop().time() < 5.0
            assert large.remaining == 200

    run(main())


class Kept(MemoryCache):
    """A cache that tells its keys."""

    def __init__(self) -> None:
        super().__init__()
        self.keys: list[bytes] = []

    async def put_many(self, items: Sequence[tuple[bytes, bytes]]) -> None:
        self.keys += [key for key, _ in items]
        await super().put_many(items)


class Scaled(Marks):
    """Marks on a scale."""

    scale = (0, 10)


@pytest.mark.parametrize(
    "planted",
    [
        b'{"score":47,"status":"ok"}',
        b'{"score":-1,"status":"ok"}',
        b'{"score":NaN,"status":"ok"}',
        b'{"score":1e999,"status":"ok"}',
        b'{"score":"7","status":"ok"}',
        b'{"score":true,"status":"ok"}',
        b'{"score":null,"status":"ok"}',
        b'{"score":7,"status":"failed"}',
        b'{"score":7}',
        b"[7]",
        b"\xff\x00",
        b"",
    ],
)
def test_a_stored_score_that_the_judge_could_not_give_is_asked_for_again_and_replaced(planted: bytes) -> None:
    async def main() -> None:
        cache, batch = Kept(), samples(3)
        async with Desk(good_server(), cache=cache) as desk:
            good = [verdict.score for verdict in await desk.score(batch, Scaled())]
        await cache.put_many([(cache.keys[1], planted)])
        server = good_server()
        for _ in range(2):  # the second time from the cache
            async with Desk(server, cache=cache) as desk:
                assert [verdict.score for verdict in await desk.score(batch, Scaled())] == good
        assert len(server.asked) == 1

    run(main())


def test_samples_that_come_one_by_one_are_looked_up_and_stored_together() -> None:
    class Counting(MemoryCache):
        looks = writes = 0

        async def get_many(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
            self.looks += 1
            return await super().get_many(keys)

        async def put_many(self, items: Sequence[tuple[bytes, bytes]]) -> None:
            self.writes += 1
            await super().put_many(items)

    async def main() -> None:
        cache = Counting()
        async with Desk(good_server(latency=0.5), cache=cache) as desk:
            batches = []
            for sample in samples(2000):
                batches.append(desk.submit([sample]))
                await asyncio.sleep(0.001)
            for batch in batches:
                assert [verdict.status for verdict in await verdicts_of(batch)] == [Status.OK]
        before_the_first_reply = 500
        assert cache.looks <= before_the_first_reply + 200 and cache.writes <= 300

    run(main())


def test_a_sample_that_comes_alone_waits_for_no_other() -> None:
    async def main() -> None:
        async with Desk(good_server(latency=0.5), cache=MemoryCache()) as desk:
            for sample in samples(3):
                began = asyncio.get_running_loop().time()
                await desk.score([sample])
                assert asyncio.get_running_loop().time() - began == pytest.approx(0.5)

    run(main())
