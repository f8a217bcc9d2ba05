"""A call gets a twin only past what nearly every call takes, once that is known."""

from __future__ import annotations

from plaudit.core.hedge import MIN_CALLS, hedge_age
from plaudit.core.histogram import LatencyHistogram


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
