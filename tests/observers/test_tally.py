"""A run in numbers, from events, in bounded memory."""

from __future__ import annotations

import statistics
import tracemalloc
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plaudit.events import BatchFinished, CallFinished, CallStarted, CauseCount, RetryPlanned, VerdictsReady
from plaudit.observers.tally import Tally
from plaudit.types import Cause, Source, Status, Usage, Verdict


def ready(*verdicts: Verdict) -> VerdictsReady:
    return VerdictsReady(at=0.0, batch=1, verdicts=verdicts)


def failed(error: str) -> Verdict:
    return Verdict(score=None, status=Status.FAILED, error=error)


LATE = Verdict.failed(Cause.DEADLINE, "deadline")


def call(outcome: str = "ok", latency_s: float = 1.0, usage: Usage | None = None) -> CallFinished:
    return CallFinished(
        at=0.0, endpoint="e", in_flight=0, outcome=outcome, latency_s=latency_s, usage=usage or Usage()
    )


def test_verdicts_of_many_batches_add_up() -> None:
    tally = Tally()
    tally(ready(Verdict(score=1.0, status=Status.OK), failed("no route")))
    tally(ready(Verdict(score=3.0, status=Status.OK, source=Source.CACHE), failed("no route"), LATE))
    summary = tally.summary(seconds=2.0)
    assert summary.samples == 5
    assert summary.failures == 3
    assert summary.by_status == {"failed": 2, "ok": 2, "deadline": 1}
    assert summary.by_source == {"call": 4, "cache": 1}
    assert summary.causes == (
        CauseCount(Cause.UNKNOWN, 2, "no route"),
        CauseCount(Cause.DEADLINE, 1, "deadline"),
    )
    assert summary.score_mean == 2.0
    assert summary.score_std == 1.0
    assert summary.seconds == 2.0


def test_calls_are_counted_with_what_became_of_them() -> None:
    tally = Tally()
    for is_hedge in (False, False, True):
        tally(CallStarted(at=0.0, endpoint="e", in_flight=1, is_hedge=is_hedge))
    tally(RetryPlanned(at=0.0, endpoint="e", attempt=2, wait_s=1.0, error="reset"))
    tally(call("rate_limited", latency_s=99.0))
    tally(call(latency_s=1.0, usage=Usage(prompt_tokens=100, completion_tokens=10, cost=0.25)))
    tally(call(latency_s=2.0, usage=Usage(prompt_tokens=50, completion_tokens=5, cost=0.5)))
    summary = tally.summary(seconds=1.0)
    assert (summary.calls, summary.hedges, summary.retries, summary.rate_limited) == (3, 1, 1, 1)
    assert (summary.prompt_tokens, summary.completion_tokens, summary.cost) == (150, 15, 0.75)
    assert summary.latency_p50_s == pytest.approx(1.0, rel=0.02)
    assert summary.latency_p95_s == pytest.approx(2.0, rel=0.02)


def test_replies_that_had_to_be_asked_for_again_are_counted() -> None:
    tally = Tally()
    for rereads in (2, 3):
        batch = replace(Tally().summary(seconds=1.0), rereads=rereads)
        tally(BatchFinished(at=0.0, batch=1, summary=batch))
    assert tally.summary(seconds=2.0).rereads == 5


def test_what_is_unknown_stays_none_and_never_zero() -> None:
    summary = Tally().summary(seconds=0.0)
    assert summary.cost is None
    assert summary.score_mean is None
    assert summary.score_std is None
    assert summary.latency_p50_s is None


@given(st.lists(st.floats(min_value=-1e6, max_value=1e6), min_size=1))
def test_mean_and_spread_are_those_of_the_scores(scores: list[float]) -> None:
    tally = Tally()
    tally(ready(*(Verdict(score=score, status=Status.OK) for score in scores)))
    summary = tally.summary(seconds=1.0)
    assert summary.score_mean == pytest.approx(statistics.fmean(scores), abs=1e-6)
    assert summary.score_std == pytest.approx(statistics.pstdev(scores), abs=1e-3, rel=1e-6)


def test_a_different_error_for_every_sample_does_not_fill_the_memory() -> None:
    tally = Tally()
    tracemalloc.start()
    for number in range(20_000):
        tally(ready(failed(f"sample {number} is broken in its own way")))
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    summary = tally.summary(seconds=1.0)
    assert summary.samples == 20_000
    assert [one.count for one in summary.causes] == [20_000]
    assert held < 100_000
