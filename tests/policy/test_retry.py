"""Backoff stays within its bounds, and a spent budget makes a retry late, never lost."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plaudit.policy.retry import LATEST, RetryBudget, RetryPolicy

thorough = settings(max_examples=100, deadline=None, derandomize=True, database=None)

jitters = st.floats(min_value=0.0, max_value=1.0)


@thorough
@given(st.integers(min_value=1, max_value=5000), jitters)
def test_a_wait_lies_between_half_the_backoff_and_the_longest_wait(attempt: int, jitter: float) -> None:
    policy = RetryPolicy(attempts=10_000, first_wait=0.5, max_wait=30.0)
    wait = policy.next_wait(attempt=attempt, jitter=jitter)
    assert wait is not None
    assert 0.25 <= wait <= 30.0


@thorough
@given(jitters)
def test_waits_double_from_one_attempt_to_the_next(jitter: float) -> None:
    policy = RetryPolicy(attempts=10, first_wait=1.0, max_wait=1000.0)
    waits = [policy.next_wait(attempt=n, jitter=jitter) for n in range(1, 9)]
    for earlier, later in pairwise(waits):
        assert earlier is not None and later is not None
        assert later == pytest.approx(2 * earlier)


def test_where_others_are_answered_a_retry_waits_no_longer_than_a_call_takes() -> None:
    policy = RetryPolicy()
    assert policy.next_wait(attempt=8, jitter=1.0, longest=0.3) == 0.3
    assert policy.next_wait(attempt=8, jitter=1.0) == pytest.approx(6.4)
    assert policy.next_wait(attempt=8, jitter=1.0, longest=0.001) == policy.first_wait


def test_jitter_spreads_the_waits_of_one_attempt() -> None:
    policy = RetryPolicy()
    waits = {policy.next_wait(attempt=2, jitter=n / 10) for n in range(11)}
    assert len(waits) == 11


def test_the_last_attempt_is_not_followed_by_another() -> None:
    policy = RetryPolicy(attempts=3)
    assert policy.next_wait(attempt=2, jitter=0.5) is not None
    assert policy.next_wait(attempt=3, jitter=0.5) is None


def test_a_call_has_enough_attempts_to_outlast_one_failure_in_five() -> None:
    assert 0.2 ** RetryPolicy().attempts < 1e-6


def test_where_half_of_all_calls_fail_one_has_as_good_a_chance_as_elsewhere() -> None:
    tries = next(
        n for n in range(1, 99) if RetryPolicy().next_wait(attempt=n, jitter=0.5, failing=0.5) is None
    )
    assert 0.5**tries < 1e-5
    assert RetryPolicy().next_wait(attempt=30, jitter=0.5, failing=1.0) is None  # but not for ever


def test_a_call_refused_once_leaves_again_at_once() -> None:
    assert RetryPolicy().refusal_wait(1, jitter=1.0) == 0.0


@thorough
@given(st.integers(min_value=1, max_value=100_000), jitters)
def test_a_call_refused_soon_tries_again_however_often_it_was(refusals: int, jitter: float) -> None:
    assert 0.0 <= RetryPolicy().refusal_wait(refusals, jitter=jitter) <= 5.0


def test_a_call_refused_again_and_again_waits_longer_each_time() -> None:
    waits = [RetryPolicy().refusal_wait(times, jitter=0.5) for times in range(1, 12)]
    assert waits == sorted(waits)
    assert waits[-1] > 1.0


def test_a_fresh_budget_lets_a_small_batch_retry_at_once() -> None:
    budget = RetryBudget()
    assert [budget.take(now=0.0) for _ in range(10)] == [0.0] * 10


def test_a_spent_budget_delays_retries_one_after_another_but_none_for_long() -> None:
    budget = RetryBudget(per_second=10.0, burst=20.0)
    waits = [budget.take(now=0.0) for _ in range(1000)]
    assert waits[:20] == [0.0] * 20
    assert waits == sorted(waits)
    assert waits[24] == pytest.approx(0.5)  # the fifth past the burst, at ten a second
    assert waits[-1] == LATEST


def test_time_pays_for_retries_but_not_beyond_the_burst() -> None:
    budget = RetryBudget(per_second=10.0, burst=20.0)
    for _ in range(20):
        budget.take(now=0.0)
    assert budget.take(now=1.0) == 0.0
    for _ in range(20):
        budget.take(now=1000.0)
    assert budget.take(now=1000.0) > 0.0


def test_traffic_pays_for_its_share_of_retries() -> None:
    budget = RetryBudget(share=0.2, per_second=10.0, burst=20.0)
    for _ in range(20):
        budget.take(now=0.0)
    for _ in range(500):
        budget.on_call()
    free = sum(budget.take(now=0.0) == 0.0 for _ in range(200))
    assert free == pytest.approx(100, abs=1)


@thorough
@given(st.lists(st.tuples(st.floats(min_value=0.0, max_value=2.0), st.booleans()), max_size=200))
def test_retries_that_leave_on_time_never_exceed_share_rate_and_burst(
    steps: list[tuple[float, bool]],
) -> None:
    budget = RetryBudget(share=0.2, per_second=1.0, burst=3.0)
    now, calls, free = 0.0, 0, 0
    for wait, is_call in steps:
        now += wait
        if is_call:
            budget.on_call()
            calls += 1
        else:
            free += budget.take(now=now) == 0.0
    assert free <= 3.0 + 0.2 * calls + 1.0 * now + 1e-6


def test_a_hedge_is_refused_where_it_would_delay_a_retry() -> None:
    budget = RetryBudget(per_second=1.0, burst=2.0)
    assert budget.can_hedge(now=0.0)
    budget.take(now=0.0)
    budget.take(now=0.0)
    assert not budget.can_hedge(now=0.0)
    assert budget.can_hedge(now=1.5)


def test_asking_whether_a_hedge_fits_spends_nothing() -> None:
    budget = RetryBudget(per_second=1.0, burst=2.0)
    assert all(budget.can_hedge(now=0.0) for _ in range(100))
    assert budget.take(now=0.0) == 0.0


def test_a_refused_call_waits_no_longer_than_a_part_of_a_call_where_others_are_let_in() -> None:
    assert RetryPolicy().refusal_wait(12, jitter=1.0, longest=0.3) == 0.3
    assert RetryPolicy().refusal_wait(12, jitter=1.0, longest=0.0) == RetryPolicy().first_wait
