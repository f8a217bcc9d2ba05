"""Panels under virtual time: several calls for one sample, one call for several, and one verdict each."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from complaints import about
from dispatching import NEVER, Answer, Asked, FakeServer
from scoring import Desk, Marks, final, verdicts_of

from plaudit.caches.memory import MemoryCache
from plaudit.errors import ConfigError, RequestRefused
from plaudit.events import BatchFinished, BatchStarted, CallFinished, VerdictsReady
from plaudit.judges import Group, Jury, Pairwise, Rubric
from plaudit.judges.base import Judge, Panel, Question
from plaudit.scheduling.batch import Batch
from plaudit.scheduling.panel import panel_batch
from plaudit.simulator import Fault, Scenario, SimulatedTransport
from plaudit.testing import run
from plaudit.types import Reply, Sample, Source, Status, Usage, Verdict


def scored(text: str) -> float:
    """The score that the server below gives to a question: the number it ends in."""
    return float(text.rpartition(" ")[2])


def server(**odd: Answer | tuple[float, Answer]) -> FakeServer:
    """Answers by the number in the question, unless its text holds one of the odd words."""

    def behave(asked: Asked) -> Answer | tuple[float, Answer]:
        for word, answer in odd.items():
            if word in asked.text:
                return answer
        return Reply(str(scored(asked.text)), model="m-1", usage=Usage(100, 10, 0.5))

    return FakeServer(behave)


def responses(*texts: str) -> list[Sample]:
    return [Sample("q", text) for text in texts]


@dataclass(frozen=True)
class Twice(Panel):
    """Asks two judges about each sample; the mean of what came, or no score."""

    judges: tuple[Judge, Judge] = field(default_factory=lambda: (Marks("a"), Marks("b")))
    version: str = "twice"
    scale: tuple[float, float] = (0.0, 100.0)

    def split(self, samples: Sequence[Sample]) -> Iterable[Question]:
        for index, sample in enumerate(samples):
            if sample.response == "clear":
                continue
            yield Question(self.judges[0], Sample("first", sample.response), (index,))
            yield Question(self.judges[1], Sample("second", sample.response), (index,))

    def combine(self, index: int, sample: Sample, verdicts: Sequence[Verdict]) -> Verdict:
        if sample.response == "clear":
            assert not verdicts
            return Verdict(1.0, Status.EMPTY, "by rule", source=Source.RULE)
        if sample.text.startswith("bug"):
            raise KeyError("bug")
        scores = [verdict.score for verdict in verdicts if verdict.score is not None]
        parts = {name: v.score for name, v in zip("ab", verdicts, strict=True) if v.score is not None}
        if not scores:
            return Verdict(None, verdicts[0].status, error=f"both failed: {verdicts[0].error}")
        return Verdict(sum(scores) / len(scores), Status.OK, f"sample {index}", parts=parts)


@dataclass(frozen=True)
class Together(Panel):
    """Asks one question for all samples."""

    judge: Judge = field(default_factory=Marks)
    version: str = "together"
    scale: tuple[float, float] = (0.0, 100.0)

    def split(self, samples: Sequence[Sample]) -> Iterable[Question]:
        yield Question(self.judge, Sample("all", f"of {len(samples)}"), tuple(range(len(samples))))

    def combine(self, index: int, sample: Sample, verdicts: Sequence[Verdict]) -> Verdict:
        (verdict,) = verdicts
        if verdict.score is None:
            return Verdict(None, verdict.status, error=verdict.error)
        return Verdict(verdict.score + index, Status.OK, sample.text)


def judged(
    panel: Panel,
    samples: Sequence[Sample],
    endpoint: FakeServer,
    *,
    deadline: float | None = None,
    then: Callable[[Desk, Batch], None] | None = None,
) -> tuple[list[Verdict], Batch, Desk]:
    """Everything about one batch, once it is done."""

    async def main() -> tuple[list[Verdict], Batch, Desk]:
        async with Desk(endpoint) as desk:
            batch = panel_batch(samples, panel, model="m", deadline=deadline)
            desk.scorer.start(batch)
            if then is not None:
                asyncio.get_running_loop().call_later(0.5, then, desk, batch)
            return await verdicts_of(batch), batch, desk

    return run(main())


def scores_of(verdicts: Iterable[Verdict]) -> list[float | None]:
    return [verdict.score for verdict in verdicts]


# -- one verdict a sample, in order ------------------------------------------------------------------------


def test_each_sample_gets_the_combination_of_its_own_questions_in_order() -> None:
    odd = server(first=Reply("2.0"))
    verdicts, _, _ = judged(Twice(), responses("x 4", "y 6", "z 8"), odd)
    assert scores_of(verdicts) == [3.0, 4.0, 5.0]
    assert [verdict.reason for verdict in verdicts] == ["sample 0", "sample 1", "sample 2"]
    assert dict(verdicts[1].parts) == {"a": 2.0, "b": 6.0}


def test_a_sample_without_questions_is_settled_by_the_panel_without_a_call() -> None:
    endpoint = server()
    verdicts, batch, desk = judged(Twice(), responses("clear", "clear"), endpoint)
    assert [(v.score, v.status, v.source) for v in verdicts] == [(1.0, Status.EMPTY, Source.RULE)] * 2
    assert not endpoint.asked
    assert not batch.inner
    assert len(desk.seen(BatchFinished)) == 1


def test_one_call_serves_many_samples_and_is_paid_for_once() -> None:
    endpoint = server()
    verdicts, batch, _ = judged(Together(), responses("a", "b", "c"), endpoint)
    assert scores_of(verdicts) == [3.0, 4.0, 5.0]
    assert len(endpoint.asked) == 1
    assert [verdict.source for verdict in verdicts] == [Source.CALL, Source.SHARED, Source.SHARED]
    assert [verdict.usage.cost for verdict in verdicts] == [0.5, 0.0, 0.0]
    summary = batch.summary()
    assert (summary.calls, summary.prompt_tokens, summary.cost) == (1, 100, 0.5)
    assert summary.by_source == {"call": 1, "shared": 2}


def test_the_facts_of_all_its_calls_come_with_the_verdict() -> None:
    slow = server(second=(3.0, Reply("1.0", model="m-2", usage=Usage(7, 3, 0.25))))
    (verdict,), batch, _ = judged(Twice(), responses("x 5"), slow)
    assert (verdict.model, verdict.attempts, verdict.latency_s) == ("m-1+m-2", 2, 3.0)
    assert verdict.usage == Usage(107, 13, 0.75)
    assert (batch.summary().calls, batch.summary().cost) == (2, 0.75)


def test_an_empty_batch_is_done_at_once() -> None:
    verdicts, _, desk = judged(Twice(), [], server())
    assert verdicts == []
    assert len(desk.seen(BatchFinished)) == 1


# -- streaming ---------------------------------------------------------------------------------------------


def test_a_sample_is_handed_over_as_soon_as_its_own_questions_are_settled() -> None:
    slow = server(late=(60.0, Reply("1.0")))
    _, batch, desk = judged(Twice(), responses("late 1", "x 2", "y 3"), slow)
    ready = [(event.at, len(event.verdicts)) for event in desk.seen(VerdictsReady)]
    assert [at for at, count in ready for _ in range(count)] == [1.0, 1.0, 60.0]
    assert list(batch.fresh())[-1] == 0


def test_observers_hear_of_the_samples_and_never_of_the_questions() -> None:
    _, batch, desk = judged(Twice(), responses("x 1", "y 2", "z 3"), server())
    assert [(event.batch, event.samples) for event in desk.seen(BatchStarted)] == [(batch.id, 3)]
    assert sum(len(event.verdicts) for event in desk.seen(VerdictsReady)) == 3
    assert {event.batch for event in desk.seen(VerdictsReady)} == {batch.id}
    (finished,) = desk.seen(BatchFinished)
    assert (finished.batch, finished.summary.samples, finished.summary.calls) == (batch.id, 3, 6)


# -- failure is data ---------------------------------------------------------------------------------------


def test_a_failed_question_costs_only_what_the_panel_says_it_costs() -> None:
    broken = server(**{"first|x": RequestRefused("400: too long")})
    verdicts, _, _ = judged(Twice(), responses("x 4", "y 6"), broken)
    assert scores_of(verdicts) == [4.0, 6.0]
    assert dict(verdicts[0].parts) == {"b": 4.0}


def test_where_every_question_failed_there_is_no_number() -> None:
    broken = server(x=RequestRefused("400: too long"))
    verdicts, _, _ = judged(Twice(), responses("x 4", "y 6"), broken)
    assert scores_of(verdicts) == [None, 6.0]
    assert verdicts[0].status is Status.FAILED
    assert verdicts[0].error == "both failed: 400: too long"


def test_an_unreadable_reply_to_a_shared_question_leaves_all_its_samples_without_a_score() -> None:
    verdicts, batch, _ = judged(Together(), responses("a", "b"), server(all=Reply("well", usage=Usage(5, 1))))
    assert [(v.score, v.status) for v in verdicts] == [(None, Status.UNREADABLE)] * 2
    assert batch.summary().failures == 2


def test_a_panel_that_breaks_over_a_sample_fails_that_sample_only() -> None:
    verdicts, batch, _ = judged(Twice(), responses("bug 1", "y 2"), server())
    assert scores_of(verdicts) == [None, 2.0]
    assert verdicts[0].status is Status.FAILED
    assert "KeyError" in (verdicts[0].error or "")
    assert verdicts[0].usage.prompt_tokens == 200, "what was paid stays on the bill"
    assert batch.summary().prompt_tokens == 400


def test_no_panel_makes_a_number_out_of_failures() -> None:
    class Optimist(Together):
        def combine(self, index: int, sample: Sample, verdicts: Sequence[Verdict]) -> Verdict:
            return Verdict(10.0, Status.OK)

    (verdict,), _, _ = judged(Optimist(), responses("a"), server(all=RequestRefused("400")))
    assert (verdict.score, verdict.status) == (None, Status.FAILED)
    assert "out of failures" in (verdict.error or "")


@pytest.mark.parametrize("nonsense", [None, 7.0, Verdict(float("nan"), Status.OK), Verdict(None, Status.OK)])
def test_what_is_no_verdict_is_a_failure_and_is_logged_once(
    nonsense: Any, caplog: pytest.LogCaptureFixture
) -> None:
    class Absurd(Together):
        def combine(self, index: int, sample: Sample, verdicts: Sequence[Verdict]) -> Verdict:
            verdict: Verdict = nonsense
            return verdict

    verdicts, _, _ = judged(Absurd(), responses("a", "b"), server())
    assert [(v.score, v.status) for v in verdicts] == [(None, Status.FAILED)] * 2
    assert len(caplog.records) == 1


# -- deadlines and the end ---------------------------------------------------------------------------------


def test_at_the_deadline_the_panel_decides_with_what_has_come() -> None:
    slow = server(**{"second|x": (NEVER, Reply("1.0")), "|y": (NEVER, Reply("1.0"))})
    verdicts, batch, desk = judged(Twice(), responses("x 4", "y 5", "z 6"), slow, deadline=10.0)
    assert scores_of(verdicts) == [4.0, None, 6.0]
    assert verdicts[1].status is Status.DEADLINE
    assert desk.seen(BatchFinished)[0].at == 10.0
    assert batch.summary().prompt_tokens == 300


def test_a_cancelled_panel_ends_at_once_and_sends_nothing_more() -> None:
    endpoint = server()
    verdicts, batch, _ = judged(
        Twice(), responses("x 1", "y 2"), endpoint, then=lambda desk, batch: desk.scorer.cancel(batch)
    )
    assert [(v.status, v.error) for v in verdicts] == [(Status.FAILED, "both failed: cancelled")] * 2
    assert all(inner.is_closed for inner in batch.inner)
    assert len(endpoint.asked) == 4


def test_a_reply_that_comes_after_the_end_changes_nothing() -> None:
    async def main() -> None:
        async with Desk(server(), cache=MemoryCache()) as desk:
            batch = panel_batch(responses("x 1"), Twice(), model="m", deadline=0.5)
            desk.scorer.start(batch)
            before = await verdicts_of(batch)
            await asyncio.sleep(5.0)
            assert final(batch) == before
            assert [verdict.status for verdict in before] == [Status.DEADLINE]
            again = panel_batch(responses("x 1"), Twice(), model="m")
            desk.scorer.start(again)
            (verdict,) = await verdicts_of(again)
            assert (verdict.score, verdict.source) == (1.0, Source.CACHE), "but it filled the cache"

    run(main())


def test_closing_the_engine_leaves_no_sample_without_an_outcome() -> None:
    async def main() -> Batch:
        async with Desk(server(x=(NEVER, Reply("1.0")))) as desk:
            batch = panel_batch(responses("x 1", "y 2", "clear"), Twice(), model="m")
            desk.scorer.start(batch)
            await asyncio.sleep(2.0)
        return batch

    verdicts = final(run(main()))
    assert scores_of(verdicts) == [None, 2.0, 1.0]
    assert verdicts[0].status is Status.FAILED


# -- nothing paid for twice --------------------------------------------------------------------------------


def test_identical_questions_are_asked_once_within_a_batch_and_across_batches() -> None:
    async def main() -> None:
        endpoint = server()
        async with Desk(endpoint) as desk:
            batches = [panel_batch(responses("x 4", "x 4"), Twice(), model="m") for _ in range(2)]
            for batch in batches:
                desk.scorer.start(batch)
            verdicts = [verdict for batch in batches for verdict in await verdicts_of(batch)]
        assert scores_of(verdicts) == [4.0] * 4
        assert len(endpoint.asked) == 2
        assert [verdict.source for verdict in verdicts] == [Source.CALL, *[Source.SHARED] * 3]
        assert sum(batch.summary().prompt_tokens for batch in batches) == 200

    run(main())


def test_a_second_run_is_served_from_the_cache_and_costs_nothing() -> None:
    async def main() -> None:
        endpoint, cache = server(), MemoryCache()
        async with Desk(endpoint, cache=cache) as desk:
            for expected in (Source.CALL, Source.CACHE):
                batch = panel_batch(responses("x 4", "y 6"), Twice(), model="m")
                desk.scorer.start(batch)
                verdicts = await verdicts_of(batch)
                assert scores_of(verdicts) == [4.0, 6.0]
                assert {verdict.source for verdict in verdicts} == {expected}
            assert len(endpoint.asked) == 4
            assert (batch.summary().calls, batch.summary().prompt_tokens) == (0, 0)

    run(main())


# -- what is refused ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Odd(Twice):
    """Asks whatever it was made with."""

    question: Question | None = None

    def split(self, samples: Sequence[Sample]) -> Iterable[Question]:
        assert self.question is not None
        return [self.question]


@pytest.mark.parametrize("serves", [(), (2,), (-1,), (0, 5)])
def test_a_question_must_serve_samples_that_exist(serves: tuple[int, ...]) -> None:
    question = Question(Marks(), Sample("q", "x"), serves)
    with pytest.raises(ConfigError, check=about("", str(serves))):
        panel_batch(responses("a", "b"), Odd(question=question), model="m")


def test_a_panel_within_a_panel_is_refused() -> None:
    question = Question(Twice(), Sample("q", "x"), (0,))  # type: ignore[arg-type]
    with pytest.raises(ConfigError, check=about("", "Twice")):
        panel_batch(responses("a"), Odd(question=question), model="m")


# -- whatever the server does ------------------------------------------------------------------------------

FAULTS = (
    Fault("refusal", probability=0.1),
    Fault("babble", probability=0.1),
    Fault("truncated", probability=0.05),
    Fault("reset", probability=0.1),
    Fault("slow", probability=0.02),
)
PANELS: tuple[Panel, ...] = (
    Group("Is it right?", max_chars_per_call=60),
    Pairwise("Which one is right?", against="group", opponents=2),
    Jury([Rubric("Is it right?"), Rubric("Is it brief?", (1, 5)), Rubric("Is it kind?")], combine="median"),
)


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: type(panel).__name__)
@pytest.mark.parametrize("deadline", [None, 3.0, 6.0])
@pytest.mark.parametrize("seed", range(3))
def test_every_sample_gets_exactly_one_outcome(panel: Panel, deadline: float | None, seed: int) -> None:
    texts = ("It is 42.", "It is 41, or so.", "42", "", "Forty-two, as everybody knows.")
    samples = [Sample(f"{n} x 7?", f"{text}", group=f"g{n}") for n in range(30) for text in texts]

    async def main() -> tuple[list[Verdict], Batch, Desk]:
        async with Desk(SimulatedTransport(Scenario(seed=seed, faults=FAULTS))) as desk:
            batch = panel_batch(samples, panel, model="m", deadline=deadline)
            desk.scorer.start(batch)
            return await verdicts_of(batch), batch, desk

    verdicts, batch, desk = run(main())
    assert sum(len(event.verdicts) for event in desk.seen(VerdictsReady)) == len(samples)
    for sample, verdict in zip(samples, verdicts, strict=True):
        assert (verdict.status is Status.EMPTY) == (not sample.response)
        assert verdict.is_valid == (verdict.status in (Status.OK, Status.EMPTY)) == (verdict.error is None)
    (finished,) = desk.seen(BatchFinished)
    if deadline is None:
        spent = sum(event.usage.prompt_tokens for event in desk.seen(CallFinished))
        assert batch.summary().prompt_tokens == spent, "the bill is what the endpoint counted"
        assert Status.DEADLINE not in {verdict.status for verdict in verdicts}
    else:
        assert finished.at <= deadline + 0.001
