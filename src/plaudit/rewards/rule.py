"""A rule as a reward: any function from a sample to a number."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass

from plaudit.rewards.base import Rows
from plaudit.types import Sample

log = logging.getLogger("plaudit")


@dataclass(frozen=True, slots=True)
class RuleReward:
    """Scores each sample by a function: a number, True or False, or None where the rule cannot say.

    An exception or a NaN costs its own sample only: it has no value, and the reward's failure policy decides.
    """

    fn: Callable[[Sample], float | bool | None]

    @property
    def needs_base(self) -> bool:
        return False

    def values(self, rows: Rows) -> list[float | None]:
        return [self._value(sample) for sample in rows.samples]

    def _value(self, sample: Sample) -> float | None:
        try:
            value = self.fn(sample)
            number = None if value is None else float(value)
        except Exception:  # user code, as a judge's is
            log.exception("the rule %s failed on a sample", getattr(self.fn, "__name__", self.fn))
            return None
        return number if number is not None and math.isfinite(number) else None
