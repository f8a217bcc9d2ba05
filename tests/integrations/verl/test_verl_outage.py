"""A judge is down when nearly all of the last rows have no verdict; too many fail when a set share has."""

from __future__ import annotations

from plaudit.integrations.verl.row_reward import RECENT, WINDOW, Outage


def after(*failed: bool) -> Outage:
    outage = Outage(0.2)
    for one in failed:
        outage.note(failed=one)
    return outage


def test_a_failure_or_two_at_the_start_are_neither() -> None:
    for outage in (after(), after(True), after(True, True)):
        assert not outage.is_down
        assert not outage.is_over


def test_a_judge_that_never_answers_is_soon_known_to_be_down() -> None:
    assert after(*[True] * 4).is_down


def test_a_judge_that_stops_answering_is_known_to_be_down_within_a_few_rows() -> None:
    assert not after(*[False] * WINDOW, *[True] * 10).is_down
    assert after(*[False] * WINDOW, *[True] * RECENT).is_down


def test_a_judge_that_refuses_every_third_row_is_not_down_but_too_many_fail() -> None:
    outage = after(*[number % 3 == 0 for number in range(100)])
    assert not outage.is_down
    assert outage.is_over


def test_only_the_last_rows_count() -> None:
    outage = after(*[True] * WINDOW, *[False] * round(0.8 * WINDOW))
    assert not outage.is_over
    assert str(outage) == "40 of the last 200 rows have no verdict"
