"""Nothing paid for twice: identical requests share one call, wherever and whenever they come in."""

from __future__ import annotations

import asyncio

from dispatching import Asked, FakeServer
from scoring import Desk, Marks, expected, good_server, marks_of, samples, verdicts_of

from plaudit.config import EngineConfig
from plaudit.errors import TransportFailed
from plaudit.events import BatchFinished
from plaudit.scheduling.scorer import CHUNK
from plaudit.testing import run
from plaudit.types import Reply, Sample, Source, Status

SAME = Sample("q", "the same answer")


def test_duplicates_in_a_batch_send_one_call() -> None:
    async def main() -> None:
        server = good_server()
        async with Desk(server) as desk:
            verdicts = await desk.score([SAME, Sample("q", "another"), SAME, SAME])
            assert len(server.asked) == 2
            assert len({verdict.score for verdict in (verdicts[0], verdicts[2], verdicts[3])}) == 1
            assert [verdict.source for verdict in verdicts] == [
                Source.CALL,
                Source.CALL,
                Source.SHARED,
                Source.SHARED,
            ]
            assert [verdict.usage.cost for verdict in verdicts[2:]] == [0.0, 0.0]

    run(main())


def test_a_duplicate_far_behind_shares_the_verdict_of_the_first_though_there_is_no_cache() -> None:
    async def main() -> None:
        server = good_server(latency=0.01)
        async with Desk(server, config=EngineConfig(max_concurrent=16)) as desk:
            batch = [SAME, *samples(20 * CHUNK), SAME]
            verdicts = await desk.score(batch)
            assert server.texts().count("q|the same answer") == 1
            assert verdicts[-1].score == verdicts[0].score
            assert verdicts[-1].source is Source.SHARED

    run(main())


def test_batches_in_flight_at_the_same_time_share_their_calls() -> None:
    async def main() -> None:
        server = good_server()
        async with Desk(server) as desk:
            batch = samples(100)
            one, two = desk.submit(batch), desk.submit(batch)
            await asyncio.sleep(0.5)
            three = desk.submit(batch[::-1])
            for started in (one, two, three):
                verdicts = await verdicts_of(started)
                assert [verdict.score for verdict in verdicts] == expected(started.samples)
            assert len(server.asked) == 100
            first, second, third = (event.summary for event in desk.seen(BatchFinished))
            assert first.calls + second.calls + third.calls == 100
            assert second.by_source == third.by_source == {"shared": 100}

    run(main())


def test_another_prompt_judge_or_model_is_another_question() -> None:
    """An earlier system took the response alone for the key: every prompt and rubric got the same score."""

    async def main() -> None:
        server = good_server()
        async with Desk(server) as desk:
            await asyncio.gather(
                desk.score([Sample("one task", "yes"), Sample("another task", "yes")], Marks("1")),
                desk.score([Sample("one task", "yes")], Marks("2")),
                desk.score([Sample("one task", "yes")], Marks("1"), model="other"),
            )
            assert len(server.asked) == 4

    run(main())


def test_a_shared_failure_fails_everybody_and_is_asked_anew_by_the_next() -> None:
    def behave(asked: Asked) -> Reply | Exception:
        return TransportFailed("502") if asked.at < 100.0 else marks_of(asked.text)

    async def main() -> None:
        server = FakeServer(behave)
        async with Desk(server) as desk:
            verdicts = await desk.score([SAME, SAME])
            assert {verdict.status for verdict in verdicts} == {Status.FAILED}
            await asyncio.sleep(100.0)
            assert (await desk.score([SAME]))[0].status is Status.OK

    run(main())


def test_whoever_joins_late_is_served_though_the_first_gave_up() -> None:
    async def main() -> None:
        server = good_server(latency=10.0)
        async with Desk(server) as desk:
            first = desk.submit([SAME], deadline=2.0)
            await asyncio.sleep(1.0)
            second = desk.submit([SAME])
            assert (await verdicts_of(first))[0].status is Status.DEADLINE
            assert (await verdicts_of(second))[0].status is Status.OK
            assert len(server.asked) == 1

    run(main())


def test_a_question_still_in_the_queue_is_sent_for_whoever_joined_it() -> None:
    async def main() -> None:
        server = good_server(latency=5.0)
        async with Desk(server, config=EngineConfig(max_concurrent=1)) as desk:
            first = desk.submit([Sample("q", "ahead"), SAME])
            await asyncio.sleep(1.0)
            second = desk.submit([SAME])
            await asyncio.sleep(1.0)
            desk.scorer.cancel(first)
            assert (await verdicts_of(second))[0].status is Status.OK
            assert server.texts().count("q|the same answer") == 1

    run(main())


def test_an_aborted_call_goes_on_for_a_batch_that_joined_it() -> None:
    async def main() -> None:
        server = good_server(latency=5.0)
        async with Desk(server) as desk:
            first = desk.submit([SAME, Sample("q", "only for the first")])
            await asyncio.sleep(1.0)
            second = desk.submit([SAME])
            await asyncio.sleep(1.0)
            desk.scorer.cancel(first, abort=True)
            await asyncio.sleep(0.1)
            assert server.cancelled == 1
            assert (await verdicts_of(second))[0].status is Status.OK
            assert len(server.asked) == 2

    run(main())


def test_what_was_aborted_is_asked_anew() -> None:
    async def main() -> None:
        server = good_server(latency=5.0)
        async with Desk(server) as desk:
            first = desk.submit([SAME])
            await asyncio.sleep(1.0)
            desk.scorer.cancel(first, abort=True)
            assert (await desk.score([SAME]))[0].status is Status.OK
            assert len(server.asked) == 2

    run(main())


def test_one_at_a_time_or_all_at_once_the_verdicts_are_the_same() -> None:
    async def main() -> None:
        batch = samples(40)
        async with Desk(good_server()) as desk:
            together = await desk.score(batch)
        async with Desk(good_server()) as desk:
            alone = [desk.submit([sample]) for sample in batch]
            single = [(await verdicts_of(one))[0] for one in alone]
        assert [v.score for v in together] == [v.score for v in single]

    run(main())
