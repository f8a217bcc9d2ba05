"""What nobody should write and somebody does: each is named by its setting, and none becomes a number."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from complaints import about

from plaudit import Sampling, Status
from plaudit.errors import ConfigError
from plaudit.judges import (
    Checklist,
    Criterion,
    Expected,
    Group,
    Monitor,
    Pairwise,
    Reference,
    Rubric,
    SplitChecklist,
    Yes,
)
from plaudit.types import ChatRequest, Reply, Sample, Verdict

NAN = math.nan
POINT = [Criterion("right", "It is right.")]
OPTIONS: list[tuple[str, Callable[[], Any]]] = [
    ("max_chars", lambda: Rubric("Right?", max_chars=NAN)),  # type: ignore[arg-type]
    ("max_chars", lambda: Reference(max_chars="9")),  # type: ignore[arg-type]
    ("max_chars", lambda: Monitor("It cheats.", max_chars=True)),
    ("max_tokens", lambda: Rubric("Right?", max_tokens=None)),  # type: ignore[arg-type]
    ("max_tokens", lambda: Group("Right?", max_tokens=1.5)),  # type: ignore[arg-type]
    ("max_tokens", lambda: Checklist(POINT, max_tokens=0)),
    ("max_tokens", lambda: Checklist(POINT, max_tokens="9")),  # type: ignore[arg-type]
    ("max_chars_per_call", lambda: Group("Right?", max_chars_per_call=NAN)),  # type: ignore[arg-type]
    ("per_call", lambda: SplitChecklist(POINT, per_call=True)),
    ("integer", lambda: Rubric("Right?", integer="no")),  # type: ignore[arg-type]
    ("show_thinking", lambda: Yes("Right?", show_thinking="false")),  # type: ignore[arg-type]
    ("clip", lambda: Checklist(POINT, total="points", clip="no")),  # type: ignore[arg-type]
    ("threshold", lambda: Monitor("It cheats.", threshold="x")),  # type: ignore[arg-type]
    ("min_mass", lambda: Expected("Right?", min_mass="x")),  # type: ignore[arg-type]
    ("opponents", lambda: Pairwise("Right?", against="group", opponents="2")),  # type: ignore[arg-type]
    ("opponents", lambda: Pairwise("Right?", against="group", opponents=2.0)),  # type: ignore[arg-type]
    ("anchors", lambda: Rubric("Right?", anchors=["wrong"])),  # type: ignore[arg-type]
    ("sampling", lambda: Rubric("Right?", sampling={"seed": 1})),  # type: ignore[arg-type]
    ("seed", lambda: Sampling(seed=10**40)),
    ("extra", lambda: Sampling(extra={"a": NAN})),
    ("extra", lambda: Sampling(extra={"a": {1}})),
    ("reasoning_effort", lambda: Sampling(reasoning_effort=5)),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("setting", "make"), OPTIONS, ids=[f"{n}-{o[0]}" for n, o in enumerate(OPTIONS)])
def test_an_option_of_the_wrong_kind_is_named(setting: str, make: Callable[[], Any]) -> None:
    with pytest.raises(ConfigError, check=about(setting)):
        make()


@pytest.mark.parametrize("weight", [NAN, math.inf, -math.inf])
def test_a_weight_that_is_no_number_is_not_taken_for_one(weight: float) -> None:
    row = Sample("p", "r", extra={"rubric": [{"criterion": "It is right.", "points": weight}]})
    with pytest.raises(ConfigError, check=about("rubric")):
        Checklist().check(row)


def test_a_weight_left_out_counts_as_one() -> None:
    row = Sample("p", "r", extra={"rubric": [{"criterion": "It is right.", "points": None}]})
    assert Checklist().criteria_of(row)[0].weight == 1.0


def test_a_message_about_a_long_value_is_short() -> None:
    row = Sample("p", "r", extra={"rubric": {"rubrics": {"a" * 100_000: 1}}})
    with pytest.raises(ConfigError) as caught:
        Checklist().check(row)
    assert len(str(caught.value)) < 1_000


def test_names_that_differ_in_capitals_alone_can_both_be_answered() -> None:
    entries = [{"title": "Tone", "description": "Kind."}, {"title": "tone", "description": "Calm."}]
    row = Sample("p", "r", extra={"rubric": entries})
    one, two = (point.name for point in Checklist().criteria_of(row))
    assert one.casefold() != two.casefold()
    reply = f'{{"reason_{one}": "a", "{one}": true, "reason_{two}": "b", "{two}": false}}'
    assert Checklist().parse(Reply(reply), row).score == 0.5
    with pytest.raises(ConfigError):
        Checklist([Criterion("Tone", "Kind."), Criterion("tone", "Calm.")])


def test_criteria_called_score_and_final_score_can_both_be_answered() -> None:
    judge = Checklist([Criterion("score", "It scores."), Criterion("final_score", "It ends.")])
    reply = '{"reason_score": "a", "score": true, "reason_final_score": "b", "final_score": true}'
    assert judge.parse(Reply(reply), Sample("p", "r")).score == 1.0


@pytest.mark.parametrize(
    "criteria",
    [
        ["It is right.", "It is short."],
        [{"criterion": "It is right.", "points": 1}, {"description": "It is short."}],
        [Criterion("right", "It is right."), "It is short."],
    ],
)
def test_criteria_for_all_rows_may_have_the_shapes_of_rows(criteria: list[Any]) -> None:
    made = Checklist(criteria).criteria
    assert made is not None
    assert [point.text for point in made] == ["It is right.", "It is short."]


JUDGE = Rubric("Is it right?")


def turns(*messages: Any) -> Sample:
    return Sample("p", list(messages))


@pytest.mark.parametrize("view", ["full", "last"])
@pytest.mark.parametrize("role", [None, 5, "agent", "Model A"])
def test_a_response_of_a_speaker_who_may_be_the_assistant_is_not_empty(role: Any, view: Any) -> None:
    with pytest.raises(ConfigError, check=about("response")):
        Rubric("Is it right?", view=view).render(turns({"role": role, "content": "It is 42."}))


@pytest.mark.parametrize("role", ["Assistant", "ASSISTANT ", "model", "ai", "gpt"])
def test_the_assistant_by_another_name_says_the_same(role: str) -> None:
    said = JUDGE.render(turns({"role": role, "content": "It is 42."}))
    assert said == JUDGE.render(Sample("p", "It is 42."))


@pytest.mark.parametrize("role", ["Tool", "function", "ipython", "observation"])
def test_a_tool_by_another_name_is_a_tool(role: str) -> None:
    call = {"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": "{}"}}]}
    made = [
        JUDGE.render(turns(call, {"role": name, "tool_call_id": "1", "content": "12 passed"}))
        for name in (role, "tool")
    ]
    assert made[0] == made[1]
    assert isinstance(made[0], ChatRequest)
    assert "tool f, result of call 1" in made[0].messages[-1]["content"]


def test_where_only_others_speak_there_is_nothing_to_judge() -> None:
    said = JUDGE.render(turns({"role": "user", "content": "Hello?"}))
    assert isinstance(said, Verdict)
    assert said.status is Status.EMPTY


CYCLE: dict[str, Any] = {}
CYCLE["itself"] = CYCLE


@pytest.mark.parametrize(
    ("field", "sample"),
    [
        ("response", turns({"role": "assistant", "content": [{"type": "text", "text": 5}]})),
        ("response", turns({"role": "assistant", "content": b"bytes"})),
        ("response", turns({"role": "assistant", "content": NAN})),
        ("response", turns({"role": "assistant", "tool_calls": "f()"})),
        (
            "response",
            turns({"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": CYCLE}}]}),
        ),
        ("tools", Sample("p", "r", tools="search")),  # type: ignore[arg-type]
        ("tools", Sample("p", "r", tools=[CYCLE])),
        ("reference_images", Sample("p", "r", "x", extra={"reference_images": 5})),
        ("reference_images", Sample("p", "r", "x", extra={"reference_images": ["/etc/passwd"]})),
    ],
)
def test_what_cannot_be_shown_is_named(field: str, sample: Sample) -> None:
    with pytest.raises(ConfigError, check=about(field)):
        JUDGE.render(sample)


def test_an_empty_reference_is_none() -> None:
    assert JUDGE.render(Sample("p", "r", "")) == JUDGE.render(Sample("p", "r"))
