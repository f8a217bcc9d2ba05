"""LengthPenaltyRewardManager: rule score plus the judge's, minus a penalty for the length. verl up to 0.7.0.

config = LengthPenaltyConfig(api_endpoint="https://host/v1", reward_coefficient=0.5)
manager = LengthPenaltyRewardManager(tokenizer=tokenizer, num_examine=1, length_penalty_config=config)
rewards = manager(data)
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from plaudit.integrations.verl.batch_row import BatchRow
from plaudit.integrations.verl.combination import JUDGE, RULE, GroupMember, extra_info
from plaudit.integrations.verl.legacy.handover import Collect, Earned, TwoCallManager
from plaudit.integrations.verl.legacy.judge_workers import JudgeWorkers
from plaudit.integrations.verl.legacy.length_penalty_config import LengthPenaltyConfig
from plaudit.integrations.verl.rule_score import NO_RULE, NOT_ASKED, BatchRules, ComputeScore, Ruling
from plaudit.judges.check import check_weight
from plaudit.policy.fingerprint import sample_id
from plaudit.rewards import RewardRow
from plaudit.types import Verdict


class LengthReward:
    """Sends batches off, and turns what comes back into rewards."""

    def __init__(self, config: LengthPenaltyConfig, compute_score: ComputeScore | None = None) -> None:
        """compute_score: the rule; None: verl's own."""
        self._config = config
        self._rule = BatchRules(compute_score) if config.enable_rule else None
        self._workers: JudgeWorkers | None = None
        if config.enable_openai_reward:
            settings = config.settings()
            judge = config.chosen_judge(settings)
            check_weight("reward_coefficient", config.reward_coefficient, judge)
            self._workers = JudgeWorkers(
                functools.partial(config.open_engine, settings),
                judge,
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
            return self._earned(rows, verdicts, rulings)

        return collect

    def _earned(
        self, rows: Sequence[BatchRow], verdicts: Sequence[Verdict], rulings: Sequence[Ruling]
    ) -> list[Earned]:
        """Where one of a group has no rule, none has: rewards of a group are made of the same parts."""
        groups = [row.sample.group for row in rows]
        pairs = zip(groups, rulings, strict=True) if self._workers else ()
        unruled = {group for group, ruling in pairs if not ruling.is_known}
        rewarded: dict[int, RewardRow] = {}
        for has_rule in (True, False):
            part = [n for n, group in enumerate(groups) if (group not in unruled) is has_rule]
            if part:
                rewards = self._config.reward(has_rule=has_rule).combine(  # BatchFailed where too many failed
                    [rows[n].sample for n in part],
                    verdicts={JUDGE: [verdicts[n] for n in part], RULE: [rulings[n].verdict for n in part]},
                    lengths=[rows[n].length for n in part],
                )
                rewarded |= zip(part, rewards.rows, strict=True)
        sizes = Counter(groups)
        return [
            _info(row, verdict, ruling, rewarded[number], sizes[row.sample.group])
            for number, (row, verdict, ruling) in enumerate(zip(rows, verdicts, rulings, strict=True))
        ]


def _info(row: BatchRow, verdict: Verdict, ruling: Ruling, reward: RewardRow, members: int) -> Earned:
    assert reward.reward is not None, "no policy here leaves gaps"
    member = GroupMember(verdict.score, verdict.status, row.length, ruling.verdict.score, ruling.is_known)
    record = sample_id(row.sample)
    info = extra_info(reward, member, verdict, reward=reward.reward, members=members, record=record)
    return {**info, **ruling.extra}


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
