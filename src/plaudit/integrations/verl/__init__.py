"""verl: rewards from judges, in the reward loop (0.7.1 and later) and in the managers before it.

reward_loop       RewardManager, the class to name in the configuration;  plugin: its name `plaudit`
reward_settings   every key of reward.plaudit;  reward_engine: the judge and the engine that they describe
batch_row         one row of a batch, read;  rule_score: verl's own score for it
row_reward        a row's way to its reward;  combination: the arithmetic of a group
legacy            LengthPenaltyRewardManager and BatchRewardManager, for verl before 0.7.1

What needs verl is imported when it is asked for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plaudit.integrations.verl.legacy.batch_manager import BatchRewardManager as BatchRewardManager
    from plaudit.integrations.verl.legacy.length_penalty_config import (
        LengthPenaltyConfig as LengthPenaltyConfig,
    )
    from plaudit.integrations.verl.legacy.length_penalty_manager import (
        LengthPenaltyRewardManager as LengthPenaltyRewardManager,
    )
    from plaudit.integrations.verl.reward_loop import RewardManager as RewardManager

_HOMES = {
    "RewardManager": "reward_loop",
    "LengthPenaltyConfig": "legacy.length_penalty_config",
    "LengthPenaltyRewardManager": "legacy.length_penalty_manager",
    "BatchRewardManager": "legacy.batch_manager",
}
__all__ = ["BatchRewardManager", "LengthPenaltyConfig", "LengthPenaltyRewardManager", "RewardManager"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
