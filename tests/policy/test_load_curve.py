"""Where more calls at once stop to bring more replies is found from calls of several loads."""

from __future__ import annotations

import random

import pytest

from plaudit.policy.load_curve import LoadCurve


def measured(
    loads: list[float],
    *,
    knee: float,
    exponent: float,
    spread: float = 0.0,
    tokens: bool = True,
    count: int = 40,
) -> LoadCurve:
    """What a server shows at these loads that serves `knee` calls at once at full speed."""
    draw = random.Random(7)
    curve = LoadCurve()
    for load in loads:
        slowdown = max(1.0, load / knee) ** (1.0 + exponent)
        for _ in range(count):
            length = draw.lognormvariate(0.0, spread)
            curve.add(load=load, seconds=0.2 * length * slowdown, tokens=round(100 * length) if tokens else 0)
    return curve


@pytest.mark.parametrize("exponent", [0.0, 0.6, 1.3])
@pytest.mark.parametrize("spread", [0.0, 0.7])
def test_the_bend_is_found_between_loads_on_both_sides_of_it(exponent: float, spread: float) -> None:
    bend = measured([16, 24, 48, 64], knee=32, exponent=exponent, spread=spread).bend()
    assert bend is not None
    assert 26 <= bend.load <= 38
    assert bend.is_above < 0.5
    assert bend.is_below < 0.5


def test_without_token_counts_more_calls_make_up_for_the_noise() -> None:
    bend = measured([16, 24, 48, 64], knee=32, exponent=1.0, spread=0.5, tokens=False, count=64).bend()
    assert bend is not None
    assert 22 <= bend.load <= 42


def test_it_lies_above_loads_that_all_cost_nothing_and_below_loads_that_all_cost() -> None:
    free = measured([8, 12, 16], knee=100, exponent=1.0, spread=0.5).bend()
    assert free is not None
    assert free.is_above > 0.9
    thrashing = measured([64, 90, 128], knee=10, exponent=1.0, spread=0.5).bend()
    assert thrashing is not None
    assert thrashing.is_below > 0.9


def test_the_slope_tells_a_queue_from_a_server_that_thrashes() -> None:
    queue, thrashing = (measured([16, 24, 48, 64, 96], knee=32, exponent=e).bend() for e in (0.0, 1.0))
    assert queue is not None and thrashing is not None
    assert queue.slope < 1.15 < 1.7 < thrashing.slope


def test_calls_that_share_each_step_of_a_server_show_a_gentle_slope() -> None:
    curve = LoadCurve()
    for load in (32, 64, 128):
        for _ in range(40):
            curve.add(load=load, seconds=0.2 * (1.0 + load / 48), tokens=100)
    slope = curve.shared_slope()
    assert slope is not None
    assert slope < 0.8


def test_where_small_loads_cost_nothing_the_calls_do_not_share_the_server() -> None:
    assert measured([16, 24, 48, 64, 96], knee=32, exponent=0.5).shared_slope() is None


def test_loads_that_met_replies_of_other_lengths_are_not_compared_where_the_price_of_length_is_unknown() -> (
    None
):
    curve = LoadCurve()
    for load, tokens in ((16, 40), (32, 40), (64, 600)):
        for _ in range(40):
            curve.add(load=load, seconds=0.01 * tokens, tokens=tokens)
    assert curve.bend() is None


def test_one_load_says_nothing() -> None:
    assert measured([16], knee=8, exponent=1.0).bend() is None
    assert LoadCurve().bend() is None


def test_a_few_calls_that_hang_change_nothing() -> None:
    curve = measured([16, 24, 48, 64], knee=32, exponent=1.0)
    for load in (16, 24):
        for _ in range(4):
            curve.add(load=load, seconds=60.0, tokens=100)
    bend = curve.bend()
    assert bend is not None
    assert 26 <= bend.load <= 38


def test_calls_of_quite_different_kinds_are_no_matter_of_load() -> None:
    curve = LoadCurve()
    for _ in range(16):
        curve.add(load=12, seconds=0.1, tokens=0)
        curve.add(load=16, seconds=30.0, tokens=0)
    assert curve.bend() is None


def test_what_was_measured_is_forgotten_on_demand() -> None:
    curve = measured([16, 64], knee=32, exponent=1.0)
    curve.clear()
    assert curve.bend() is None
