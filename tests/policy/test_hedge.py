"""A call gets a twin only past what nearly every call takes; one far past all others hangs."""

from __future__ import annotations

from plaudit.policy.hedge import MIN_CALLS, hedge_age, hung_age
from plaudit.policy.histogram import LatencyHistogram


def latencies(*groups: tuple[int, float]) -> LatencyHistogram:
    histogram = LatencyHistogram()
    for count, seconds in groups:
        for _ in range(count):
            histogram.add(seconds)
    return histogram


def test_nothing_is_an_outlier_while_too_little_is_known() -> None:
    assert hedge_age(latencies((MIN_CALLS - 1, 2.0))) is None
    assert hedge_age(latencies((MIN_CALLS, 2.0))) is not None


def test_a_call_that_takes_as_long_as_the_others_is_no_outlier() -> None:
    age = hedge_age(latencies((100, 2.0)))
    assert age is not None and age > 2.0 * 1.1


def test_a_few_stragglers_do_not_hide_the_next_ones() -> None:
    age = hedge_age(latencies((985, 2.0), (15, 50.0)))
    assert age is not None and age < 5.0


def test_where_long_calls_are_common_they_are_no_outliers() -> None:
    age = hedge_age(latencies((80, 2.0), (20, 50.0)))
    assert age is not None and age > 50.0


def test_a_call_hangs_only_far_past_what_makes_it_an_outlier() -> None:
    known = latencies((100, 2.0))
    outlier, hung = hedge_age(known), hung_age(known)
    assert outlier is not None and hung is not None
    assert 2.0 * outlier <= hung <= 30.0


def test_one_reply_is_enough_to_tell_that_another_call_hangs() -> None:
    few = hung_age(latencies((1, 2.0)))
    many = hung_age(latencies((MIN_CALLS, 2.0)))
    assert few is not None and many is not None
    assert many < few <= 60.0  # with less known there is more patience, but an end to it


def test_nothing_hangs_before_anything_came_back() -> None:
    assert hung_age(latencies()) is None


def test_at_an_endpoint_of_milliseconds_a_short_delay_is_no_hang() -> None:
    age = hung_age(latencies((1000, 0.002)))
    assert age is not None and age >= 0.5


def test_the_long_calls_of_a_mixed_batch_do_not_hang() -> None:
    age = hung_age(latencies((80, 2.0), (20, 50.0)))
    assert age is not None and age > 100.0


def test_the_first_replies_of_calls_sent_together_make_no_outliers_of_the_others() -> None:
    first = latencies((MIN_CALLS, 1.0))
    assert hedge_age(first, under_way=1) is not None
    assert hedge_age(first, under_way=44) is None
    while_open, all_back = hung_age(first, under_way=44), hung_age(first)
    assert while_open is not None and all_back is not None and while_open > 2.0 * all_back
