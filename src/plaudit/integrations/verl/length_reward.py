"""What a batch earns by rule, judge and length: asks the judge, then the rule, then adds them up by group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from plaudit.integrations.verl.legacy import Collect, Earned
from plaudit.integrations.verl.legacy_rule import ComputeScore, Rule, Ruling
from plaudit.integrations.verl.legacy_workers import Workers
from plaudit.integrations.verl.length_penalty_config import LengthPenaltyConfig
from plaudit.integrations.verl.outcome import JUDGE, RULE, Member, extra_info
from plaudit.integrations.verl.row import Row
from plaudit.rewards import RewardRow
from plaudit.types import Source, Status, Verdict

NOT_ASKED = Verdict(None, Status.OK, source=Source.RULE)
"""Of a judge or a rule that is not wanted."""
NO_RULING = Ruling(NOT_ASKED)


@dataclass(frozen=True, slots=True)
class _Scored:
    """A row and what was said about it."""

    row: Row
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
        self._rule = Rule(compute_score) if config.enable_rule else None
        self._workers: Workers | None = None
        if config.enable_openai_reward:
            self._workers = Workers(
                config.open_engine,
                config.chosen_judge(),
                time_limit=config.time_limit,
                use_async_io=config.use_async_io,
                max_concurrent=config.max_concurrent_requests,
            )

    def start(self) -> None:
        """Start the judge's workers."""
        if self._workers is not None:
            self._workers.start()

    def shutdown(self) -> None:
        """Stop the judge's workers; the next batch starts them anew."""
        if self._workers is not None:
            self._workers.shutdown()

    def send(self, rows: Sequence[Row]) -> Collect:
        """Ask the judge about every row, whatever its rule will say, and return at once."""
        flight = self._workers.send([row.sample for row in rows]) if self._workers else None

        def collect() -> Sequence[Earned]:
            # The rule is at work while verdicts arrive.
            rulings = self._rule.score(rows) if self._rule else [NO_RULING] * len(rows)
            verdicts = flight.wait() if flight else [NOT_ASKED] * len(rows)
            return self._earned([_Scored(*parts) for parts in zip(rows, verdicts, rulings, strict=True)])

        return collect

    def _earned(self, batch: Sequence[_Scored]) -> list[Earned]:
        """Where one of a group has no rule, none has: rewards of a group are made of the same parts."""
        unruled = {one.group for one in batch if not one.ruling.is_known} if self._workers else set()
        rewarded: dict[int, RewardRow] = {}
        for has_rule in (True, False):
            part = [index for index, one in enumerate(batch) if (one.group not in unruled) is has_rule]
            rewards = self._rewards([batch[index] for index in part], has_rule=has_rule)
            rewarded.update(zip(part, rewards, strict=True))
        sizes = Counter(one.group for one in batch)
        return [_earned(one, rewarded[index], sizes[one.group]) for index, one in enumerate(batch)]

    def _rewards(self, part: Sequence[_Scored], *, has_rule: bool) -> Sequence[RewardRow]:
        """Rewards of the rows that have a rule, or of the others. BatchFailed where too many failed."""
        if not part:
            return ()
        rewards = self._config.reward(has_rule=has_rule).combine(
            [one.row.sample for one in part],
            verdicts={JUDGE: [one.verdict for one in part], RULE: [one.ruling.verdict for one in part]},
            lengths=[one.row.length for one in part],
        )
        return rewards.rows


def _earned(one: _Scored, reward: RewardRow, members: int) -> Earned:
    assert reward.reward is not None, "no policy here leaves gaps"
    said = one.ruling.verdict
    member = Member(
        judge=one.verdict.score,
        status=one.verdict.status,
        length=one.row.length,
        rule=said.score,
        rule_says="nothing"
        if said is NOT_ASKED or not one.ruling.is_known
        else "score"
        if said.is_valid
        else "failed",
    )
    info = extra_info(reward, member, one.verdict, reward=reward.reward, members=members)
    return Earned(reward.reward, {**info, **one.ruling.extra})
