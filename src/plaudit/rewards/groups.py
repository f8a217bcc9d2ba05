"""Rows by group: medians, means, spreads and advantages of all groups at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from plaudit.errors import ConfigError
from plaudit.rewards.base import Group
from plaudit.value_check import check_length, check_number

Numbers = npt.NDArray[np.float64]
Codes = npt.NDArray[np.intp]
Flags = npt.NDArray[np.bool_]


class Grouping:
    """Numbers the groups of a batch in the order of their first rows."""

    def __init__(self, groups: Sequence[Group]) -> None:
        numbers: dict[object, int] = {}
        self.codes: Codes = np.fromiter(
            (numbers.setdefault(object() if group is None else group, len(numbers)) for group in groups),
            dtype=np.intp,
            count=len(groups),
        )  # (rows,)
        self.count = len(numbers)
        self.sizes = np.bincount(self.codes, minlength=self.count)  # (groups,)

    def sums(self, values: Numbers, where: Flags) -> Numbers:
        """What the chosen rows of each group add up to."""
        sums = np.bincount(self.codes[where], weights=values[where], minlength=self.count)
        return np.asarray(sums, dtype=np.float64)

    def counts(self, where: Flags) -> Codes:
        """How many rows of each group are chosen."""
        return np.bincount(self.codes[where], minlength=self.count)

    def means(self, values: Numbers, where: Flags) -> Numbers:
        """The mean over the chosen rows of each group; 0 for a group without any.

        Taken as differences from one of the rows: equal rewards have exactly that mean, not one a
        rounding error away, which would be the group's whole spread.
        """
        anchor = self.highest(values, where)
        anchor[~np.isfinite(anchor)] = 0.0
        rest = self.sums(values - anchor[self.codes], where)
        return np.asarray(anchor + rest / np.maximum(self.counts(where), 1), dtype=np.float64)

    def spreads(self, values: Numbers, where: Flags) -> Numbers:
        """The largest less the smallest of the chosen rows; -inf for a group without any."""
        return self.highest(values, where) + self.highest(-values, where)

    def highest(self, values: Numbers, where: Flags) -> Numbers:
        """The largest of the chosen rows; -inf for a group without any."""
        highest = np.full(self.count, -np.inf)
        np.maximum.at(highest, self.codes[where], values[where])
        return highest

    def medians(self, values: Numbers) -> Numbers:
        """The median of each group, over all its rows."""
        ordered = values[np.lexsort((values, self.codes))]
        starts = np.cumsum(self.sizes) - self.sizes
        low, high = starts + (self.sizes - 1) // 2, starts + self.sizes // 2
        return np.asarray((ordered[low] + ordered[high]) / 2, dtype=np.float64)


def numbers_of(name: str, values: Sequence[float], *, at_least: float = -np.inf) -> Numbers:
    """An array of finite numbers. Raises ConfigError naming the field and the row otherwise."""
    try:
        array: Any = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ConfigError("should be numbers, one for each row", setting=name) from None
    bad = np.flatnonzero(~(np.isfinite(array) & (array >= at_least)))
    if array.ndim != 1:
        raise ConfigError(f"has {array.ndim} dimensions; give one number for each row", setting=name)
    if len(bad):
        floor = "" if at_least == -np.inf else f" of {at_least:g} or more"
        raise ConfigError(
            f"should be a finite number{floor}", setting=f"{name}[{bad[0]}]", value=values[bad[0]]
        )
    return np.asarray(array, dtype=np.float64)


def with_nan(values: Sequence[float | None]) -> Numbers:
    """An array with NaN where there is no finite number."""
    array = np.asarray(values, dtype=np.float64)
    return np.where(np.isfinite(array), array, np.nan)


def with_none(values: Numbers) -> list[float | None]:
    """Back to what the rest of the world reads: None where there is no number."""
    return [value if value == value else None for value in values.tolist()]  # noqa: PLR0124 - NaN is not itself


def gaps_of(name: str, values: Sequence[float | None]) -> tuple[Numbers, Flags]:
    """Numbers with 0 in place of None, and which of them are there."""
    is_there = np.fromiter((value is not None for value in values), dtype=np.bool_, count=len(values))
    filled = numbers_of(name, [0.0 if value is None else value for value in values])
    return filled, is_there


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
    check_number("eps", eps, low=0)
    check_number("min_std", min_std, low=0)
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
