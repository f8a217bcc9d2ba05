"""How sure a share is, and how far two columns of numbers go together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import StatisticsError, correlation

Z95 = 1.959964
"""Standard deviations that hold 95% of a normal distribution."""


@dataclass(frozen=True, slots=True)
class Share:
    """So many of so many, with the interval that holds the true share in 95 of 100 cases."""

    hits: int
    of: int
    value: float | None
    """None where nothing was counted."""
    low: float = 0.0
    high: float = 1.0

    def __str__(self) -> str:
        if self.value is None:
            return "none counted"
        return f"{self.hits}/{self.of} = {self.value:.0%} ({self.low:.0%} to {self.high:.0%})"


def share(hits: int, of: int) -> Share:
    """The share with Wilson's interval, which stays between 0 and 1 and means something at 0 of n."""
    if of == 0:
        return Share(0, 0, None)
    value = hits / of
    shrink = 1.0 + Z95**2 / of
    middle = (value + Z95**2 / (2 * of)) / shrink
    half = Z95 / shrink * math.sqrt(value * (1.0 - value) / of + Z95**2 / (4 * of**2))
    low = 0.0 if hits == 0 else max(middle - half, 0.0)
    high = 1.0 if hits == of else min(middle + half, 1.0)
    return Share(hits, of, value, low, high)


def rank_correlation(xs: Sequence[float], ys: Sequence[float]) -> float | None:
    """Spearman's: from -1 to 1; None where there are fewer than three points, or one column never changes."""
    if len(xs) < 3:
        return None
    try:
        found = correlation(_ranks(xs), _ranks(ys))
    except StatisticsError:
        return None
    return min(max(found, -1.0), 1.0)  # rounding may leave the range


def _ranks(values: Sequence[float]) -> list[float]:
    """Each value's place in order; equal values share the mean of theirs."""
    order = sorted(range(len(values)), key=values.__getitem__)
    ranks = [0.0] * len(values)
    start = 0
    while start < len(order):
        end = start
        while end < len(order) and values[order[end]] == values[order[start]]:
            end += 1
        for index in order[start:end]:
            ranks[index] = (start + end - 1) / 2
        start = end
    return ranks
