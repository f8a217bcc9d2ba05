"""Judge files of other tools: what is taken over, what is said about the rest, and what is refused."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest
from complaints import about

from plaudit import Checklist, ConfigError, Rubric, SplitChecklist
from plaudit.config import Sampling
from plaudit.judges.file import load_judge, read_judge
from plaudit.judges.foreign import translate

SCORE_MODEL = {
    "type": "score_model",
    "name": "helpful",
    "model": "o4-mini",
    "range": [1, 7],
    "sampling_params": {"temperature": 1, "max_completions_tokens": 2048},
    "input": [
        {"role": "system", "content": "How helpful is {{sample.output_text}} to somebody who asked?"},
        {
            "role": "user",
            "content": [{"type": "input_text", "text": "Question: {{item.question}}\n\nBe strict."}],
        },
    ],
}
LABEL_MODEL = {
    "type": "label_model",
    "labels": ["rude", "neutral", "kind"],
    "passing_labels": ["kind", "neutral"],
    "input": [{"role": "user", "content": "Label the tone of the answer.\n\nAnswer: {{sample.output_text}}"}],
}
VERIFIERS = """
[[criteria]]
name = "cites"
text = "It cites a source."
weight = 2.0

[[criteria]]
name = "clear style"
text = "How clear is it?"
choices = ["muddled", "readable", "clear"]
"""
REWARDKIT = """
[judge]
judge = "anthropic/claude-sonnet"
mode = "individual"
files = ["/app/main.py"]

[[criterion]]
description = "Does it compile?"
type = "binary"

[[criterion]]
description = "How readable is it?"
type = "likert"
points = 5
weight = 2.0

[[criterion]]
description = "How much is tested?"
type = "numeric"
min = 0
max = 100
"""
AUTOEVALS = """
prompt: |-
  Compare a translation with one by an expert. The data:
  [BEGIN DATA]
  ***
  [Text]: {{{input}}}
  ***
  [Expert]: {{{expected}}}
  ***
  [Translation]: {{{output}}}
  ***
  [END DATA]
  A translation may be free. Ignore punctuation. Choose one:
  (A) It says the same as {{{expected}}}.
  (B) It leaves something out.
  (C) It says something else.
  (D) It says the same in other words.
choice_scores:
  A: 1
  B: 0.4
  C: 0
  D: 1
"""


def written(folder: Path, name: str, content: object) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else msgspec.json.encode(content))
    return path


def test_a_score_model_becomes_a_rubric_on_its_range(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    judge = load_judge(written(tmp_path, "grader.json", SCORE_MODEL))
    assert isinstance(judge, Rubric)
    assert judge.criteria == "How helpful is the response to somebody who asked?\n\nBe strict."
    assert (judge.scale, judge.integer, judge.max_tokens) == ((1, 7), True, 2048)
    assert judge.sampling == Sampling(temperature=1)
    assert "o4-mini" in caplog.text and "temperature" not in caplog.text


def test_a_score_model_without_a_range_gives_shares() -> None:
    found = translate({name: value for name, value in SCORE_MODEL.items() if name != "range"})
    assert found is not None
    assert (found.options["scale"], found.options["integer"]) == ([0, 1], False)


def test_the_labels_that_pass_are_worth_one(tmp_path: Path) -> None:
    judge = load_judge(written(tmp_path, "grader.json", LABEL_MODEL))
    assert isinstance(judge, Rubric)
    assert judge.criteria == "Label the tone of the answer."
    assert judge.anchors == {0: "the label is 'rude'", 1: "the label is 'kind' or 'neutral'"}
    assert judge.scale == (0, 1)


@pytest.mark.parametrize("name", ["criteria.toml", "criteria.json"])
def test_criteria_with_choices_become_a_checklist_with_levels(tmp_path: Path, name: str) -> None:
    content = VERIFIERS if name.endswith("toml") else tomllib.loads(VERIFIERS)["criteria"]
    judge = load_judge(written(tmp_path, name, content))
    assert isinstance(judge, Checklist) and judge.criteria is not None
    cites, style = judge.criteria
    assert (cites.name, cites.weight, cites.levels) == ("cites", 2.0, 1)
    assert (style.name, style.weight, style.levels) == ("clear_style", 1.0, 2)
    assert "2 is 'clear'" in style.text


def test_rewardkits_criteria_become_a_checklist(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    judge = load_judge(written(tmp_path, "quality.toml", REWARDKIT))
    assert isinstance(judge, SplitChecklist) and judge.criteria is not None
    assert [(one.name, one.weight, one.levels) for one in judge.criteria] == [
        ("c1", 1.0, 1),
        ("c2", 2.0, 4),
        ("c3", 1.0, 10),
    ]
    assert "10 for 100" in judge.criteria[2].text
    assert "claude-sonnet" in caplog.text and "/app/main.py" in caplog.text


def test_choices_with_scores_become_anchors(tmp_path: Path) -> None:
    pytest.importorskip("yaml")
    judge = load_judge(written(tmp_path, "translation.yaml", AUTOEVALS))
    assert isinstance(judge, Rubric)
    assert judge.criteria == (
        "Compare a translation with one by an expert. The data:\n"
        "A translation may be free. Ignore punctuation. Choose one:"
    )
    assert judge.anchors is not None
    assert judge.anchors[0.4] == "It leaves something out."
    assert judge.anchors[1.0].endswith("Or: It says the same in other words.")
    assert "{{" not in "".join(judge.anchors.values())
    assert (judge.scale, judge.integer) == ((0.0, 1.0), False)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("score.json", SCORE_MODEL),
        ("label.json", LABEL_MODEL),
        ("criteria.toml", VERIFIERS),
        ("kit.toml", REWARDKIT),
    ],
)
def test_what_is_read_can_be_written_as_a_judge_file_of_ours(
    tmp_path: Path, name: str, content: object
) -> None:
    path = written(tmp_path, name, content)
    ours = written(tmp_path, "ours.toml", read_judge(path).toml())
    assert load_judge(ours) == load_judge(path)
    assert "kind" in tomllib.loads(ours.read_text())


@pytest.mark.parametrize(
    "text", ["plain", "two\nlines", "it's '''quoted'''\nhere", 'a "b" \\ c\x7f', "ends with a quote\n'"]
)
def test_any_text_survives_being_written(tmp_path: Path, text: str) -> None:
    foreign = {"type": "score_model", "input": [{"role": "user", "content": text}]}
    found = read_judge(written(tmp_path, "grader.json", foreign))
    assert tomllib.loads(found.toml())["criteria"] == text


@pytest.mark.parametrize(
    ("table", "word"),
    [
        ({"type": "multi", "graders": {"a": {}, "b": {}}, "calculate_output": "a + b"}, "a, b"),
        ({"type": "string_check", "input": "x", "operation": "eq"}, "string_check"),
        ({"type": "python", "source": "def grade(): ..."}, "python"),
        ({**LABEL_MODEL, "passing_labels": []}, "passing_labels"),
        ({**SCORE_MODEL, "input": [{"role": "user", "content": "See {{item.context}}."}]}, "item.context"),
        (
            {**SCORE_MODEL, "input": [{"role": "user", "content": "Context: {{item.context}}"}]},
            "item.context",
        ),
        ({**SCORE_MODEL, "input": [{"role": "user", "content": "{{sample.output_text}}"}]}, "nothing but"),
        ({**SCORE_MODEL, "input": [{"role": "user", "content": [{"type": "input_image"}]}]}, "text"),
        ({"judge": {}, "scoring": {"aggregation": "all-pass"}, "criterion": []}, "all-pass"),
        ({"judge": {}, "criterion": [{"description": "x", "negate": True}]}, "negate"),
        ({"judge": {}, "criterion": [{"description": "x", "type": "stars"}]}, "stars"),
        ({"prompt": "Is it good?", "choice_scores": {"Y": 1, "N": 1}}, "choice_scores"),
    ],
)
def test_what_cannot_be_taken_over_is_refused_with_the_reason(table: dict[str, Any], word: str) -> None:
    with pytest.raises(ConfigError, check=about("", word)):
        translate(table)


def test_our_own_files_are_none_of_theirs() -> None:
    assert translate({"kind": "checklist", "criteria": [{"name": "a", "text": "b"}]}) is None
    assert translate({"criteria": "Is it right?", "scale": [0, 10]}) is None
    assert translate("text") is None


GRADER = {"type": "score_model", "input": [{"role": "user", "content": "Is it ok?"}]}
KIT = {"judge": {}, "criterion": [{"description": "It is right."}]}
CHOICES = {"prompt": "Which?", "choice_scores": {"A": 1, "B": 0}}


@pytest.mark.parametrize(
    ("table", "named"),
    [
        (GRADER | {"range": [0]}, "range"),
        (GRADER | {"range": [0, "x"]}, "range"),
        (GRADER | {"sampling_params": 5}, "sampling_params"),
        (GRADER | {"type": "label_model", "labels": 5}, "labels"),
        (GRADER | {"type": "label_model", "labels": ["A", ["B"]]}, "labels"),
        (KIT | {"scoring": [1]}, "scoring"),
        (KIT | {"criterion": [1]}, "criterion[0]"),
        (KIT | {"criterion": [{"type": "likert", "points": "x"}]}, "criterion[0].points"),
        (KIT | {"criterion": [{"type": "numeric", "max": 10**400}]}, "criterion[0].max"),
        (CHOICES | {"choice_scores": {"A": "good", "B": 0}}, "choice_scores.A"),
        ({"criteria": [{"text": "It is right.", "choices": 5}]}, "criteria[0].choices"),
    ],
)
def test_a_value_of_another_type_is_named(table: dict[str, object], named: str) -> None:
    with pytest.raises(ConfigError) as error:
        translate(table)
    assert str(error.value).startswith(f"{named} is ")
