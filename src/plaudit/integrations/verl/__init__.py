"""verl: rewards from judges, in the reward loop (0.7.1 and later) and in the managers before it.

reward_loop   RewardManager, the class to name in the configuration;  plugin: the same by the name `plaudit`
settings      every key of reward.plaudit;  desk: the judge and the engine that they describe
row           one row of a batch, read;  rule: verl's own score for it
judged        a row's way to its reward;  outcome: what it earns;  outage: whether the judge is down
length_penalty_config, ...   LengthPenaltyRewardManager and what belongs to it, for verl before 0.7.1

What needs verl is imported when it is asked for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plaudit.integrations.verl.batch import BatchRewardManager as BatchRewardManager
    from plaudit.integrations.verl.length_penalty import (
        LengthPenaltyRewardManager as LengthPenaltyRewardManager,
    )
    from plaudit.integrations.verl.length_penalty_config import LengthPenaltyConfig as LengthPenaltyConfig
    from plaudit.integrations.verl.reward_loop import RewardManager as RewardManager

_HOMES = {
    "RewardManager": "reward_loop",
    "LengthPenaltyConfig": "length_penalty_config",
    "LengthPenaltyRewardManager": "length_penalty",
    "BatchRewardManager": "batch",
}
__all__ = ["BatchRewardManager", "LengthPenaltyConfig", "LengthPenaltyRewardManager", "RewardManager"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
