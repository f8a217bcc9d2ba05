"""Kimi k1.5's length reward."""

from __future__ import annotations

import pytest
from complaints import about

from plaudit.errors import ConfigError
from plaudit.rewards import KimiLength


def test_short_correct_answers_gain_and_wrong_ones_never_do() -> None:
    lengths = [100, 200, 300, 100, 300]
    base = [1.0, 1.0, 1.0, 0.0, None]
    assert KimiLength().rewards(lengths, ["g"] * 5, base) == pytest.approx([0.5, 0.0, -0.5, 0.0, -0.5])


def test_equal_lengths_and_groups_of_one_get_nothing() -> None:
    assert KimiLength().rewards([7, 7, 9], ["g", "g", "one"], [1.0, 0.0, 1.0]) == [0, 0, 0]


def test_what_counts_as_correct_can_be_moved() -> None:
    assert KimiLength(correct_above=0.5).rewards([1, 3], ["g", "g"], [0.5, 0.6]) == pytest.approx([0.0, -0.5])


def test_groups_must_fit() -> None:
    with pytest.raises(ConfigError, check=about("groups")):
        KimiLength().rewards([1, 2], ["g"], [1.0, 1.0])
