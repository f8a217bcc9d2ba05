"""LengthPenaltyRewardManager: rule score plus the judge's, minus a penalty for the length. verl up to 0.7.0.

config = LengthPenaltyConfig(api_endpoint="https://host/v1", reward_coefficient=0.5)
manager = LengthPenaltyRewardManager(tokenizer=tokenizer, num_examine=1, length_penalty_config=config)
rewards = manager(data)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from plaudit.integrations.verl.legacy import Handover
from plaudit.integrations.verl.legacy_rule import ComputeScore
from plaudit.integrations.verl.length_penalty_config import LengthPenaltyConfig
from plaudit.integrations.verl.length_reward import LengthReward


class LengthPenaltyRewardManager:
    """Rewards a batch by group. Its workers start with the first batch, and stop when it is dropped."""

    def __init__(
        self,
        tokenizer: Any,
        num_examine: int = 0,
        compute_score: ComputeScore | None = None,
        reward_fn_key: str = "data_source",
        length_penalty_config: LengthPenaltyConfig | Mapping[str, Any] | None = None,
    ) -> None:
        """
        num_examine             how many rows of each data source are printed
        compute_score           the rule; None: verl's own
        reward_fn_key           the column that names the data source
        length_penalty_config   a LengthPenaltyConfig, or its fields as a table of verl's configuration
        """
        self.config = LengthPenaltyConfig.of(length_penalty_config)
        self._reward = LengthReward(self.config, compute_score)
        self._handover = Handover(
            tokenizer, num_examine, reward_fn_key, self._reward.send, use_async_io=self.config.use_async_io
        )

    def __call__(self, data: Any, return_dict: bool = False) -> Any:
        """The rewards of a DataProto; of the one that was submitted, without asking again."""
        return self._handover.reward(data, return_dict)

    def submit(self, data: Any) -> None:
        """Hand a DataProto to the judge and return at once."""
        self._handover.submit(data)

    def collect(self, return_dict: bool = False) -> Any:
        """The rewards of what was submitted. Waits for what is missing, up to the time limit."""
        return self._handover.collect(return_dict)

    def start_workers(self) -> None:
        """Start now what the first batch starts otherwise. Safe to call twice."""
        self._reward.start()

    def shutdown_workers(self) -> None:
        """Free thread and connections; verdicts that came are kept. The next batch starts them anew."""
        self._handover.call_off("the batch under way was called off by shutdown_workers(); submit it again")
        self._reward.shutdown()
