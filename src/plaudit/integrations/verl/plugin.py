"""What `import verl` loads by itself from verl 0.9 on: the managers, under the names that configurations use.

reward.reward_manager.name=plaudit
"""

from __future__ import annotations

from verl.experimental.reward_loop.reward_manager import register

import plaudit.integrations.verl.legacy_names  # noqa: F401 - registers by being imported
from plaudit.integrations.verl.reward_loop import RewardManager

register("plaudit")(RewardManager)
