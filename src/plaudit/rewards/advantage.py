"""GRPO's advantages: each reward against the mean of its group, in units of the group's spread."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from plaudit.rewards.base import Group
from plaudit.rewards.grouping import Grouping, check_finite, check_length, gaps_of


def advantages(
    rewards: Sequence[float | None],
    groups: Sequence[Group],
    scale: bool = True,
    *,
    eps: float = 1e-6,
    min_std: float = 0.0,
) -> list[float]:
    """(reward - mean) / (std + eps) within each group; a row without a reward counts for nothing, gets 0.0.

    scale     False leaves out the division
    eps       what is added to the standard deviation (n - 1), as trainers do
    min_std   divides by no less than this: a penalty of 0.01 in a group that is tied otherwise then moves
              the policy by 0.01 / min_std at most, instead of becoming the whole advantage
    """
    check_length("groups", groups, len(rewards))
    check_finite("eps", eps, at_least=0.0)
    check_finite("min_std", min_std, at_least=0.0)
    values, is_there = gaps_of("rewards", rewards)  # (rows,)
    grouping = Grouping(groups)
    away = np.where(is_there, values - grouping.means(values, is_there)[grouping.codes], 0.0)
    has_spread = grouping.spreads(values, is_there) > 0  # (groups,)
    if scale:
        squares = grouping.sums(away**2, is_there)
        std = np.sqrt(squares / np.maximum(grouping.counts(is_there) - 1, 1))
        divisor = np.maximum(std, min_std) + eps
        has_spread &= divisor > 0  # squares of the tiniest numbers vanish
        away = away / np.where(has_spread, divisor, 1.0)[grouping.codes]
    result: list[float] = np.where(has_spread[grouping.codes], away, 0.0).tolist()
    return result
