"""Rewards: verdicts, rules and length penalties combined, and what a failure becomes."""

from plaudit.rewards.base import RewardSource, Rows
from plaudit.rewards.combine import Component, Reward, RewardRow, Rewards
from plaudit.rewards.groups import advantages
from plaudit.rewards.length import KimiLength, LengthPenalty, SoftOverlong
from plaudit.rewards.rules import FormatReward, RuleReward

__all__ = [
    "Component",
    "FormatReward",
    "KimiLength",
    "LengthPenalty",
    "Reward",
    "RewardRow",
    "RewardSource",
    "Rewards",
    "Rows",
    "RuleReward",
    "SoftOverlong",
    "advantages",
]
