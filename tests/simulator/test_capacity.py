"""Allowances: never more than the rate allows, never less than was promised."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from plaudit.simulator.capacity import Bucket, Window
from simulator.asking import QUICK


@QUICK
@given(
    st.lists(st.floats(0.0, 2.0), min_size=1, max_size=60),
    st.floats(0.5, 20.0),
    st.integers(1, 10),
)
def test_no_stretch_of_time_sees_more_than_rate_and_burst(gaps: list[float], rate: float, burst: int) -> None:
    bucket = Bucket(rate=rate, burst=burst)
    now, taken = 0.0, []
    for gap in gaps:
        now += gap
        bucket.refill(now)
        if not bucket.wait(1):
            bucket.take(1)
            taken.append(now)
    for first, start in enumerate(taken):
        for last in range(first, len(taken)):
            assert last - first + 1 <= burst + rate * (taken[last] - start) + 1e-6


@QUICK
@given(st.floats(0.5, 20.0), st.integers(1, 10), st.integers(0, 30))
def test_whoever_waits_as_told_is_served(rate: float, burst: int, count: int) -> None:
    bucket = Bucket(rate=rate, burst=burst)
    now = 0.0
    for _ in range(count):
        now += bucket.wait(1)
        bucket.refill(now)
        assert bucket.wait(1) == 0.0
        bucket.take(1)
    assert now <= max(0.0, (count - burst) / rate) + 1e-6


def test_a_bucket_tells_what_is_left_and_when_it_is_full() -> None:
    bucket = Bucket(rate=2.0, burst=10)
    bucket.take(4)
    assert (bucket.remaining, bucket.until_full) == (6, 2.0)
    bucket.refill(1.0)
    assert (bucket.remaining, bucket.until_full) == (8, 1.0)


def test_an_amount_that_never_fits_waits_for_a_full_bucket_and_leaves_it_in_debt() -> None:
    bucket = Bucket(rate=1.0, burst=5)
    bucket.take(1)
    assert bucket.wait(100) == 1.0
    bucket.refill(1.0)
    bucket.take(100)
    assert bucket.remaining == 0
    assert bucket.wait(1) == 96.0


def test_a_bucket_that_no_longer_fills_is_waited_for_in_vain() -> None:
    bucket = Bucket(rate=0.0, burst=1)
    bucket.take(1)
    assert bucket.wait(1) == bucket.until_full == math.inf


def test_a_window_that_lets_nothing_through_is_waited_for_in_vain() -> None:
    assert Window(rate=0.0, seconds=60.0).wait(1) == math.inf


def test_a_window_opens_anew_at_its_end_and_not_before() -> None:
    window = Window(rate=0.5, seconds=10.0)
    for _ in range(5):
        assert window.wait(1) == 0.0
        window.take(1)
    window.refill(9.0)
    assert (window.wait(1), window.remaining, window.until_full) == (1.0, 0, 1.0)
    window.refill(10.0)
    assert (window.wait(1), window.remaining) == (0.0, 5)
