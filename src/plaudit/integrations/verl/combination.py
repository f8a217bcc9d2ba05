"""What a row earns: rule + coefficient x judge - penalty, and the same extra keys on every row.

Pure. Each row of a group is a GroupMember; every process with the same members computes the same rewards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from plaudit.integrations.verl.reward_settings import RewardSettings, penalty_of
from plaudit.rewards import Component, KimiLength, LengthPenalty, Reward, RewardRow
from plaudit.rewards.failure import OnFailure
from plaudit.types import Sample, Status, Verdict

JUDGE, RULE, PENALTY = "judge", "rule", "penalty"
"""Components of the reward."""


@dataclass(frozen=True, slots=True)
class GroupMember:
    """One row as its group sees it."""

    judge: float | None
    """The judge's score, brought to 0..1; None: there is no verdict."""
    status: Status
    """The verdict's."""
    length: int
    """Tokens of the response."""
    rule: float | None = None
    """The rule's score; None: it gave none."""
    has_rule: bool = False
    """Whether there is a rule for such rows."""


class Combination:
    """Makes rewards out of the members of a group."""

    def __init__(self, settings: RewardSettings) -> None:
        weight, penalty = settings.coefficient, penalty_of(settings)
        judge = Component(JUDGE, weight=weight, use="add" if weight else "observe", floor=0.0)
        rule = Component(
            RULE, weight=settings.rule_coefficient, floor=0.0
        )  # which it never gets: rules only fail
        length = [Component(PENALTY, penalty)] if penalty else []
        on_failure: OnFailure = "group_mean" if isinstance(settings.failure, str) else settings.failure
        self._with_rule, self._without_rule = (
            Reward(
                [*parts, *length],
                on_failure=on_failure,
                on_content_failure=settings.content_failure,
                max_failure_rate=None,  # one group is too small to tell; the manager watches the rate
                tie_eps=settings.tie_eps,
            )
            for parts in ([judge, rule], [judge])
        )
        by_median = isinstance(penalty, LengthPenalty) and penalty.reference == "group_median"
        self.compares = settings.tie_eps > 0 or by_median or isinstance(penalty, KimiLength)
        """Whether the reward of a row that was judged depends on the others of its group."""
        self.needs_group = on_failure == "group_mean" or self.compares

    def rows(self, members: Sequence[GroupMember]) -> list[RewardRow]:
        """One row for each member of one group, in order.

        Where one of them has no rule, none has: rewards of one group are made of the same parts.
        """
        is_ruled = all(member.has_rule for member in members)
        verdicts = {JUDGE: [Verdict(member.judge, member.status) for member in members]}
        if is_ruled:
            verdicts[RULE] = [
                Verdict(member.rule, Status.FAILED if member.rule is None else Status.OK)
                for member in members
            ]
        combined = (self._with_rule if is_ruled else self._without_rule).combine(
            [Sample("", "")] * len(members),
            verdicts=verdicts,
            lengths=[member.length for member in members],
            groups=[""] * len(members),
        )
        return list(combined.rows)


def extra_info(
    row: RewardRow,
    member: GroupMember,
    verdict: Verdict,
    *,
    reward: float,
    members: int,
    record: str = "",
    texts: bool = True,
    has_gaps: bool = False,
) -> dict[str, float | str | None]:
    """What verl logs and dumps beside the reward: numbers and texts, under the same keys on every row.

    A missing value is 0.0 beside a `_valid` of 0.0, or None where verl leaves such values out of its means
    (`has_gaps`). `acc` is what verl's validation goes by: the score of the rule, else of the judge, else the
    reward; never None, of which verl makes 0.0. `record` is how a journal names the sample.
    """
    rule, judge, penalty = member.rule, member.judge, row.weighted.get(PENALTY)
    accuracy = reward if rule is None and judge is None else judge if rule is None else rule
    missing = None if has_gaps else 0.0
    numbers: dict[str, float | str | None] = {
        "score": None if has_gaps and not row.valid else reward,
        "acc": accuracy,
        "plaudit/valid": float(row.valid),
        "plaudit/judge": missing if judge is None else judge,
        "plaudit/judge_valid": float(judge is not None),
        "plaudit/rule": missing if rule is None else rule,
        "plaudit/rule_valid": float(rule is not None),
        "plaudit/penalty": penalty or 0.0,
        "plaudit/length": float(member.length),
        "plaudit/members": float(members),
        "plaudit/attempts": float(verdict.attempts),
        "plaudit/latency_s": float(verdict.latency_s),
        "plaudit/cost_usd": float(verdict.usage.cost or 0.0),
    }
    if texts:
        said = verdict.reason if verdict.is_valid else verdict.error
        numbers |= {
            "plaudit/status": row.status,
            "plaudit/source": verdict.source.value,
            "plaudit/reason": said or "",
            "plaudit/record": record,
        }
    return numbers
