"""Deadlines hold, cancelling sends nothing more, and closing leaves no sample without its verdict."""

from __future__ import annotations

import asyncio

import pytest
from dispatching import Asked, FakeServer
from scoring import Desk, final, good_server, marks_of, samples, verdicts_of

from plaudit.config import EngineConfig
from plaudit.errors import RateLimited, Unreachable
from plaudit.events import BatchFinished
from plaudit.testing import run
from plaudit.types import Reply, Sample, Status


@pytest.mark.parametrize("deadline", [0.5, 2.5, 10.0])
def test_a_deadline_is_kept_and_what_is_missing_is_marked(deadline: float) -> None:
    async def main() -> None:
        server = FakeServer(lambda asked: (1.0 + asked.arrival % 20, marks_of(asked.text)))
        config = EngineConfig(max_concurrent=20)
        async with Desk(server, config=config) as desk:
            verdicts = await desk.score(samples(200), deadline=deadline)
            assert deadline <= asyncio.get_running_loop().time() <= deadline + 1.0
            assert {verdict.status for verdict in verdicts} <= {Status.OK, Status.DEADLINE}
            missing = [verdict for verdict in verdicts if verdict.status is Status.DEADLINE]
            assert missing
            assert all(verdict.score is None for verdict in missing)
            summary = desk.seen(BatchFinished)[0].summary
            assert summary.by_status.get("deadline") == len(missing)

    run(main())


def test_a_batch_that_is_done_in_time_does_not_wait_for_its_deadline() -> None:
    async def main() -> None:
        async with Desk(good_server()) as desk:
            verdicts = await desk.score(samples(10), deadline=1000.0)
            assert {verdict.status for verdict in verdicts} == {Status.OK}
            assert asyncio.get_running_loop().time() < 5.0

    run(main())


def test_a_deadline_holds_while_everything_waits_for_the_endpoint() -> None:
    async def main() -> None:
        server = FakeServer(RateLimited("slow down", retry_after=3000.0), latency=0.1)
        async with Desk(server) as desk:
            verdicts = await desk.score(samples(5000), deadline=30.0)
            assert {verdict.status for verdict in verdicts} == {Status.DEADLINE}
            assert asyncio.get_running_loop().time() == pytest.approx(30.0, abs=1.0)
            assert {verdict.error for verdict in verdicts} == {"deadline, while slow down"}

    run(main())


@pytest.mark.parametrize(
    ("count", "why"),
    [(4, "with no reply to its call yet"), (500, "with more calls waiting than were let in")],
)
def test_a_deadline_says_whether_replies_or_turns_were_awaited(count: int, why: str) -> None:
    async def main() -> None:
        async with Desk(good_server(latency=20.0), config=EngineConfig(max_concurrent=4)) as desk:
            verdicts = await desk.score(samples(count), deadline=5.0)
            assert {verdict.error for verdict in verdicts} == {f"deadline, {why}"}

    run(main())


def test_after_its_deadline_nothing_more_is_sent_for_a_batch() -> None:
    async def main() -> None:
        server = good_server(latency=2.0)
        async with Desk(server, config=EngineConfig(max_concurrent=4)) as desk:
            await desk.score(samples(500), deadline=5.0)
            asked = len(server.asked)
            await asyncio.sleep(100.0)
            assert len(server.asked) == asked <= 12

    run(main())


def test_after_a_cancel_nothing_more_is_sent() -> None:
    async def main() -> None:
        server = good_server(latency=2.0)
        async with Desk(server, config=EngineConfig(max_concurrent=4)) as desk:
            batch = desk.submit(samples(5000))
            await asyncio.sleep(5.0)
            desk.scorer.cancel(batch)
            verdicts = final(batch)  # at once
            done = [verdict for verdict in verdicts if verdict.status is Status.OK]
            cancelled = [verdict for verdict in verdicts if verdict.error == "cancelled"]
            assert len(done) == 8
            assert len(done) + len(cancelled) == 5000
            asked = len(server.asked)
            await asyncio.sleep(100.0)
            assert len(server.asked) == asked

    run(main())


def test_a_cancelled_batch_makes_room_for_the_next_at_once() -> None:
    async def main() -> None:
        server = FakeServer(RateLimited("slow down", retry_after=600.0), latency=0.1)
        async with Desk(server) as desk:
            blocked = desk.submit(samples(5000))
            await asyncio.sleep(5.0)
            desk.scorer.cancel(blocked)
            empty = await desk.score([Sample("q", "") for _ in range(10)])
            assert {verdict.status for verdict in empty} == {Status.EMPTY}
            assert asyncio.get_running_loop().time() < 10.0

    run(main())


def test_cancelling_twice_or_too_late_changes_nothing() -> None:
    async def main() -> None:
        async with Desk(good_server()) as desk:
            batch = desk.submit(samples(3))
            verdicts = await verdicts_of(batch)
            desk.scorer.cancel(batch)
            desk.scorer.expire(batch)
            assert final(batch) == verdicts
            assert len(desk.seen(BatchFinished)) == 1

    run(main())


def test_the_callers_own_patience_marks_what_is_missing() -> None:
    async def main() -> None:
        async with Desk(good_server(latency=60.0)) as desk:
            batch = desk.submit(samples(3))
            await asyncio.sleep(1.0)
            desk.scorer.expire(batch)
            assert {verdict.status for verdict in final(batch)} == {Status.DEADLINE}

    run(main())


@pytest.mark.parametrize("moment", [0.0, 0.5, 1.0, 3.3, 8.0])
def test_closing_gives_every_sample_of_every_batch_its_verdict(moment: float) -> None:
    async def main() -> None:
        server = FakeServer(lambda asked: (1.0 + asked.arrival % 5, marks_of(asked.text)))
        async with Desk(server, config=EngineConfig(max_concurrent=16)) as desk:
            batches = [desk.submit(samples(3000)), desk.submit(samples(40, name="other"))]
            await asyncio.sleep(moment)
        for batch in batches:
            verdicts = final(batch)
            assert {verdict.status for verdict in verdicts} <= {Status.OK, Status.FAILED}
            failed = [verdict for verdict in verdicts if verdict.status is Status.FAILED]
            assert all("closed" in (verdict.error or "") for verdict in failed)
        assert len(desk.seen(BatchFinished)) == 2
        assert server.gauge.now == 0

    run(main())


def test_a_batch_handed_in_after_the_close_fails_and_does_not_hang() -> None:
    async def main() -> None:
        desk = Desk(good_server())
        await desk.scorer.close()
        verdicts = await desk.score(samples(5))
        assert {verdict.status for verdict in verdicts} == {Status.FAILED}
        await desk.scorer.close()

    run(main())


def test_the_time_between_two_batches_is_none_in_which_the_endpoint_failed() -> None:
    def answer(asked: Asked) -> Reply | Exception:
        is_away = 2.0 <= asked.at < 50.0 or 600.0 <= asked.at < 603.0
        return Unreachable("nobody listens") if is_away else marks_of(asked.text)

    async def main() -> None:
        async with Desk(FakeServer(answer, latency=0.5), config=EngineConfig(max_concurrent=4)) as desk:
            first = await desk.score(samples(100), deadline=40.0)
            assert {verdict.status for verdict in first} == {Status.OK, Status.DEADLINE}
            await asyncio.sleep(600.5 - asyncio.get_running_loop().time())
            second = await desk.score(samples(20, name="another"))
            assert {verdict.status for verdict in second} == {Status.OK}

    run(main())
