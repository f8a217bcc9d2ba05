"""A batch between two threads: delivered once, waited for, streamed, and summed up."""

from __future__ import annotations

import threading

import pytest
from scoring import Marks, samples
from unwoken import Stopped, signal_beside_a_wait

from plaudit.events import CauseCount
from plaudit.scheduling.batch import Batch
from plaudit.types import Cause, Failure, Source, Status, Usage, Verdict


def batch_of(count: int) -> Batch:
    return Batch(samples(count), Marks(), model="m")


def ok(
    score: float, *, latency: float = 1.0, source: Source = Source.CALL, cost: float | None = None
) -> Verdict:
    usage = Usage(100, 10, cost)
    return Verdict(score, Status.OK, latency_s=latency, source=source, usage=usage, attempts=1)


def failed(error: str) -> Verdict:
    return Verdict(None, Status.FAILED, error=error)


def test_a_verdict_is_final_whatever_comes_later() -> None:
    batch = batch_of(2)
    assert batch.deliver([(0, ok(3.0))]) == [ok(3.0)]
    assert batch.deliver([(0, ok(9.0)), (1, ok(4.0))]) == [ok(4.0)]
    assert [verdict.score for verdict in batch.verdicts if verdict] == [3.0, 4.0]
    assert batch.remaining == 0
    assert batch.is_closed


def test_what_is_missing_can_be_asked() -> None:
    batch = batch_of(4)
    batch.deliver([(2, ok(1.0)), (0, ok(2.0))])
    assert batch.missing() == [1, 3]
    assert batch.remaining == 2


@pytest.mark.parametrize("waiting", ["wait", "fresh"])
def test_a_signal_that_interrupts_no_wait_is_still_noticed(waiting: str) -> None:
    batch = batch_of(1)
    with signal_beside_a_wait(), pytest.raises(Stopped):
        batch.wait() if waiting == "wait" else list(batch.fresh())


def test_an_empty_batch_is_done_from_the_start() -> None:
    batch = batch_of(0)
    assert batch.is_closed
    assert batch.wait(0.0)
    assert list(batch.fresh()) == []
    called = []
    batch.when_done(lambda: called.append(True))
    assert called == [True]


def test_waiting_ends_with_the_last_verdict_not_before() -> None:
    batch = batch_of(2)
    batch.deliver([(0, ok(1.0))])
    assert not batch.wait(0.01)
    helper = threading.Thread(target=batch.deliver, args=([(1, ok(2.0))],))
    helper.start()
    assert batch.wait(30.0)
    helper.join()


def test_verdicts_stream_in_the_order_in_which_they_became_final() -> None:
    batch = batch_of(4)

    def deliver() -> None:
        for group in ([(2, ok(1.0))], [(0, ok(2.0)), (3, ok(3.0))], [(1, ok(4.0))]):
            batch.deliver(group)

    helper = threading.Thread(target=deliver)
    helper.start()
    assert list(batch.fresh()) == [2, 0, 3, 1]
    assert list(batch.fresh()) == [2, 0, 3, 1]  # for whoever comes later, too
    helper.join()


def test_callbacks_run_once_at_the_end() -> None:
    batch = batch_of(2)
    called: list[str] = []
    batch.when_done(lambda: called.append("early"))
    batch.deliver([(0, ok(1.0))])
    assert called == []
    batch.deliver([(1, ok(2.0))])
    batch.deliver([(1, ok(3.0))])
    batch.when_done(lambda: called.append("late"))
    assert called == ["early", "late"]


def test_the_summary_counts_what_became_of_the_samples() -> None:
    batch = batch_of(8)
    batch.calls, batch.retries, batch.hedges, batch.rate_limited = 9, 2, 1, 3
    batch.deliver(
        [
            (0, ok(2.0, latency=1.0, cost=0.5)),
            (1, ok(4.0, latency=3.0, cost=0.25)),
            (2, ok(6.0, source=Source.CACHE, cost=0.0)),
            (3, ok(8.0, source=Source.SHARED, cost=0.0)),
            (4, Verdict(0.0, Status.EMPTY, source=Source.RULE)),
            (5, failed("502")),
            (6, failed("502")),
            (7, Verdict(None, Status.DEADLINE, error="deadline")),
        ]
    )
    summary = batch.summary()
    assert summary.samples == 8
    assert summary.by_status == {"ok": 4, "empty": 1, "failed": 2, "deadline": 1}
    assert summary.by_source == {"call": 5, "cache": 1, "shared": 1, "rule": 1}
    assert summary.failures == 3
    assert summary.causes == (
        CauseCount(Cause.UNKNOWN, 2, "502"),
        CauseCount(Cause.DEADLINE, 1, "deadline"),
    )
    assert (summary.calls, summary.retries, summary.hedges, summary.rate_limited) == (9, 2, 1, 3)
    assert summary.prompt_tokens == 200  # what the cache or a twin supplied was not paid for
    assert summary.completion_tokens == 20
    assert summary.cost == pytest.approx(0.75)
    assert summary.score_mean == pytest.approx(4.0)
    assert summary.score_std == pytest.approx(2.828, abs=0.001)
    assert summary.latency_p50_s == 3.0
    assert summary.seconds >= 0.0


def test_failures_do_not_enter_the_mean() -> None:
    batch = batch_of(3)
    batch.deliver([(0, ok(8.0)), (1, failed("x")), (2, failed("x"))])
    assert batch.summary().score_mean == 8.0


def test_the_commonest_causes_come_first_and_at_most_ten() -> None:
    batch = batch_of(200)
    endpoints = [f"endpoint {min(n % 40, 12)}" for n in range(200)]
    batch.deliver(
        (n, Verdict.failed(Failure(Cause.TIMED_OUT, {"endpoint": name}), f"{name} took {n} s"))
        for n, name in enumerate(endpoints)
    )
    causes = batch.summary().causes
    assert len(causes) == 10
    assert causes[0] == CauseCount(Cause.TIMED_OUT, endpoints.count("endpoint 12"), "endpoint 12 took 12 s")
    counts = [one.count for one in causes]
    assert counts == sorted(counts, reverse=True)


def test_a_batch_without_a_score_or_a_price_says_none_rather_than_zero() -> None:
    batch = batch_of(1)
    batch.deliver([(0, failed("x"))])
    summary = batch.summary()
    assert summary.score_mean is None
    assert summary.score_std is None
    assert summary.cost is None
    assert summary.latency_p50_s is None


def test_the_time_of_a_batch_stops_with_its_last_verdict() -> None:
    batch = batch_of(1)
    batch.deliver([(0, ok(1.0))])
    assert batch.summary().seconds == batch.summary().seconds
