"""A judge as plain data, and back."""

from __future__ import annotations

import json
from typing import Any

import pytest

from plaudit import (
    Cascade,
    Checklist,
    ConfigError,
    Criterion,
    Expected,
    Group,
    Jury,
    Likelihood,
    Monitor,
    Pairwise,
    Reference,
    Rubric,
    SplitChecklist,
    Yes,
)
from plaudit.judges.registry import build, describe

CRITERIA = [Criterion("right", "It is right.", weight=3), Criterion("short", "It is short.")]
JUDGES = [
    Rubric("Is it right?", scale=(0, 1), integer=False, anchors={0: "wrong", 1: "right"}),
    Rubric("Is it right?", solve_first=True, on_attack="flag"),
    Yes(),
    Reference(),
    Checklist(CRITERIA, total="points", clip=True),
    Checklist(column="rubric"),
    SplitChecklist(CRITERIA, per_call=1),
    Monitor("It edits the tests."),
    Expected("Is it right?"),
    Likelihood(),
    Group("Is it right?"),
    Pairwise("Is it right?"),
    Jury({"a": Rubric("Is it right?"), "b": Yes()}, combine="median"),
    Cascade("exact_match", Rubric("Is it right?")),
]


@pytest.mark.parametrize("judge", JUDGES, ids=lambda judge: type(judge).__name__)
def test_a_judge_made_of_its_description_is_the_same(judge: Any) -> None:
    described = json.loads(json.dumps(describe(judge)))
    kind = described.pop("kind")
    again = build(kind, described)
    assert type(again) is type(judge)
    assert again.version == judge.version
    assert again.scale == judge.scale


class Own(Yes):
    """A judge of the user's own."""


@pytest.mark.parametrize("judge", [Own(), Cascade(lambda sample: None, Yes())])
def test_one_that_holds_code_is_refused(judge: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        describe(judge)
    assert caught.value.setting == "judge"
