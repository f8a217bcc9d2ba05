"""DAPO's soft overlong punishment: nothing up to the cache, then a straight line down to -1 at the limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from plaudit.errors import ConfigError
from plaudit.rewards.base import Rows
from plaudit.rewards.grouping import check_finite, numbers_of


@dataclass(frozen=True, slots=True)
class SoftOverlong:
    """0 up to max_length - cache, (max_length - cache - L) / cache up to max_length, -1 beyond."""

    max_length: float
    cache: float
    """The last so many tokens before the limit, over which the punishment grows."""

    def __post_init__(self) -> None:
        check_finite("max_length", self.max_length, at_least=1.0)
        check_finite("cache", self.cache)
        if not 0 < self.cache <= self.max_length:
            raise ConfigError(
                f"should be above 0 and at most max_length={self.max_length}",
                setting="cache",
                value=self.cache,
            )

    @property
    def needs_base(self) -> bool:
        return False

    def rewards(self, lengths: Sequence[float]) -> list[float]:
        """What each row gets added, from -1 to 0."""
        tokens = numbers_of("lengths", lengths, at_least=0.0)
        free = self.max_length - self.cache
        result: list[float] = np.clip((free - tokens) / self.cache, -1.0, 0.0).tolist()
        return result

    def values(self, rows: Rows) -> list[float | None]:
        return list(self.rewards(rows.known_lengths("SoftOverlong")))
