"""The names by which verl and its users' code know the legacy managers. Importing this registers them.

    reward_model.reward_manager=length_penalty      LengthPenaltyRewardManager
    reward_model.reward_manager=plaudit_batch       BatchRewardManager

    from verl.workers.reward_manager import LengthPenaltyRewardManager, AsyncOpenAIManager, AsyncOpenAIWorker
    from verl.utils.config import LengthPenaltyConfig

    VERL_USE_EXTERNAL_MODULES=plaudit.integrations.verl.legacy_names       (verl 0.6.0 and later)

Nothing here needs verl's abstract base class, which came with 0.6.0.
"""

from __future__ import annotations

import verl.utils.config
import verl.workers.reward_manager

from plaudit.integrations.verl.legacy.batch_manager import BatchRewardManager
from plaudit.integrations.verl.legacy.length_penalty_config import LengthPenaltyConfig
from plaudit.integrations.verl.legacy.length_penalty_manager import LengthPenaltyRewardManager
from plaudit.openai_manager import AsyncOpenAIManager, AsyncOpenAIWorker

verl.workers.reward_manager.register("length_penalty")(LengthPenaltyRewardManager)
verl.workers.reward_manager.register("plaudit_batch")(BatchRewardManager)

verl.workers.reward_manager.LengthPenaltyRewardManager = LengthPenaltyRewardManager
verl.workers.reward_manager.AsyncOpenAIManager = AsyncOpenAIManager
verl.workers.reward_manager.AsyncOpenAIWorker = AsyncOpenAIWorker
verl.utils.config.LengthPenaltyConfig = LengthPenaltyConfig
