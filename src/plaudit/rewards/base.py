"""What a reward is made of: rows of a batch, and sources that put a number on each of them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Protocol

from plaudit.errors import ConfigError
from plaudit.types import Sample

Group = Hashable | None
"""Rows of one group answer the same prompt. None: a row without a group, which is a group of its own."""


@dataclass(frozen=True, slots=True)
class Rows:
    """A batch as the sources of a reward see it; everything in the order of the samples."""

    samples: Sequence[Sample]
    groups: Sequence[Group]
    lengths: Sequence[float] | None = None
    """Lengths of the responses in tokens, without padding."""
    base: Sequence[float | None] = ()
    """What the components that look at no base add up to; None where one of them is missing."""

    def known_lengths(self, asker: str) -> Sequence[float]:
        """The lengths. Raises ConfigError, naming who asks, where they were not given."""
        if self.lengths is None:
            raise ConfigError(
                f"are missing, and {asker} needs them; pass lengths= in tokens", setting="lengths"
            )
        return self.lengths


class RewardSource(Protocol):
    """Puts a number on each row, or None where it has none. A penalty is a negative number.

    A source that looks at `rows.base` has an attribute `needs_base` that is true: it is asked last.
    """

    def values(self, rows: Rows) -> Sequence[float | None]:
        """One value for each row, in order."""
        ...
