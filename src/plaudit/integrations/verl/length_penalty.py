"""LengthPenaltyRewardManager, under the path that configurations of verl 0.7.0 name."""

from plaudit.integrations.verl.legacy.length_penalty_manager import LengthPenaltyRewardManager

__all__ = ["LengthPenaltyRewardManager"]
