"""What the length of a response costs: our penalty, DAPO's soft overlong punishment, Kimi k1.5's reward.

LengthPenalty: nothing near the reference length, then a straight line up to the full penalty.

    d = |L - R| / R        over: max(0, L - R) / R        under: max(0, R - L) / R
    penalty = penalty_scale * max_penalty * clip((d - peak_ratio) / (outer_ratio - peak_ratio), 0, 1)

L is a response's length, R the reference: the median of its group, a target, or what makes the penalty full
exactly at a budget.

KimiLength: lambda = 0.5 - (L - min) / (max - min) over the group; correct answers get lambda, others
min(0, lambda).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from plaudit.errors import ConfigError
from plaudit.rewards.base import Group, Rows
from plaudit.rewards.groups import Flags, Grouping, Numbers, gaps_of, numbers_of
from plaudit.value_check import ABOVE_0, check_length, check_number, check_numbers, check_value

Side = Literal["both", "over", "under"]
LengthReference = Literal["group_median", "target", "budget"]
Gate = Literal["none", "positive"]


@dataclass(frozen=True, slots=True)
class LengthPenalty:
    """Penalises lengths far from the reference.

    LengthPenalty()                                                   the median of the group, both sides
    LengthPenalty(side="over", gate="positive")                       long answers, among the good ones only
    LengthPenalty(side="over", reference="budget", budget=20480)      full penalty at 20,480 tokens
    """

    penalty_scale: float = 1.0
    max_penalty: float = 1.0
    peak_ratio: float = 0.3
    """Relative distance from the reference up to which nothing is charged."""
    outer_ratio: float = 0.5
    """Relative distance from which on everything is charged."""
    side: Side = "both"
    reference: LengthReference = "group_median"
    target: float | None = None
    """Tokens; for reference="target"."""
    budget: float | None = None
    """Tokens at which the penalty is full; for reference="budget"."""
    gate: Gate = "none"
    """`positive` charges only rows whose base reward is above the threshold: without it a group learns to
    fail fast."""
    gate_threshold: float = 0.0

    def __post_init__(self) -> None:
        check_numbers(self, "penalty_scale", "max_penalty", "peak_ratio", low=0)
        check_numbers(self, "outer_ratio", "gate_threshold")
        if not self.outer_ratio > self.peak_ratio:
            raise ConfigError(
                f"must be above peak_ratio={self.peak_ratio}; the penalty grows between the two",
                setting="outer_ratio",
                value=self.outer_ratio,
            )
        for name, kind in (("side", Side), ("reference", LengthReference), ("gate", Gate)):
            check_value(name, getattr(self, name), kind)
        for name in ("target", "budget"):
            value = getattr(self, name)
            if self.reference == name and value is None:
                raise ConfigError(f"is missing; reference={name!r} needs it, in tokens", setting=name)
            if self.reference != name and value is not None:
                raise ConfigError(
                    f"has no effect; set reference={name!r}, or leave it out", setting=name, value=value
                )
            if value is not None:
                check_number(name, value, low=1)

    @property
    def needs_base(self) -> bool:
        return self.gate != "none"

    def penalties(
        self,
        lengths: Sequence[float],
        groups: Sequence[Group] | None = None,
        base: Sequence[float | None] | None = None,
    ) -> list[float]:
        """How much each row is charged, from 0 to penalty_scale * max_penalty.

        groups   one for each row; only the group's median needs them
        base     each row's reward without the penalty, for the gate; None: unknown, so nothing is charged
        """
        tokens = numbers_of("lengths", lengths, at_least=0.0)  # (rows,)
        reference = self._references(tokens, groups)
        has_reference = reference > 0
        away = (tokens - reference) / np.where(has_reference, reference, 1.0)
        distance = {"both": np.abs(away), "over": away, "under": -away}[self.side]
        share = np.clip((distance - self.peak_ratio) / (self.outer_ratio - self.peak_ratio), 0.0, 1.0)
        charged = np.where(has_reference & self._is_open(base, len(tokens)), share, 0.0)
        result: list[float] = (self.penalty_scale * self.max_penalty * charged).tolist()
        return result

    def values(self, rows: Rows) -> list[float | None]:
        charged = self.penalties(rows.known_lengths("LengthPenalty"), rows.groups, rows.base)
        return [0.0 - penalty for penalty in charged]  # never -0.0

    def _references(self, tokens: Numbers, groups: Sequence[Group] | None) -> Numbers:
        if self.reference == "target":
            return np.full(len(tokens), float(self.target or 0.0))
        if self.reference == "budget":
            return np.full(len(tokens), (self.budget or 0.0) / (1.0 + self.outer_ratio))
        if groups is None:
            raise ConfigError(
                "are missing; the median of a group needs them, one for each row", setting="groups"
            )
        check_length("groups", groups, len(tokens))
        grouping = Grouping(groups)
        medians = np.where(grouping.sizes > 1, grouping.medians(tokens), 0.0) if len(tokens) else tokens
        return np.asarray(medians[grouping.codes], dtype=np.float64)

    def _is_open(self, base: Sequence[float | None] | None, rows: int) -> Flags:
        if self.gate == "none":
            return np.ones(rows, dtype=np.bool_)
        if base is None:
            raise ConfigError(
                'is missing; gate="positive" needs each row\'s reward without the penalty', setting="base"
            )
        check_length("base", base, rows)
        rewards, is_known = gaps_of("base", base)
        return np.asarray(is_known & (rewards > self.gate_threshold), dtype=np.bool_)


@dataclass(frozen=True, slots=True)
class SoftOverlong:
    """DAPO's: 0 up to max_length - cache, (max_length - cache - L) / cache up to max_length, -1 beyond."""

    max_length: float
    cache: float
    """The last so many tokens before the limit, over which the punishment grows."""

    def __post_init__(self) -> None:
        check_number("max_length", self.max_length, low=1)
        check_number("cache", self.cache, low=ABOVE_0, high=self.max_length)

    def rewards(self, lengths: Sequence[float]) -> list[float]:
        """What each row gets added, from -1 to 0."""
        tokens = numbers_of("lengths", lengths, at_least=0.0)
        free = self.max_length - self.cache
        result: list[float] = np.clip((free - tokens) / self.cache, -1.0, 0.0).tolist()
        return result

    def values(self, rows: Rows) -> list[float | None]:
        return list(self.rewards(rows.known_lengths("SoftOverlong")))


@dataclass(frozen=True, slots=True)
class KimiLength:
    """Kimi k1.5's: -0.5 for the longest of a group, 0.5 for its shortest correct answer; else 0."""

    correct_above: float = 0.0
    """A row counts as correct when its base reward is above this; unknown counts as wrong."""

    needs_base: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_number("correct_above", self.correct_above)

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
