"""Scales: what is a score, and what is not."""

from __future__ import annotations

import math
import re

import pytest
from complaints import about

from plaudit.errors import ConfigError, UnreadableVerdict
from plaudit.judges.scale import Scale, anchor_lines


@pytest.mark.parametrize("value", [0, 10, 7, 7.0, -0.0, "7", " 7.0"])
def test_a_whole_number_on_the_scale_is_a_score(value: float | str) -> None:
    assert Scale(0, 10).read(value) == float(value)


@pytest.mark.parametrize("value", ["7/10", "7 / 10", "7 out of 10", [7], ["7"]])
def test_a_score_out_of_the_best_or_alone_in_a_list_is_that_score(value: object) -> None:
    assert Scale(0, 10).read(value) == 7.0


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (11, "11 is not between 0 and 10"),
        (-1, "-1 is not between"),
        (7.5, "7.5 is not a whole number"),
        (math.nan, "nan is not between"),
        (math.inf, "inf is not between"),
        (10**400, "hundreds of digits"),
        (True, "true, not a number"),
        (None, "null, not a number"),
        ("11", "11 is not between"),
        ("nan", "the text 'nan', not a number"),
        ("1e1", "the text '1e1', not a number"),
        ("٧", "the text '٧', not a number"),
        ("7/100", "the text '7/100', not a number"),
        ("x" * 500, "the text 'xxxxxxxxxxxx'..., not a number"),
    ],
)
def test_anything_else_is_unreadable_and_never_clamped(value: object, found: str) -> None:
    with pytest.raises(UnreadableVerdict, match=found) as caught:
        Scale(0, 10).read(value)
    assert len(str(caught.value)) <= 120


def test_fractions_are_scores_where_the_scale_has_them() -> None:
    assert Scale(0, 1, integer=False).read(0.25) == 0.25


@pytest.mark.parametrize(
    ("low", "high"),
    [(10, 0), (5, 5), (0, math.nan), (-math.inf, 0), (False, True), ("0", "10"), (0.5, 10)],
)
def test_a_scale_that_makes_no_sense_is_refused(low: float, high: float) -> None:
    with pytest.raises(ConfigError, check=about("scale")) as caught:
        Scale(low, high)
    assert "scale" in str(caught.value)


def test_a_schema_bounds_the_score() -> None:
    assert Scale(1, 5).schema() == {"type": "integer", "minimum": 1, "maximum": 5}
    assert Scale(0, 1, integer=False).schema() == {"type": "number", "minimum": 0, "maximum": 1}


def described(lines: str) -> list[int]:
    """The whole numbers that the lines speak of, in order."""
    numbers: list[int] = []
    for first, last in re.findall(r"^(-?\d+)(?: to (-?\d+))?: \S", lines, re.M):
        numbers += range(int(first), int(last or first) + 1)
    return numbers


@pytest.mark.parametrize(
    "ends", [(0, 1), (0, 2), (1, 4), (1, 5), (0, 9), (0, 10), (1, 10), (-3, 3), (0, 100)]
)
def test_every_whole_number_of_the_scale_is_described_once_in_order(ends: tuple[int, int]) -> None:
    low, high = ends
    assert described(anchor_lines({}, Scale(low, high))) == list(range(low, high + 1))


def test_the_worst_and_the_best_score_stand_alone() -> None:
    lines = anchor_lines({}, Scale(0, 10)).strip().splitlines()
    assert [line.partition(":")[0] for line in lines] == ["0", "1 to 3", "4 to 6", "7 to 9", "10"]
    assert len({line.partition(":")[2] for line in lines}) == len(lines)


def test_of_a_scale_of_fractions_five_numbers_are_described() -> None:
    lines = anchor_lines({}, Scale(0.0, 1.0, integer=False)).strip().splitlines()
    assert [line.partition(":")[0] for line in lines] == ["0", "0.25", "0.5", "0.75", "1"]


def test_the_user_s_own_are_taken_as_they_are() -> None:
    assert anchor_lines({10: "right", 0: "wrong"}, Scale(0, 10)) == "\n0: wrong\n10: right"
