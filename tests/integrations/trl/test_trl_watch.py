"""How many missing verdicts are too many, for batches of any size."""

from __future__ import annotations

from plaudit.integrations.trl.batch_reward import WINDOW, FailureWatch


def complaint(watch: FailureWatch, rows: int, failed: int) -> str:
    """Where everything that did not fail was judged."""
    return watch.complaint(rows=rows, failed=failed, judged=rows - failed)


def test_a_large_batch_counts_alone() -> None:
    assert "206 of the last 1024" in complaint(FailureWatch(0.2), 1024, 206)
    assert not complaint(FailureWatch(0.2), 1024, 204)


def test_two_failures_among_eight_are_no_outage() -> None:
    assert not complaint(FailureWatch(0.2), 8, 2)


def test_small_batches_add_up() -> None:
    watch = FailureWatch(0.2)
    complaints = [complaint(watch, 8, 4) for _ in range(11)]
    assert not any(complaints[:10])
    assert "44 of the last 88" in complaints[10]


def test_an_outage_that_has_passed_is_forgotten() -> None:
    watch = FailureWatch(0.2)
    assert not complaint(watch, 100, 40)
    for _ in range(2):
        assert not complaint(watch, WINDOW // 2, 0)
    assert not complaint(watch, 100, 40)


def test_a_judge_that_never_gave_a_verdict_is_stopped_at_once() -> None:
    assert "no verdict at all, on 8" in complaint(FailureWatch(0.2), 8, 8)
    watch = FailureWatch(0.2)
    assert not complaint(watch, 4, 4)
    assert complaint(watch, 4, 4)


def test_empty_completions_do_not_prove_that_the_judge_works() -> None:
    watch = FailureWatch(0.2)
    assert not watch.complaint(rows=8, failed=7, judged=0)
    assert "no verdict at all, on 16" in watch.complaint(rows=8, failed=7, judged=0)


def test_it_can_be_turned_off() -> None:
    assert not complaint(FailureWatch(None), 500, 500)
    assert not complaint(FailureWatch(1.0), 500, 500)
