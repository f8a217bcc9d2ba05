"""LengthPenaltyRewardManager: rule score plus the judge's, minus a penalty for the length. verl up to 0.7.0.

config = LengthPenaltyConfig(api_endpoint="https://host/v1", reward_coefficient=0.5)
manager = LengthPenaltyRewardManager(tokenizer=tokenizer, num_examine=1, length_penalty_config=config)
rewards = manager(data)
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from plaudit.integrations.verl.batch_row import BatchRow
from plaudit.integrations.verl.combination import JUDGE, RULE, GroupMember, extra_info
from plaudit.integrations.verl.legacy.handover import Collect, Earned, TwoCallManager
from plaudit.integrations.verl.legacy.judge_workers import JudgeWorkers
from plaudit.integrations.verl.legacy.length_penalty_config import LengthPenaltyConfig
from plaudit.integrations.verl.rule_score import NO_RULE, NOT_ASKED, BatchRules, ComputeScore, Ruling
from plaudit.policy.fingerprint import sample_id
from plaudit.rewards import RewardRow
from plaudit.types import Verdict


@dataclass(frozen=True, slots=True)
class _JudgedRow:
    row: BatchRow
    verdict: Verdict
    ruling: Ruling

    @property
    def group(self) -> str | None:
        return self.row.sample.group


class LengthReward:
    """Sends batches off, and turns what comes back into rewards."""

    def __init__(self, config: LengthPenaltyConfig, compute_score: ComputeScore | None = None) -> None:
        """compute_score: the rule; None: verl's own."""
        self._config = config
        self._rule = BatchRules(compute_score) if config.enable_rule else None
        self._workers: JudgeWorkers | None = None
        if config.enable_openai_reward:
            settings = config.settings()
            self._workers = JudgeWorkers(
                functools.partial(config.open_engine, settings),
                config.chosen_judge(settings),
                time_limit=config.time_limit,
                use_async_io=config.use_async_io,
                max_concurrent=config.max_concurrent_requests,
            )

    def start(self) -> None:
        if self._workers is not None:
            self._workers.start()

    def shutdown(self) -> None:
        """Stop the judge's workers; the next batch starts them anew."""
        if self._workers is not None:
            self._workers.shutdown()

    def send(self, rows: Sequence[BatchRow]) -> Collect:
        """Ask the judge about every row, whatever its rule will say, and return at once."""
        wait = self._workers.send([row.sample for row in rows]) if self._workers else None

        def collect() -> Sequence[Earned]:
            # The rule is at work while verdicts arrive.
            rulings = self._rule.score(rows) if self._rule else [NO_RULE] * len(rows)
            verdicts = wait() if wait else [NOT_ASKED] * len(rows)
            return self._earned([_JudgedRow(*parts) for parts in zip(rows, verdicts, rulings, strict=True)])

        return collect

    def _earned(self, batch: Sequence[_JudgedRow]) -> list[Earned]:
        """Where one of a group has no rule, none has: rewards of a group are made of the same parts."""
        unruled = {one.group for one in batch if not one.ruling.is_known} if self._workers else set()
        rewarded: dict[int, RewardRow] = {}
        for has_rule in (True, False):
            part = {row: one for row, one in enumerate(batch) if (one.group not in unruled) is has_rule}
            if not part:
                continue
            rewards = self._config.reward(has_rule=has_rule).combine(  # BatchFailed where too many failed
                [one.row.sample for one in part.values()],
                verdicts={
                    JUDGE: [one.verdict for one in part.values()],
                    RULE: [one.ruling.verdict for one in part.values()],
                },
                lengths=[one.row.length for one in part.values()],
            )
            rewarded |= zip(part, rewards.rows, strict=True)
        sizes = Counter(one.group for one in batch)
        return [_earned(one, rewarded[index], sizes[one.group]) for index, one in enumerate(batch)]


def _earned(one: _JudgedRow, reward: RewardRow, members: int) -> Earned:
    assert reward.reward is not None, "no policy here leaves gaps"
    member = GroupMember(
        one.verdict.score, one.verdict.status, one.row.length, one.ruling.verdict.score, one.ruling.is_known
    )
    record = sample_id(one.row.sample)
    info = extra_info(reward, member, one.verdict, reward=reward.reward, members=members, record=record)
    return Earned(reward.reward, {**info, **one.ruling.extra})


class LengthPenaltyRewardManager(TwoCallManager):
    """Rewards a batch by group. Its workers start with the first batch, and stop when it is dropped."""

    _scorer: LengthReward

    def __init__(
        self,
        tokenizer: Any,
        num_examine: int = 0,
        compute_score: ComputeScore | None = None,
        reward_fn_key: str = "data_source",
        length_penalty_config: LengthPenaltyConfig | Mapping[str, Any] | None = None,
    ) -> None:
        """Ask the judge for a word, if its server is up.

        Args:
            tokenizer: verl's.
            num_examine: How many rows of each data source are printed.
            compute_score: The rule; None: verl's own.
            reward_fn_key: The column that names the data source.
            length_penalty_config: A LengthPenaltyConfig, or its fields as a table of verl's configuration.
        """
        self.config = LengthPenaltyConfig.of(length_penalty_config)
        scorer = LengthReward(self.config, compute_score)
        super().__init__(tokenizer, num_examine, reward_fn_key, scorer, use_async_io=self.config.use_async_io)

    def start_workers(self) -> None:
        """Start now what the first batch starts otherwise. Safe to call twice."""
        self._scorer.start()
