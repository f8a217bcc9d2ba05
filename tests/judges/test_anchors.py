"""Anchors: a description for every score, the user's where there are some."""

from __future__ import annotations

import re

import pytest

from plaudit.judges.anchors import anchor_lines
from plaudit.judges.scale import Scale


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
