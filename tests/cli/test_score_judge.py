"""--judge, --rubric and --scale: which judge they make, and what a mistake in them is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from complaints import about
from simulated_judge import Simulator

from plaudit.cli import app
from plaudit.errors import ConfigError
from plaudit.judges.base import Judge, Panel
from plaudit.judges.expected import Expected
from plaudit.judges.likelihood import Likelihood
from plaudit.judges.rubric import Rubric
from plaudit.judges.yes import Yes
from plaudit.settings import load, resolve
from plaudit.setup.judges import CRITERIA, judge_of


def judge(*, is_embedded: bool = False, **arguments: Any) -> Judge | Panel:
    return judge_of(resolve(arguments, environment={}, table={}), is_embedded=is_embedded)


def test_nothing_said_gives_a_rubric_with_criteria_of_our_own() -> None:
    assert judge() == Rubric(CRITERIA)


def test_rubric_and_scale_are_taken_as_given() -> None:
    assert judge(rubric="Is it brief?", scale=(0, 5)) == Rubric("Is it brief?", (0, 5))


def test_a_scale_with_broken_ends_allows_broken_scores() -> None:
    assert judge(rubric="Is it brief?", scale=(0, 0.5)) == Rubric("Is it brief?", (0, 0.5), integer=False)


def test_a_scale_fits_a_judge_that_takes_whole_numbers_only() -> None:
    assert judge(judge="expected", scale=(1.0, 3.0)) == Expected(CRITERIA, (1, 3))


def test_a_rubric_may_be_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "rubric.md"
    path.write_text("Is it kind?")
    assert judge(rubric=str(path)) == Rubric("Is it kind?")


def test_the_embedded_model_judges_by_likelihood_and_with_criteria_by_yes_or_no() -> None:
    assert judge(is_embedded=True) == Likelihood()
    assert judge(is_embedded=True, rubric="Is it kind?", scale=(0, 5)) == Yes(
        "Is it kind?", (0, 5), min_mass=0.05
    )
    assert judge(is_embedded=True, judge="rubric") == Rubric(CRITERIA)
    assert judge(judge="yes") == Yes()


def test_a_judge_file_describes_everything(tmp_path: Path) -> None:
    path = tmp_path / "judge.toml"
    path.write_text(
        'criteria = "Is it right?"\nscale = [0, 10]\nmax_tokens = 64\n'
        'anchors = { "0" = "wrong", "10" = "right" }\n'
    )
    anchors = {0.0: "wrong", 10.0: "right"}
    assert judge(judge=str(path)) == Rubric("Is it right?", (0, 10), anchors=anchors, max_tokens=64)
    assert judge(judge=str(path), rubric="Is it new?") == Rubric(
        "Is it new?", (0, 10), anchors=anchors, max_tokens=64
    )
    path.write_text('kind = "yes"\nmin_mass = 0.5\n')
    assert judge(judge=str(path)) == Yes(min_mass=0.5)


@pytest.mark.parametrize(
    ("content", "setting"),
    [
        ("criteria = Is it right?", "judge"),
        ('kind = "oracle"', "kind"),
        ('critera = "x"', "critera"),
        ("scale = [10, 0]", "scale"),
        ("", "criteria"),
        ("# Is it right?", "criteria"),
    ],
)
def test_a_mistake_in_a_judge_file_is_named(tmp_path: Path, content: str, setting: str) -> None:
    path = tmp_path / "judge.toml"
    path.write_text(content)
    with pytest.raises(ConfigError, check=about(setting, str(path))):
        judge(judge=str(path))


def test_an_unknown_name_or_a_missing_file_is_named() -> None:
    with pytest.raises(ConfigError, check=about("judge", "rubrik", "did you mean rubric?")):
        judge(judge="rubrik")
    with pytest.raises(ConfigError, check=about("rubric", "rules.txt")):
        judge(rubric="rules.txt")


@pytest.mark.parametrize("letters", [255, 256, 1000, 5000])
def test_a_rubric_of_any_length_is_taken_for_the_text_that_it_is(letters: int, tmp_path: Path) -> None:
    text = "Is it right? ~" + "x" * letters
    assert judge(rubric=text) == Rubric(text)
    (tmp_path / "plaudit.toml").write_text(f'rubric = "{text}"')
    assert judge_of(load({}, folder=tmp_path)) == Rubric(text)


@pytest.mark.parametrize("name", ["~nobody-of-this-name/judge.toml", "x" * 300, "a\0b"])
def test_the_name_of_a_judge_that_can_be_no_file_is_said_as_any_other(name: str) -> None:
    with pytest.raises(ConfigError, check=about("judge", "neither a judge nor a file")):
        judge(judge=name)


def test_a_rubric_that_begins_with_a_tilde_is_no_home() -> None:
    assert judge(rubric="~100 words at most?") == Rubric("~100 words at most?")


@pytest.mark.parametrize("kind", ["rubric", "yes"])
def test_a_rubric_without_words_is_named_by_its_option(kind: str) -> None:
    with pytest.raises(ConfigError, check=about("rubric", "contains no words")):
        judge(judge=kind, rubric=" ... ")


def test_lines_without_a_reference_are_named_before_the_first_call(
    tmp_path: Path, simulator: Simulator
) -> None:
    source, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text(
        '{"prompt": "6 x 7?", "response": "42", "reference": 42}\n{"prompt": "6 x 8?", "response": "48"}\n'
    )
    arguments = [str(part) for part in ("score", source, "-o", out, "--base-url", simulator.url)]
    result = CliRunner().invoke(app, [*arguments, "--judge", "reference"])
    assert result.exit_code == 2
    assert "line 2: reference=None is not a right answer to compare with; give every row one" in result.output
    assert simulator.server.stats.requests == 0
    result = CliRunner().invoke(app, [*arguments, "--judge", "reference", "--skip-bad"])
    assert result.exit_code == 0, result.output
    assert [json.loads(line)["score"] in (0.0, 1.0) for line in out.read_text().splitlines()] == [True]


def test_a_panel_may_judge_a_file(tmp_path: Path, simulator: Simulator) -> None:
    source, out, judge = tmp_path / "in.jsonl", tmp_path / "out.jsonl", tmp_path / "judge.toml"
    source.write_text('{"prompt": "6 x 7?", "response": "42"}\n')
    judge.write_text(
        'kind = "checklist"\ncalls = "each"\n[[criteria]]\nname = "right"\ntext = "It is right."\n'
    )
    arguments = ("score", source, "-o", out, "--base-url", simulator.url, "--judge", judge)
    result = CliRunner().invoke(app, [str(part) for part in arguments])
    assert result.exit_code == 0, result.output
    scored = json.loads(out.read_text())
    assert scored["status"] == "ok"
    assert scored["judge"]["parts"] == {"right": scored["score"]}
