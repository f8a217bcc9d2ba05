"""Rewards: verdicts, rules and length penalties combined, and what a failure becomes."""

from plaudit.rewards.advantage import advantages
from plaudit.rewards.base import Rows, Source
from plaudit.rewards.combine import Reward
from plaudit.rewards.component import Component
from plaudit.rewards.form import FormatReward
from plaudit.rewards.kimi import KimiLength
from plaudit.rewards.length import LengthPenalty
from plaudit.rewards.overlong import SoftOverlong
from plaudit.rewards.row import RewardRow, Rewards
from plaudit.rewards.rule import RuleReward

__all__ = [
    "Component",
    "FormatReward",
    "KimiLength",
    "LengthPenalty",
    "Reward",
    "RewardRow",
    "Rewards",
    "Rows",
    "RuleReward",
    "SoftOverlong",
    "Source",
    "advantages",
]
