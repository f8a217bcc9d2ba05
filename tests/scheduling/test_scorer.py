"""From samples to verdicts: one for each, in order, and a failure is never a number."""

from __future__ import annotations

import asyncio
import math
from typing import Any, cast

import pytest
from dispatching import Asked, FakeServer
from scoring import Desk, Marks, expected, good_server, marks_of, samples, verdicts_of

from plaudit.config import EngineConfig
from plaudit.errors import KeyRefused, RequestRefused, TransportFailed
from plaudit.events import BatchFinished, BatchStarted, VerdictsReady
from plaudit.judges import Rubric
from plaudit.policy.retry import RetryPolicy
from plaudit.scheduling.scorer import CHUNK_CHARS
from plaudit.simulator import PRESETS, SimulatedTransport
from plaudit.testing import run
from plaudit.types import Cause, ChatRequest, Reply, Sample, Source, Status, Usage, Verdict


def answering(**replies: str) -> FakeServer:
    """Answers with a given text where the response is one of the names, and properly elsewhere."""

    def behave(asked: Asked) -> Reply:
        said = replies.get(asked.text.split("|")[1])
        return marks_of(asked.text) if said is None else Reply(said, usage=Usage(10, 2))

    return FakeServer(behave)


def test_verdicts_come_in_the_order_of_the_samples() -> None:
    async def main() -> None:
        server = FakeServer(lambda asked: (1.0 + asked.arrival * 7 % 10, marks_of(asked.text)))
        async with Desk(server) as desk:
            batch = samples(1000)
            verdicts = await desk.score(batch)
            assert [verdict.score for verdict in verdicts] == expected(batch)
            assert [verdict.reason for verdict in verdicts] == [f"because of {s.response}" for s in batch]

    run(main())


def test_long_texts_leave_the_loop_to_others_after_every_megabyte() -> None:
    async def main() -> None:
        turns = 0

        async def count_turns() -> None:
            nonlocal turns
            for _ in range(100):
                await asyncio.sleep(0)
                turns += 1

        async with Desk(good_server()) as desk:
            judge = Marks()
            seen: list[int] = []

            def render(sample: Sample) -> ChatRequest | Verdict:
                seen.append(turns)
                return Marks.render(judge, sample)

            judge.render = render  # type: ignore[method-assign]
            others = asyncio.get_running_loop().create_task(count_turns())
            batch = [Sample("q", letter * (CHUNK_CHARS // 2 - 1)) for letter in "abcdef"]
            await desk.score([*batch, Sample("q", "g" * 3 * CHUNK_CHARS)], judge=judge)
            others.cancel()
        assert len(set(seen)) == 4, "two, two, two, and the giant by itself"

    run(main())


def test_an_empty_batch_is_done_at_once() -> None:
    async def main() -> None:
        async with Desk(good_server()) as desk:
            assert await desk.score([]) == []
            assert [event.summary.samples for event in desk.seen(BatchFinished)] == [0]
            assert desk.finished == 1

    run(main())


def test_what_a_rule_settles_needs_no_call() -> None:
    async def main() -> None:
        server = good_server()
        async with Desk(server) as desk:
            verdicts = await desk.score([Sample("q", ""), Sample("q", "an answer")])
            assert verdicts[0].status is Status.EMPTY
            assert verdicts[0].source is Source.RULE
            assert verdicts[1].status is Status.OK
            assert len(server.asked) == 1

    run(main())


def test_a_verdict_says_how_it_came_about() -> None:
    async def main() -> None:
        server = FakeServer(lambda a: TransportFailed("reset") if a.nth == 1 else marks_of(a.text))
        async with Desk(server) as desk:
            verdict = (await desk.score([Sample("q", "abc")]))[0]
            assert verdict.model == "m-1"
            assert verdict.attempts == 2
            assert verdict.latency_s == pytest.approx(1.0)
            assert verdict.source is Source.CALL
            assert verdict.usage == Usage(5, 3)

    run(main())


# -- judges that fail -------------------------------------------------------------------------------------


def test_a_judge_that_cannot_render_a_sample_costs_that_sample(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with Desk(good_server()) as desk:
            batch = [*samples(3), Sample("q", "cannot render this"), *samples(3, name="more")]
            verdicts = await desk.score(batch)
            assert [verdict.status for verdict in verdicts].count(Status.OK) == 6
            assert verdicts[3].status is Status.FAILED
            assert verdicts[3].score is None
            assert "no such sample" in (verdicts[3].error or "")

    run(main())
    assert "could not render" in caplog.text


def test_a_judge_that_cannot_read_a_reply_costs_that_sample(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with Desk(answering(odd="bug")) as desk:
            verdicts = await desk.score([Sample("q", "fine"), Sample("q", "odd"), Sample("q", "good")])
            assert [verdict.status for verdict in verdicts] == [Status.OK, Status.FAILED, Status.OK]
            assert verdicts[1].score is None

    run(main())
    assert "could not read a reply" in caplog.text


@pytest.mark.parametrize(
    "rendered",
    [
        None,
        "just a text",
        ChatRequest(({"role": "user", "content": "lone \ud800 surrogate"},)),
        ChatRequest(({"role": "user", "content": "q"},), schema={"x": object()}),
    ],
    ids=["nothing", "text", "surrogate", "schema"],
)
def test_a_judge_that_renders_nonsense_costs_that_sample(rendered: Any) -> None:
    class Odd(Marks):
        def render(self, sample: Sample) -> ChatRequest | Verdict:
            return cast(ChatRequest, rendered) if sample.response == "odd" else super().render(sample)

    async def main() -> None:
        config = EngineConfig(tpm=100_000)
        async with Desk(good_server(), config=config) as desk:
            verdicts = await desk.score([Sample("q", "fine"), Sample("q", "odd"), Sample("q", "good")], Odd())
            assert [verdict.status for verdict in verdicts] == [Status.OK, Status.FAILED, Status.OK]
            later = await desk.score([Sample("q", "later")], Odd())
            assert later[0].status is Status.OK

    run(main())


@pytest.mark.parametrize(
    "read",
    [None, "7", Verdict(None, Status.OK), Verdict(math.nan, Status.OK), Verdict(math.inf, Status.OK)],
    ids=["nothing", "text", "no score", "nan", "infinity"],
)
def test_a_judge_that_reads_nonsense_costs_that_sample(read: Any) -> None:
    class Odd(Marks):
        def parse(self, reply: Reply, sample: Sample) -> Verdict:
            return cast(Verdict, read) if sample.response == "odd" else super().parse(reply, sample)

    async def main() -> None:
        async with Desk(good_server()) as desk:
            verdicts = await desk.score([Sample("q", "fine"), Sample("q", "odd"), Sample("q", "good")], Odd())
            assert [verdict.status for verdict in verdicts] == [Status.OK, Status.FAILED, Status.OK]
            assert verdicts[1].score is None

    run(main())


@pytest.mark.parametrize("unreadable", [1, 2])
def test_an_unreadable_reply_is_asked_for_up_to_three_times(unreadable: int) -> None:
    def behave(asked: Asked) -> Reply:
        return Reply("well...", usage=Usage(10, 2)) if asked.nth <= unreadable else marks_of(asked.text)

    async def main() -> None:
        server = FakeServer(behave)
        async with Desk(server) as desk:
            verdict = (await desk.score([Sample("q", "abc")]))[0]
            assert verdict.status is Status.OK
            assert verdict.attempts == unreadable + 1
            assert len(server.asked) == unreadable + 1
            # All replies were paid for, and all are counted.
            assert verdict.usage == Usage(5 + 10 * unreadable, 3 + 2 * unreadable)
            assert desk.seen(BatchFinished)[0].summary.calls == unreadable + 1

    run(main())


def test_a_deadline_says_what_was_wrong_with_the_reply_that_came_before_it() -> None:
    def behave(asked: Asked) -> tuple[float, Reply]:
        return (1.0 if asked.nth == 1 else 100.0), Reply("well...", usage=Usage(10, 2))

    async def main() -> None:
        async with Desk(FakeServer(behave)) as desk:
            verdict = (await desk.score([Sample("q", "abc")], deadline=5.0))[0]
            assert verdict.status is Status.DEADLINE
            assert "the reply before that held no verdict" in (verdict.error or "")
            assert (verdict.attempts, verdict.usage) == (1, Usage(10, 2))
            assert desk.seen(BatchFinished)[0].summary.rereads == 1

    run(main())


def test_an_unreadable_reply_that_stays_so_is_unreadable_and_no_number() -> None:
    async def main() -> None:
        server = answering(odd="well...")
        async with Desk(server) as desk:
            verdict = (await desk.score([Sample("q", "odd")]))[0]
            assert verdict.status is Status.UNREADABLE
            assert verdict.score is None
            assert verdict.attempts == 3
            assert len(server.asked) == 3

    run(main())


def test_an_unreadable_reply_is_asked_for_from_another_endpoint_first() -> None:
    async def main() -> None:
        babbling, sound = FakeServer(Reply("well...")), good_server()
        async with Desk(babbling, sound) as desk:
            verdicts = await desk.score(samples(60))
            assert {verdict.status for verdict in verdicts} == {Status.OK}
            assert max(verdict.attempts for verdict in verdicts) == 2
            assert {asked.nth for asked in babbling.asked} == {1}
            assert set(babbling.texts()) <= set(sound.texts())

    run(main())


def test_where_no_other_endpoint_is_left_the_same_is_asked_again() -> None:
    async def main() -> None:
        gone = FakeServer(KeyRefused("401"), latency=0.1)
        flaky = FakeServer(lambda asked: Reply("well...") if asked.nth < 3 else marks_of(asked.text))
        async with Desk(gone, flaky) as desk:
            verdicts = await desk.score(samples(20))
            assert {verdict.status for verdict in verdicts} == {Status.OK}

    run(main())


def test_a_refusal_is_final() -> None:
    async def main() -> None:
        server = answering(odd="refused")
        async with Desk(server) as desk:
            verdict = (await desk.score([Sample("q", "odd")]))[0]
            assert verdict.status is Status.REFUSED
            assert verdict.score is None
            assert verdict.error == "the judge declined"
            assert len(server.asked) == 1

    run(main())


# -- endpoints that fail ----------------------------------------------------------------------------------


def test_a_failed_verdict_is_none_and_says_why() -> None:
    def behave(asked: Asked) -> Reply | Exception:
        return TransportFailed("502: bad gateway") if "odd" in asked.text else marks_of(asked.text)

    async def main() -> None:
        async with Desk(FakeServer(behave)) as desk:
            verdicts = await desk.score([Sample("q", "fine"), Sample("q", "odd"), Sample("q", "good")])
            assert [verdict.status for verdict in verdicts] == [Status.OK, Status.FAILED, Status.OK]
            assert verdicts[1].score is None
            assert verdicts[1].error == "502: bad gateway"
            assert verdicts[1].attempts >= RetryPolicy().attempts
            assert not verdicts[1].is_valid

    run(main())


def test_a_response_too_long_for_the_endpoint_fails_alone() -> None:
    def behave(asked: Asked) -> Reply | Exception:
        too_long = len(asked.text) > 10_000
        return RequestRefused("400: context length exceeded") if too_long else marks_of(asked.text)

    async def main() -> None:
        async with Desk(FakeServer(behave)) as desk:
            verdicts = await desk.score([Sample("q", "fine"), Sample("q", "x" * 10_000_000)])
            assert [verdict.status for verdict in verdicts] == [Status.OK, Status.FAILED]
            assert "context length" in (verdicts[1].error or "")

    run(main())


def test_a_failure_rate_of_100_percent_cannot_be_overlooked() -> None:
    """An earlier system swallowed a parser's error and gave 0.0 for all: nobody could see it."""

    class Broken(Marks):
        def parse(self, reply: Reply, sample: Sample) -> Verdict:
            raise TypeError("string indices must be integers")

    async def main() -> None:
        async with Desk(good_server()) as desk:
            verdicts = await desk.score(samples(200), Broken())
            assert all(verdict.score is None for verdict in verdicts)
            summary = desk.seen(BatchFinished)[0].summary
            assert summary.failures == 200
            assert summary.by_status == {"failed": 200}
            assert summary.score_mean is None
            [found] = summary.causes
            assert (found.cause, found.count) == (Cause.CODE, 200)
            assert "string indices" in found.error

    run(main())


def test_a_judge_that_can_render_nothing_is_one_message_not_a_thousand() -> None:
    async def main() -> None:
        async with Desk(good_server()) as desk:
            await desk.score([Sample("q", f"cannot render {n}") for n in range(50)])
            summary = desk.seen(BatchFinished)[0].summary
            assert [(one.cause, one.count) for one in summary.causes] == [(Cause.CODE, 50)]

    run(main())


def test_a_wrong_key_is_one_message_for_the_whole_batch() -> None:
    async def main() -> None:
        server = FakeServer(KeyRefused("401: set OPENAI_API_KEY"), latency=0.1)
        async with Desk(server, config=EngineConfig(max_concurrent=8)) as desk:
            verdicts = await desk.score(samples(5000))
            assert {verdict.error for verdict in verdicts} == {"401: set OPENAI_API_KEY"}
            assert {verdict.status for verdict in verdicts} == {Status.FAILED}
            assert {verdict.cause for verdict in verdicts} == {Cause.REFUSED_KEY}
            summary = desk.seen(BatchFinished)[0].summary
            assert [(one.cause, one.count) for one in summary.causes] == [(Cause.REFUSED_KEY, 5000)]
            assert summary.calls <= 10

    run(main())


# -- what is told -----------------------------------------------------------------------------------------


def test_events_tell_of_the_start_of_every_verdict_and_of_the_end() -> None:
    async def main() -> None:
        async with Desk(good_server()) as desk:
            batch = desk.submit(samples(700))
            other = desk.submit([Sample("q", "alone")])
            await verdicts_of(batch)
            await verdicts_of(other)
            assert [(event.batch, event.samples) for event in desk.seen(BatchStarted)] == [
                (batch.id, 700),
                (other.id, 1),
            ]
            told = [verdict for event in desk.seen(VerdictsReady) for verdict in event.verdicts]
            assert len(told) == 701
            ended = {event.batch: event.summary for event in desk.seen(BatchFinished)}
            assert ended[batch.id].samples == 700
            assert ended[other.id].samples == 1
            assert desk.finished == 2

    run(main())


def test_a_large_batch_on_a_flaky_server_gets_every_verdict() -> None:
    async def main() -> None:
        transport = SimulatedTransport(PRESETS["flaky"].replace(seed=9))
        async with Desk(transport) as desk:
            batch = [Sample(f"question {n % 40}", f"answer {n}", group=str(n % 40)) for n in range(600)]
            verdicts = await desk.score(batch, Rubric("Is it good?"))
            assert len(verdicts) == 600
            assert {verdict.status for verdict in verdicts} == {Status.OK}
            again = await desk.score(batch, Rubric("Is it good?"))
            assert [v.score for v in again] == [v.score for v in verdicts]

    run(main())
