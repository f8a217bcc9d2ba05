"""Refusals are put down to the weather where less load brings no fewer of them, and not otherwise."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plaudit.policy.weather import Weather

thorough = settings(max_examples=100, deadline=None, derandomize=True, database=None)


def rounds(weather: Weather, *loads: int, calls: int, refuses: Callable[[int], bool]) -> tuple[int, int]:
    """Send calls under one load after another; how many were refused, and how many of them excused."""
    refused = excused = 0
    for load in loads:
        for _ in range(calls):
            weather.on_send(load=load)
            if refuses(load):
                refused += 1
                excused += weather.on_refusal(load=load)
    return refused, excused


def at_random(share: float) -> Callable[[int], bool]:
    chance = random.Random(11)
    return lambda _: chance.random() < share


def past(capacity: int) -> Callable[[int], bool]:
    return lambda load: load > capacity


def test_calm_weather_has_no_share_and_excuses_nothing() -> None:
    weather = Weather()
    rounds(weather, 10, 20, 40, 80, calls=100, refuses=lambda _: False)
    assert weather.share == 0.0
    assert not weather.on_refusal(load=80)


@pytest.mark.parametrize("share", [0.08, 0.14, 0.2])
def test_refusals_that_come_as_often_under_less_load_are_weather(share: float) -> None:
    weather, refuses = Weather(), at_random(share)
    rounds(weather, 80, 40, 40, calls=60, refuses=refuses)
    assert weather.share == pytest.approx(share, abs=0.08)
    refused, excused = rounds(weather, 80, 80, calls=200, refuses=refuses)
    assert excused >= 0.8 * refused


def test_what_was_refused_under_far_more_load_does_not_hide_the_weather() -> None:
    weather, refuses = Weather(), at_random(0.14)
    for n in range(128):
        weather.on_send(load=128)
        if n >= 60:
            weather.on_refusal(load=128, is_run=n > 60)
    rounds(weather, 57, 45, 36, calls=60, refuses=refuses)
    assert weather.share == pytest.approx(0.14, abs=0.07)


def test_refusals_that_grow_with_the_load_are_those_of_a_rate_and_no_weather() -> None:
    weather, chance = Weather(), random.Random(11)
    for load in (120, 80, 100, 90, 110, 80, 120, 100):  # so many calls at once where 80 would keep the rate
        rounds(weather, load, calls=60, refuses=lambda load: chance.random() < 1.0 - 78 / load)
    assert weather.share < 0.05


def test_refusals_past_a_capacity_are_no_weather() -> None:
    weather = Weather()
    for _ in range(20):
        _, excused = rounds(weather, 30, 38, 42, calls=20, refuses=past(40))
        assert excused == 0
    assert weather.share == 0.0


def test_single_calls_past_a_capacity_are_no_weather_though_more_were_sent_before() -> None:
    """A burst meets the capacity, which refuses all past it; then it is probed with one call at a time."""
    weather = Weather()
    for load in range(1, 65):
        weather.on_send(load=load)
    for load in range(25, 65):
        weather.on_refusal(load=load, is_run=load > 25)
    for _ in range(20):
        rounds(weather, 25, calls=1, refuses=past(24))
        rounds(weather, 24, calls=5, refuses=past(24))
        assert weather.share == 0.0


def test_all_refused_whatever_the_load_is_no_weather_either() -> None:
    weather = Weather()
    _, excused = rounds(weather, 80, 40, 20, 10, calls=40, refuses=lambda _: True)
    assert excused == 0
    assert weather.share == 0.0


def test_weather_that_clears_is_forgotten() -> None:
    weather = Weather()
    rounds(weather, 80, 40, 40, calls=60, refuses=at_random(0.14))
    assert weather.share > 0.0
    rounds(weather, 40, 80, *[40] * 20, calls=100, refuses=at_random(0.005))
    assert weather.share < 0.05


def test_more_refusals_than_usual_are_not_all_excused() -> None:
    weather = Weather()
    rounds(weather, 80, 40, 40, calls=60, refuses=at_random(0.14))
    refused, excused = rounds(weather, 160, calls=200, refuses=lambda _: True)
    assert excused < 0.5 * refused


def test_a_run_of_refusals_does_not_count_as_weather() -> None:
    """Weather picks single calls; a limit that is used up refuses all that follow."""
    weather = Weather()
    for load in (80, 40, 40, 40):
        for n in range(60):
            weather.on_send(load=load)
            if n % 60 >= 50:
                weather.on_refusal(load=load, is_run=n % 60 > 50)
    assert weather.share < 0.05


def test_refusals_of_an_endpoint_that_let_nothing_in_are_taken_back() -> None:
    weather = Weather()
    rounds(weather, 80, 40, calls=60, refuses=lambda _: False)
    refused, _ = rounds(weather, 40, calls=20, refuses=lambda _: True)
    weather.withdraw(refused)
    rounds(weather, 40, calls=60, refuses=lambda _: False)
    assert weather.share == 0.0


def test_after_forgetting_nothing_is_known() -> None:
    weather = Weather()
    rounds(weather, 80, 40, 40, calls=60, refuses=at_random(0.2))
    weather.forget()
    weather.on_send(load=3.0)
    assert weather.share == 0.0
    assert not weather.on_refusal(load=3.0)


@thorough
@given(
    st.lists(st.tuples(st.sampled_from(["send", "refusal", "withdraw"]), st.integers(0, 300)), max_size=300)
)
def test_whatever_happens_the_share_is_a_share(steps: list[tuple[str, int]]) -> None:
    weather = Weather()
    for what, number in steps:
        match what:
            case "send":
                weather.on_send(load=float(number))
            case "refusal":
                weather.on_refusal(load=float(number))
            case _:
                weather.withdraw(number)
        assert 0.0 <= weather.share <= 1.0
