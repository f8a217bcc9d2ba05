"""Kimi k1.5's length reward: within a group, short correct answers gain and long ones lose.

lambda = 0.5 - (L - min) / (max - min) over the group; correct answers get lambda, others min(0, lambda).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from plaudit.rewards.base import Group, Rows
from plaudit.rewards.grouping import Grouping, check_finite, check_length, gaps_of, numbers_of


@dataclass(frozen=True, slots=True)
class KimiLength:
    """From -0.5 for the longest of a group to 0.5 for its shortest correct answer; 0 where all are alike."""

    correct_above: float = 0.0
    """A row counts as correct when its base reward is above this; unknown counts as wrong."""

    def __post_init__(self) -> None:
        check_finite("correct_above", self.correct_above)

    @property
    def needs_base(self) -> bool:
        return True

    def rewards(
        self, lengths: Sequence[float], groups: Sequence[Group], base: Sequence[float | None]
    ) -> list[float]:
        """What each row gets added."""
        tokens = numbers_of("lengths", lengths, at_least=0.0)  # (rows,)
        check_length("groups", groups, len(tokens))
        check_length("base", base, len(tokens))
        known, is_known = gaps_of("base", base)
        grouping, everybody = Grouping(groups), np.ones(len(tokens), dtype=np.bool_)
        spread = grouping.spreads(tokens, everybody)[grouping.codes]
        shortest = -grouping.highest(-tokens, everybody)[grouping.codes]
        share = 0.5 - (tokens - shortest) / np.where(spread > 0, spread, 1.0)
        gained = np.where(is_known & (known > self.correct_above), share, np.minimum(0.0, share))
        result: list[float] = np.where(spread > 0, gained, 0.0).tolist()
        return result

    def values(self, rows: Rows) -> list[float | None]:
        return list(self.rewards(rows.known_lengths("KimiLength"), rows.groups, rows.base))
