"""What rows of a group earn, and that every row reports the same keys."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest

from plaudit.integrations.verl.combination import Combination, GroupMember, extra_info
from plaudit.integrations.verl.reward_settings import RewardSettings
from plaudit.types import Status, Verdict

BY_MEDIAN = {"kind": "length"}


def combination(**settings: Any) -> Combination:
    return Combination(RewardSettings(**settings))


def judged(score: float | None, *, length: int = 100, rule: float | None = None) -> GroupMember:
    status = Status.OK if score is not None else Status.FAILED
    return GroupMember(score, status, length, rule=rule, has_rule=rule is not None)


def rewards(reward: Combination, members: list[GroupMember]) -> list[float | None]:
    return [row.reward for row in reward.rows(members)]


def test_a_reward_is_the_rules_score_and_the_judges_times_its_coefficient() -> None:
    reward = combination(coefficient=0.5, rule_coefficient=2.0)
    assert rewards(reward, [judged(0.8, rule=1.0), judged(0.4, rule=0.0)]) == [2.4, 0.2]


def test_the_worked_example_of_the_rewards_page() -> None:
    reward = combination(coefficient=0.5, penalty=BY_MEDIAN)
    table = [(1000, 1, 0.8), (1000, 0, 0.4), (1350, 1, 0.9), (1400, 1, 1.0), (600, 0, 0.2), (400, 1, 0.6)]
    members = [judged(judge, length=length, rule=rule) for length, rule, judge in table]
    assert rewards(reward, members) == pytest.approx([1.4, 0.2, 1.2, 1.0, -0.4, 0.3])


def test_a_row_without_a_verdict_gets_the_mean_of_its_group() -> None:
    members = [judged(1.0), judged(None), judged(0.0), judged(0.5)]
    assert rewards(combination(), members) == [1.0, 0.5, 0.0, 0.5]


def test_a_group_with_too_few_verdicts_teaches_nothing() -> None:
    reward = combination()
    for members in ([judged(0.9), judged(None), judged(None)], [judged(None)] * 3):
        rows = reward.rows(members)
        assert len({row.reward for row in rows}) == 1
        assert not any(row.valid for row in rows)


def test_a_number_may_stand_for_a_failure() -> None:
    assert rewards(combination(failure=-1.0), [judged(1.0), judged(None)]) == [1.0, -1.0]


def test_rows_of_one_group_are_made_of_the_same_parts() -> None:
    members = [judged(0.2, rule=1.0), judged(0.8)]
    assert rewards(combination(), members) == [0.2, 0.8]


def test_a_rule_that_failed_on_a_row_costs_that_row() -> None:
    broken = GroupMember(1.0, Status.OK, 10, has_rule=True)
    assert rewards(combination(), [judged(0.2, rule=1.0), judged(0.4, rule=0.0), broken]) == pytest.approx(
        [1.2, 0.4, 0.8]
    )


def test_a_judge_with_coefficient_zero_is_reported_and_harms_nobody() -> None:
    rows = combination(coefficient=0.0).rows([judged(0.9, rule=1.0), judged(None, rule=0.0)])
    assert [row.reward for row in rows] == [1.0, 0.0]
    assert all(row.valid for row in rows)


def test_a_response_that_breaks_the_judge_may_be_given_the_floor() -> None:
    refused = GroupMember(None, Status.REFUSED, 10)
    members = [judged(1.0), judged(0.5), refused]
    assert rewards(combination(content_failure="floor"), members) == [1.0, 0.5, 0.0]


@pytest.mark.parametrize(
    ("reward", "needs"),
    [
        (combination(), True),
        (combination(failure=0.0), False),
        (combination(failure=0.0, tie_eps=0.1), True),
        (combination(failure=0.0, penalty=BY_MEDIAN), True),
        (combination(failure=0.0, penalty={"reference": "target", "target": 9.0}), False),
        (combination(failure=0.0, penalty={"kind": "overlong", "max_length": 100, "cache": 10}), False),
        (combination(failure=0.0, penalty={"kind": "kimi"}), True),
    ],
)
def test_only_what_compares_rows_needs_the_group(reward: Combination, needs: bool) -> None:
    assert reward.needs_group is needs


def test_every_row_reports_the_same_keys_and_types_whatever_failed() -> None:
    shapes = set()
    statuses = (Status.OK, Status.FAILED, Status.DEADLINE, Status.UNREADABLE, Status.EMPTY)
    for status, rule, penalty in itertools.product(statuses, (None, 1.0), (None, BY_MEDIAN)):
        score = 0.5 if status in (Status.OK, Status.EMPTY) else None
        member = GroupMember(score, status, 10, rule=rule, has_rule=rule is not None)
        verdict = Verdict(score, status, "fine" if score else "", error=None if score else "broke")
        (row,) = combination(penalty=penalty).rows([member])
        extra = extra_info(row, member, verdict, reward=row.reward or 0.0, members=1)
        shapes.add(tuple((key, type(value)) for key, value in extra.items()))
        numbers = [value for value in extra.values() if isinstance(value, float)]
        assert all(map(math.isfinite, numbers))
        assert extra["plaudit/valid"] == float(score is not None)
    assert len(shapes) == 1


def test_texts_can_be_left_out() -> None:
    (row,) = combination().rows([judged(0.5)])
    extra = extra_info(row, judged(0.5), Verdict(0.5, Status.OK), reward=0.5, members=1, texts=False)
    assert all(isinstance(value, float) for value in extra.values())
