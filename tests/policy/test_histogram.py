"""Latency quantiles from a few kilobytes: right to 1%, mergeable, bounded."""

from __future__ import annotations

import math
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plaudit.policy.histogram import ERROR, LONGEST, SHORTEST, LatencyHistogram

latencies = st.floats(min_value=SHORTEST, max_value=LONGEST)
shares = st.floats(min_value=0.0, max_value=1.0)


def histogram_of(values: list[float]) -> LatencyHistogram:
    histogram = LatencyHistogram()
    for value in values:
        histogram.add(value)
    return histogram


def exact_quantile(values: list[float], q: float) -> float:
    return sorted(values)[max(math.ceil(q * len(values)), 1) - 1]


@given(st.lists(latencies, min_size=1), shares)
def test_a_quantile_is_within_one_percent_of_the_exact_one(values: list[float], q: float) -> None:
    found = histogram_of(values).quantile(q)
    assert found == pytest.approx(exact_quantile(values, q), rel=ERROR * 1.0001)


@given(st.lists(latencies), st.lists(latencies), shares)
def test_merging_equals_adding_everything_to_one(left: list[float], right: list[float], q: float) -> None:
    merged = histogram_of(left)
    other = histogram_of(right)
    merged.merge(other)
    assert len(merged) == len(left) + len(right)
    assert merged.quantile(q) == histogram_of(left + right).quantile(q)
    assert len(other) == len(right)


def test_a_histogram_may_be_merged_with_itself() -> None:
    histogram = histogram_of([1.0, 2.0])
    histogram.merge(histogram)
    assert len(histogram) == 4


def test_without_latencies_there_is_no_quantile() -> None:
    assert LatencyHistogram().quantile(0.5) is None
    assert len(LatencyHistogram()) == 0


def test_what_no_clock_can_measure_counts_as_zero() -> None:
    assert histogram_of([0.0, -0.001, 1e-9]).quantile(1.0) == 0.0


def test_endless_waits_count_as_the_longest() -> None:
    assert histogram_of([math.inf]).quantile(0.5) == pytest.approx(LONGEST, rel=ERROR * 1.0001)


def test_memory_does_not_grow_with_the_number_of_latencies() -> None:
    histogram = LatencyHistogram()
    tracemalloc.start()
    for exponent in range(-7000, 7000):
        histogram.add(10.0 ** (exponent / 1000))
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(histogram) == 14_000
    assert held < 200_000


def test_nonsense_is_refused() -> None:
    with pytest.raises(ValueError, match="NaN"):
        LatencyHistogram().add(math.nan)
    with pytest.raises(ValueError, match="use 0 to 1"):
        LatencyHistogram().quantile(95)
