"""Import this to have `reward_manager: batch` mean plaudit's batch manager in place of verl's own.

VERL_USE_EXTERNAL_MODULES=plaudit.integrations.verl.as_batch           (verl 0.6.0 and later)
"""

from __future__ import annotations

from verl.workers.reward_manager.registry import REWARD_MANAGER_REGISTRY

from plaudit.integrations.verl.legacy.batch_manager import BatchRewardManager

REWARD_MANAGER_REGISTRY["batch"] = BatchRewardManager
