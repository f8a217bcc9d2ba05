"""What a batch earned: one row for each sample, with the same keys whatever failed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from plaudit.rewards.base import Group


@dataclass(frozen=True, slots=True)
class RewardRow:
    """What one sample earned, and by what. Every row of a batch has the same components."""

    reward: float | None
    """What the trainer gets; None: nothing to train on."""
    valid: bool
    """Whether there is a reward to train on; 0 advantage is meant for the others."""
    status: str
    """`ok`; the status of the verdict that is missing; `screened`; or `thin_group`: masked with its group."""
    raw: Mapping[str, float | None]
    """Each component's own value."""
    weights: Mapping[str, float]
    """What each value is multiplied by: 0.0 for a component that is only observed or screens."""

    @property
    def weighted(self) -> dict[str, float | None]:
        """What each component adds to the reward."""
        return {
            name: None if value is None else self.weights[name] * value + 0.0  # never -0.0
            for name, value in self.raw.items()
        }

    def flat(self) -> dict[str, float]:
        """Numbers only, under the same keys on every row, as verl's extra information has to be.

        A missing value is 0.0 beside a validity of 0.0: sum the values and divide by the summed validity.
        """
        numbers = {"reward_valid": float(self.valid)}
        for name, value in self.weighted.items():
            numbers[f"{name}_valid"] = float(value is not None)
            numbers[name] = self.raw[name] or 0.0
            numbers[f"{name}_weighted"] = value or 0.0
        return numbers


@dataclass(frozen=True, slots=True)
class Rewards:
    """A batch of rewards, in the order of the samples."""

    rows: tuple[RewardRow, ...]
    groups: tuple[Group, ...]
    groups_masked: int = 0
    """Groups in which too few rewards were there."""
    groups_zero_spread: int = 0
    """Groups of two rewards or more, all alike: they teach nothing."""
    failures: Mapping[str, int] = field(default_factory=dict)
    """Rows with a verdict missing, by its status."""

    @property
    def values(self) -> list[float | None]:
        """What a trainer takes."""
        return [row.reward for row in self.rows]
