"""What a judge demands of its samples is asked before the first call; what it cannot have said is unused."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from complaints import about

from plaudit.engine import Engine
from plaudit.errors import ConfigError
from plaudit.judges import (
    Cascade,
    Checklist,
    Criterion,
    Expected,
    Group,
    Jury,
    Monitor,
    Pairwise,
    Reference,
    Rubric,
    SplitChecklist,
    Yes,
)
from plaudit.judges.base import Judge, Panel, Question
from plaudit.judges.check import check_judge, check_samples, could_give, judge_of_one, unfit_rows
from plaudit.testing import ScriptedTransport
from plaudit.types import Cause, Failure, Reply, Sample, Status, Verdict

GOOD, BAD = Sample("6 x 7?", "42", reference="42"), Sample("6 x 8?", "48")


@dataclass(frozen=True)
class Pair(Panel):
    """A panel that hands every sample on to a reference judge."""

    version: str = "pair"
    scale: tuple[float, float] = (0.0, 1.0)

    def split(self, samples: Sequence[Sample]) -> Iterable[Question]:
        judge = Reference()
        return [Question(judge, sample, (index,)) for index, sample in enumerate(samples)]

    def combine(self, index: int, sample: Sample, verdicts: Sequence[Verdict]) -> Verdict:
        return verdicts[0]


def test_the_first_sample_that_will_not_do_is_named() -> None:
    with pytest.raises(ConfigError, check=about("reference", "sample 7: ")):
        check_samples(Reference(), [(6, GOOD), (7, BAD), (8, BAD)])


def test_a_jury_demands_what_its_members_demand() -> None:
    jury = Jury([Rubric("Is it right?"), Reference()])
    check_samples(jury, [(0, GOOD)])
    with pytest.raises(ConfigError, check=about("reference", "sample 1: ")):
        check_samples(jury, [(0, GOOD), (1, BAD)])


def test_judges_without_demands_take_every_sample() -> None:
    check_samples(Rubric("Is it right?"), [(0, BAD)])


@pytest.mark.parametrize("judge", [Reference(), Pair()])
def test_nothing_is_sent_when_one_sample_will_not_do(judge: Reference | Pair) -> None:
    transport = ScriptedTransport([Reply('{"reason": "r", "equivalent": true}')])
    with (
        Engine("http://127.0.0.1:9/v1", model="m", cache=None, transport=lambda _: transport) as engine,
        pytest.raises(ConfigError, check=about("reference", "sample 1: ")),
    ):
        engine.submit([GOOD, BAD], judge)
    assert transport.sent == []


def test_samples_that_will_do_are_judged() -> None:
    transport = ScriptedTransport([Reply('{"reason": "r", "equivalent": true}')])
    with Engine("http://127.0.0.1:9/v1", model="m", cache=None, transport=lambda _: transport) as engine:
        assert [verdict.score for verdict in engine.score([GOOD, GOOD], Reference())] == [1.0, 1.0]
        assert [verdict.score for verdict in engine.score([GOOD], Pair())] == [1.0]


def ok(score: float, **parts: float) -> Verdict:
    return Verdict(score, Status.OK, parts=parts)


SAMPLE = Sample("p", "r")


@pytest.mark.parametrize(
    ("judge", "possible", "impossible"),
    [
        (Rubric("x", scale=(0, 10)), [0.0, 7.0, 10.0], [-1.0, 4.5, 47.0, math.nan]),
        (Rubric("x", scale=(0, 1), integer=False), [0.0, 0.4], [1.1]),
        (Yes("x?"), [0.0, 0.37, 1.0], [1.01, -0.01]),
        (Monitor("x"), [0.0, 0.9], [9.0]),
        (object(), [47.0], []),
    ],
)
def test_a_judge_can_only_have_given_what_is_on_its_scale(
    judge: object, possible: list[float], impossible: list[float]
) -> None:
    check = could_give(judge) or (lambda _, __: True)
    assert all(check(ok(score), SAMPLE) for score in possible)
    assert not any(check(ok(score), SAMPLE) for score in impossible)


def test_a_panel_s_question_can_only_have_been_answered_with_all_its_parts_on_the_scale() -> None:
    batch = [Sample("p", "one", group="g"), Sample("p", "two", group="g")]
    for panel, bad in ((Group("x", scale=(0, 10)), 47.0), (Pairwise("x", against="group"), 0.7)):
        question = next(iter(panel.split(batch)))
        check = could_give(question.judge)
        assert check is not None
        names = re.findall(r"response-(\w+)", str(question.judge.render(question.sample))) or ["a", "b"]
        assert not check(ok(bad, **dict.fromkeys(names, bad)), question.sample)
        assert not check(ok(1.0), question.sample)


# --- what judges say about themselves ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("judge", "compares", "higher_is_better"),
    [
        (Rubric("x"), False, True),
        (Reference(), False, True),
        (Checklist(), False, True),
        (SplitChecklist(total="points", clip=True), False, True),
        (Monitor("x"), False, False),
        (Cascade("exact_match", Monitor("x")), False, False),
        (Jury([Rubric("x"), Rubric("y")]), False, True),
        (Group("x"), True, True),
        (Pairwise("x", against="group"), True, True),
        (Pairwise("x"), False, True),
    ],
    ids=lambda value: type(value).__name__,
)
def test_every_judge_says_what_callers_need(
    judge: Judge | Panel, compares: bool, higher_is_better: bool
) -> None:
    check_judge(judge, for_rewards=True)
    assert (judge.compares, judge.higher_is_better) == (compares, higher_is_better)
    assert (judge_of_one(judge) is judge) is not compares


def test_points_without_a_lower_end_are_scores_but_no_rewards() -> None:
    judge = Checklist(total="points")
    check_judge(judge)
    with pytest.raises(ConfigError):
        check_judge(judge, for_rewards=True)


@pytest.mark.parametrize("nothing", [None, "rubric", Rubric, object()])
def test_what_is_no_judge_is_named(nothing: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        check_judge(nothing)
    assert caught.value.setting == "judge"


ORPHAN: list[Any] = [
    {"role": "assistant", "content": "Let me look."},
    {"role": "tool", "tool_call_id": "c9", "content": "12 passed"},
]
SHOWING: list[Any] = [
    Rubric("Is it right?"),
    Monitor("It cheats."),
    Yes("Is it right?"),
    Expected("Is it right?"),
    Checklist([Criterion("right", "It is right.")]),
    SplitChecklist([Criterion("right", "It is right.")]),
    Group("Is it right?"),
    Pairwise("Which is right?", against="group"),
    Jury([Rubric("Is it right?"), Yes("Is it brief?")]),
]


@pytest.mark.parametrize("judge", SHOWING, ids=lambda judge: type(judge).__name__)
def test_a_tool_result_that_no_call_asked_for_is_named_before_the_first_call(judge: Any) -> None:
    samples = [Sample("Fix it.", "Done.", group="g"), Sample("Fix it.", ORPHAN, group="g")]
    with (
        Engine("http://localhost:9/v1", model="m", cache=None) as engine,
        pytest.raises(ConfigError, check=about("response")) as caught,
    ):
        engine.submit(samples, judge)
    assert "sample 1" in str(caught.value)


def test_the_last_view_needs_no_whole_trajectory() -> None:
    Rubric("Is it right?", view="last").check(Sample("Fix it.", ORPHAN))


def test_in_a_trainer_a_row_that_cannot_be_judged_fails_alone() -> None:
    samples = [Sample("Fix it.", "Done.", group="g"), Sample("Fix it.", ORPHAN, group="h")]
    unfit = unfit_rows(Rubric("Is it right?"), samples)
    assert list(unfit) == [1]
    assert unfit[1].failure == Failure(Cause.INPUT, {"field": "response"})
    assert not unfit_rows(Rubric("Is it right?", view="last"), samples)


def test_a_judge_that_compares_can_compare_none_of_a_group_with_such_a_row() -> None:
    samples = [
        *[Sample("Fix it.", "Done.", group="g"), Sample("Fix it.", ORPHAN, group="g")],
        *[Sample("Do it.", "Yes.", group="h"), Sample("Do it.", "No.", group="h")],
    ]
    assert sorted(unfit_rows(Group("Is it right?"), samples)) == [0, 1]
