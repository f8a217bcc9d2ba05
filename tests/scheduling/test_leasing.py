"""Several runs on one cache: each question is asked once, and nobody waits for a run that will not answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from cache_contract import LeasingCacheContract
from dispatching import NEVER, Asked, FakeServer
from leases import LeasedMemory
from scoring import Desk, Marks, expected, good_server, marks_of, samples, verdicts_of

from plaudit.caches.base import LEASE_S, Claim
from plaudit.config import EngineConfig
from plaudit.errors import CacheError, TransportFailed
from plaudit.events import CacheTrouble
from plaudit.judges import Jury
from plaudit.scheduling.leasing import PATIENCE_S, POLL_S
from plaudit.scheduling.panel import panel_batch
from plaudit.testing import run
from plaudit.types import Reply, Source, Status


class TestLeasedMemoryContract(LeasingCacheContract):
    def make_cache(self, folder: Path) -> LeasedMemory:
        return LeasedMemory()


class ScaledMarks(Marks):
    scale = (0.0, 10.0)


def now() -> float:
    return asyncio.get_running_loop().time()


def at_most(count: int) -> EngineConfig:
    return EngineConfig(max_concurrent=count, hedge=False)


def broken(_: Asked) -> Exception:
    return TransportFailed("reset")


@asynccontextmanager
async def together(*desks: Desk) -> AsyncIterator[None]:
    """Close all of them at the end, and see that no task is left."""
    yield
    for desk in desks:
        await desk.scorer.close()
    assert asyncio.all_tasks() == {asyncio.current_task()}, "a task was left behind"


class Stopped:
    """A process's sight of a cache that others share: until it may go on, its claims after the first wait."""

    def __init__(self, shared: LeasedMemory) -> None:
        self.may_go_on = asyncio.Event()
        self.get_many, self.put_many = shared.get_many, shared.put_many
        self.release_many, self.close = shared.release_many, shared.close
        self._shared = shared

    async def claim_many(self, keys: Sequence[bytes], *, owner: int, is_idle: bool = False) -> Claim:
        if self._shared.owner_of:
            await self.may_go_on.wait()
        return await self._shared.claim_many(keys, owner=owner, is_idle=is_idle)


async def until(is_so: Callable[[], bool]) -> None:
    while not is_so():  # noqa: ASYNC110 - virtual time
        await asyncio.sleep(0.01)


def test_two_runs_over_the_same_samples_ask_each_question_once() -> None:
    async def main() -> None:
        cache, batch, server = LeasedMemory(), samples(600), good_server()
        one = Desk(server, cache=cache)
        two = Desk(server, cache=cache)
        async with together(one, two):
            results = await asyncio.gather(one.score(batch), two.score(batch))
        assert len(server.asked) == 600
        for verdicts in results:
            assert [verdict.score for verdict in verdicts] == expected(batch)
        assert {verdict.source for verdict in results[1]} <= {Source.CALL, Source.CACHE}
        assert cache.owner_of == cache.wanted_by == {}

    run(main())


def test_two_runs_take_about_half_as_long_as_one() -> None:
    async def time_of(runs: int, count: int) -> float:
        cache, batch, began = LeasedMemory(), samples(count), now()
        desks = [Desk(good_server(), cache=cache, config=at_most(8)) for _ in range(runs)]
        await asyncio.gather(*(desk.score(batch) for desk in desks))
        took = now() - began
        for desk in desks:
            await desk.scorer.close()
        return took

    for count in (300, 3000):  # all of it within one run's window, and much more than that
        assert run(time_of(2, count)) <= 0.6 * run(time_of(1, count))


def test_a_run_with_other_samples_does_not_wait() -> None:
    async def main() -> None:
        cache, server = LeasedMemory(), good_server()
        stuck = Desk(good_server(latency=NEVER), cache=cache)
        desk = Desk(server, cache=cache)
        async with together(stuck, desk):
            stuck.submit(samples(100, name="other"))
            await until(lambda: len(cache.owner_of) == 100)
            verdicts = await desk.score([*samples(50), *samples(50)])
            assert {verdict.status for verdict in verdicts} == {Status.OK}
            assert len(server.asked) == 50

    run(main())


def test_what_fails_in_one_run_is_asked_by_the_other() -> None:
    async def main() -> None:
        cache, batch, server = LeasedMemory(), samples(20), good_server()
        bad = Desk(FakeServer(broken), cache=cache)
        desk = Desk(server, cache=cache)
        async with together(bad, desk):
            failing = bad.submit(batch)
            await until(lambda: len(cache.owner_of) == 20)
            verdicts = await desk.score(batch)
            assert [verdict.score for verdict in verdicts] == expected(batch)
            assert len(server.asked) == 20
            assert {verdict.score for verdict in await verdicts_of(failing)} <= {None, *expected(batch)}

    run(main())


def test_an_unreadable_reply_and_a_refusal_release_their_lease() -> None:
    async def main() -> None:
        for text in ("no score", "refused", "bug"):
            cache = LeasedMemory()
            async with Desk(FakeServer(Reply(text)), cache=cache) as desk:
                batch = desk.submit(samples(5))
                await until(lambda: len(cache.owner_of) == 5)  # noqa: B023
                await verdicts_of(batch)
                await asyncio.sleep(2 * POLL_S)
                assert cache.owner_of == {}

    run(main())


def test_a_panel_shares_its_questions_too() -> None:
    async def main() -> None:
        cache, batch, server = LeasedMemory(), samples(40), good_server()
        jury = Jury([ScaledMarks("marks-1"), ScaledMarks("marks-2")])
        one = Desk(server, cache=cache)
        two = Desk(server, cache=cache)
        async with together(one, two):
            batches = [panel_batch(batch, jury, model="m") for _ in range(2)]
            for desk, started in zip((one, two), batches, strict=True):
                desk.scorer.start(started)
            for started in batches:
                assert {verdict.status for verdict in await verdicts_of(started)} == {Status.OK}
        assert len(server.asked) == 80
        assert cache.owner_of == {}

    run(main())


def test_closing_an_engine_releases_what_it_had_under_way() -> None:
    async def main() -> None:
        cache, batch, server = LeasedMemory(), samples(600), good_server()
        desk = Desk(server, cache=cache)
        stuck = Desk(good_server(latency=NEVER), cache=cache)
        async with together(desk):
            stuck.submit(batch)
            await until(lambda: len(cache.owner_of) == 600)
            waiting = desk.submit(batch)
            await asyncio.sleep(POLL_S)
            await stuck.scorer.close()
            closed_at = now()
            assert [verdict.score for verdict in await verdicts_of(waiting)] == expected(batch)
            assert min(server.sent_at) <= closed_at + POLL_S
            assert len(server.asked) == 600

    run(main())


def test_a_run_that_shows_no_life_is_not_waited_for() -> None:
    async def main() -> None:
        cache, batch, server = LeasedMemory(), samples(20), good_server()
        async with Desk(good_server(latency=NEVER), cache=cache) as first:
            first.submit(batch)
            await until(lambda: len(cache.owner_of) == 20)
            keys = list(cache.owner_of)
        await cache.claim_many(keys, owner=1)  # by a process that is then killed
        began = now()
        async with Desk(server, cache=cache) as desk:
            assert [verdict.score for verdict in await desk.score(batch)] == expected(batch)
        assert LEASE_S < min(server.sent_at) - began <= LEASE_S + 2 * POLL_S

    run(main())


def test_a_run_that_was_stopped_for_a_while_asks_only_what_nobody_else_has_asked() -> None:
    async def main() -> None:
        shared, batch, server = LeasedMemory(), samples(200), good_server(latency=0.1)
        cache = Stopped(shared)
        frozen = FakeServer(lambda asked: (10.0 if asked.at < 1.0 else 1.0, marks_of(asked.text)))
        stopped = Desk(frozen, cache=cache, config=at_most(8))
        desk = Desk(server, cache=shared)
        async with together(stopped, desk):
            slow = stopped.submit(batch)
            await until(lambda: len(shared.owner_of) == 200)
            assert [verdict.score for verdict in await desk.score(batch)] == expected(batch)
            await asyncio.sleep(10.0 - now())
            cache.may_go_on.set()
            assert [verdict.score for verdict in await verdicts_of(slow)] == expected(batch)
            assert len(server.asked) == 200
            assert len(frozen.asked) <= 16  # what was under way, and one round before it looked around

    run(main())


def test_a_slow_run_leaves_what_it_has_not_sent_to_one_that_waits() -> None:
    async def main() -> None:
        cache, batch = LeasedMemory(), samples(200)
        slow, quick = good_server(latency=20.0), good_server(latency=0.5)
        one = Desk(slow, cache=cache, config=at_most(1))
        two = Desk(quick, cache=cache, config=at_most(32))
        async with together(one, two):
            first = one.submit(batch)
            await until(lambda: len(cache.owner_of) == 200)
            second = two.submit(batch)
            assert [verdict.score for verdict in await verdicts_of(second)] == expected(batch)
            assert [verdict.score for verdict in await verdicts_of(first)] == expected(batch)
            assert now() < 60.0
            assert len(slow.asked) + len(quick.asked) == 200

    run(main())


def test_a_run_asks_for_itself_when_another_brings_nothing_for_long() -> None:
    async def main() -> None:
        cache, batch, server = LeasedMemory(), samples(10), good_server()
        hanging = EngineConfig(timeout=NEVER, hedge=False)
        stuck = Desk(good_server(latency=NEVER), cache=cache, config=hanging)
        desk = Desk(server, cache=cache)
        async with together(stuck, desk):
            stuck.submit(batch)
            await until(lambda: len(cache.owner_of) == 10)
            began = now()
            assert [verdict.score for verdict in await desk.score(batch)] == expected(batch)
            assert PATIENCE_S <= min(server.sent_at) - began <= PATIENCE_S + 1.0

    run(main())


def test_a_deadline_holds_while_waiting_and_nothing_is_kept_from_others() -> None:
    async def main() -> None:
        cache, batch, server = LeasedMemory(), samples(50), good_server()
        slow = Desk(good_server(latency=30.0), cache=cache)
        desk = Desk(server, cache=cache)
        async with together(slow, desk):
            late = slow.submit(batch)
            await until(lambda: len(cache.owner_of) == 50)
            began = now()
            verdicts = await desk.score(batch, deadline=3.1)
            assert {verdict.status for verdict in verdicts} == {Status.DEADLINE}
            assert abs(now() - began - 3.1) < 1e-6
            assert cache.wanted_by
            await asyncio.sleep(2 * POLL_S)
            assert cache.wanted_by == {}
            assert [verdict.score for verdict in await verdicts_of(late)] == expected(batch)
            assert server.asked == []
            assert cache.owner_of == cache.wanted_by == {}

    run(main())


def test_samples_that_wait_hold_up_no_others() -> None:
    async def main() -> None:
        cache, server = LeasedMemory(), good_server()
        theirs, ours = samples(3000), samples(500, name="own")
        stuck = Desk(good_server(latency=NEVER), cache=cache)
        desk = Desk(server, cache=cache)
        async with together(stuck, desk):
            stuck.submit(theirs)
            await until(lambda: len(cache.owner_of) >= 2048)
            leased = len(cache.owner_of)
            batch = desk.submit([*theirs[:leased], *ours])
            await until(lambda: sum(v is not None for v in batch.verdicts[leased:]) == 500)
            assert max(server.sent_at[:32]) <= now()
            assert batch.remaining

    run(main())


def test_when_the_cache_breaks_what_was_waited_for_is_asked() -> None:
    async def main() -> None:
        cache, batch, server = LeasedMemory(), samples(10), good_server()
        stuck = Desk(good_server(latency=NEVER), cache=cache)
        desk = Desk(server, cache=cache)
        async with together(stuck, desk):
            stuck.submit(batch)
            await until(lambda: len(cache.owner_of) == 10)
            waiting = desk.submit(batch)
            await asyncio.sleep(POLL_S / 2)
            cache.error = CacheError("disk gone")
            assert [verdict.score for verdict in await verdicts_of(waiting)] == expected(batch)
            assert len(desk.seen(CacheTrouble)) == 1

    run(main())


def test_a_stored_value_that_is_no_verdict_is_asked_for() -> None:
    async def main() -> None:
        cache, batch, server = LeasedMemory(), samples(3), good_server()
        stuck = Desk(good_server(latency=NEVER), cache=cache)
        desk = Desk(server, cache=cache)
        async with together(stuck, desk):
            stuck.submit(batch)
            await until(lambda: len(cache.owner_of) == 3)
            waiting = desk.submit(batch)
            await asyncio.sleep(POLL_S / 2)
            await cache.put_many([(key, b"no verdict") for key in list(cache.owner_of)])
            assert [verdict.score for verdict in await verdicts_of(waiting)] == expected(batch)

    run(main())


def test_a_run_alone_looks_only_while_it_has_something_under_way() -> None:
    async def main() -> None:
        cache = LeasedMemory()
        async with Desk(FakeServer(lambda asked: marks_of(asked.text)), cache=cache) as desk:
            await desk.score(samples(10))
            await asyncio.sleep(1.0)
            before = cache.claims
            await asyncio.sleep(3600.0)
            assert cache.claims == before

    run(main())
