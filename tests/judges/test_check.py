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
from plaudit.judges.check import check_judge, check_samples, could_give, judge_of_one
from plaudit.testing import ScriptedTransport
from plaudit.types import Reply, Sample, Status, Verdict

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
