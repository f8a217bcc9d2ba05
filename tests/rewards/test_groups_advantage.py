"""GRPO's advantages: the tables of what a failure does, to the digit."""

from __future__ import annotations

import math

import numpy as np
import pytest
from complaints import about
from hypothesis import given
from hypothesis import strategies as st

from plaudit.errors import ConfigError
from plaudit.rewards import advantages

TRUTH = [0.9, 0.8, 0.7, 0.6, 0.6, 0.5, 0.4, 0.3]
GROUP = ["g"] * 8


def rounded(rewards: list[float | None]) -> list[float]:
    return [round(value, 2) + 0.0 for value in advantages(rewards, GROUP)]


def test_the_truth() -> None:
    assert rounded([*TRUTH]) == [1.50, 1.00, 0.50, 0, 0, -0.50, -1.00, -1.50]


def test_a_failure_as_zero_makes_the_best_answer_the_worst() -> None:
    assert rounded([0.0, *TRUTH[1:]]) == [-1.93, 1.23, 0.84, 0.44, 0.44, 0.05, -0.35, -0.74]


def test_masked_the_others_keep_their_order_and_their_signs() -> None:
    assert rounded([None, *TRUTH[1:]]) == [0, 1.41, 0.83, 0.25, 0.25, -0.33, -0.91, -1.50]


def test_with_the_groups_mean_they_are_the_masked_ones_a_little_stretched() -> None:
    mean = sum(TRUTH[1:]) / 7
    imputed = advantages([mean, *TRUTH[1:]], GROUP, eps=0.0)
    masked = advantages([None, *TRUTH[1:]], GROUP, eps=0.0)
    assert [round(value, 2) + 0.0 for value in imputed] == [0, 1.53, 0.90, 0.27, 0.27, -0.36, -0.99, -1.62]
    assert imputed == pytest.approx([math.sqrt(7 / 6) * value for value in masked], abs=1e-12)


def test_an_outage_as_zero_is_punished_among_ones_and_rewarded_among_minus_ones() -> None:
    assert rounded([0.0, *[1.0] * 7]) == [-2.47, *[0.35] * 7]
    assert rounded([0.0, *[-1.0] * 7])[0] == 2.47
    assert rounded([None, *[1.0] * 7]) == [0.0] * 8


def test_without_the_division_they_are_distances_from_the_mean() -> None:
    assert advantages([1.0, 0.0, None], ["g"] * 3, scale=False) == [0.5, -0.5, 0.0]


def test_a_penalty_of_a_hundredth_is_the_whole_advantage_of_a_tied_group() -> None:
    for low in (0.99, 0.5):
        assert rounded([*[1.0] * 7, low])[-1] == -2.47
    tamed = advantages([*[1.0] * 7, 0.99], GROUP, min_std=0.1)
    assert tamed[-1] == pytest.approx(-0.00875 / 0.1, rel=1e-4)


@pytest.mark.parametrize("reward", [0.1 + 0.2, 1 / 3, 1e-17, 7e8])
def test_equal_rewards_have_no_advantage_to_the_last_bit(reward: float) -> None:
    assert advantages([reward] * 8, GROUP, eps=0.0) == [0.0] * 8


def test_differences_too_small_to_square_are_none() -> None:
    assert advantages([0.0, 1e-300], ["g", "g"], eps=0.0) == [0.0, 0.0]


def test_groups_are_apart_and_a_row_without_one_is_alone() -> None:
    rewards = [1.0, 5.0, 0.0, 9.0, 7.0, 8.0]
    assert advantages(rewards, ["a", "b", "a", "b", None, None], scale=False) == [0.5, -2, -0.5, 2, 0, 0]


@given(st.lists(st.tuples(st.integers(0, 3), st.none() | st.floats(-10, 10)), max_size=40))
def test_they_are_those_of_the_batch_without_the_gaps(rows: list[tuple[int, float | None]]) -> None:
    groups, rewards = [row[0] for row in rows], [row[1] for row in rows]
    whole = advantages(rewards, groups)
    left = [index for index, reward in enumerate(rewards) if reward is not None]
    alone = advantages([rewards[index] for index in left], [groups[index] for index in left])
    assert [whole[index] for index in left] == pytest.approx(alone, abs=1e-9)
    assert all(whole[index] == 0.0 for index in range(len(rows)) if index not in left)
    assert np.isfinite(whole).all()


def test_bad_input_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, check=about("groups")):
        advantages([1.0, 2.0], ["g"])
    with pytest.raises(ConfigError, check=about("rewards[1]")):
        advantages([1.0, math.nan], ["g", "g"])
    with pytest.raises(ConfigError, check=about("min_std")):
        advantages([1.0, 2.0], ["g", "g"], min_std=-1.0)
