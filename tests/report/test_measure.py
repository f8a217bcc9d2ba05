"""Shares with intervals, and rank correlation, against values worked out by hand."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plaudit.report.measure import rank_correlation, share


def test_wilson_s_interval_of_ten_in_forty() -> None:
    found = share(10, 40)
    assert found.value == 0.25
    assert found.low == pytest.approx(0.14187, abs=1e-4)
    assert found.high == pytest.approx(0.40194, abs=1e-4)


def test_none_in_two_hundred_is_not_surely_none() -> None:
    assert share(0, 200).low == 0.0
    assert share(0, 200).high == pytest.approx(0.01885, abs=1e-4)
    assert share(200, 200).high == 1.0


def test_nothing_counted_is_no_share() -> None:
    assert share(0, 0).value is None
    assert str(share(0, 0)) == "none counted"
    assert str(share(1, 4)) == "1/4 = 25% (5% to 70%)"


@settings(max_examples=100, deadline=None, derandomize=True, database=None)
@given(st.integers(0, 500), st.integers(0, 500))
def test_the_interval_holds_the_share(hits: int, others: int) -> None:
    found = share(hits, hits + others)
    if found.value is not None:
        assert 0.0 <= found.low <= found.value <= found.high <= 1.0


def test_rank_correlation_sees_order_alone() -> None:
    assert rank_correlation([1, 2, 3, 4], [1, 10, 100, 1000]) == pytest.approx(1.0)
    assert rank_correlation([1, 2, 3, 4], [4, 3, 2, 1]) == pytest.approx(-1.0)
    assert rank_correlation([1, 2, 2, 3], [1, 2, 3, 4]) == pytest.approx(0.94868, abs=1e-4)


def test_rank_correlation_of_what_never_changes_is_none() -> None:
    assert rank_correlation([1, 2, 3], [5, 5, 5]) is None
    assert rank_correlation([1, 2], [1, 2]) is None
