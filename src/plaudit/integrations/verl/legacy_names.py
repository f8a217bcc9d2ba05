"""The names by which verl's configuration knows the legacy managers. Importing this registers them.

    reward_model.reward_manager=length_penalty      LengthPenaltyRewardManager
    reward_model.reward_manager=plaudit_batch       BatchRewardManager

    VERL_USE_EXTERNAL_MODULES=plaudit.integrations.verl.legacy_names       (verl 0.6.0 and later)

Nothing here needs verl's abstract base class, which came with 0.6.0.
"""

from __future__ import annotations

from verl.workers.reward_manager import register

from plaudit.integrations.verl.legacy.batch_manager import BatchRewardManager
from plaudit.integrations.verl.legacy.length_penalty import LengthPenaltyRewardManager

register("length_penalty")(LengthPenaltyRewardManager)
register("plaudit_batch")(BatchRewardManager)
