"""`plaudit report`: the page of a scored file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from simulated_judge import Simulator

from plaudit.cli import app
from plaudit.cli.report import read_scored


def plaudit(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


def scored_line(number: int, score: float | None, **judge: object) -> str:
    status = "ok" if score is not None else "failed"
    facts = {
        "model": "m",
        "source": "call",
        "usage": {"prompt_tokens": 10, "completion_tokens": 2, "cost": 0.5},
    }
    row = {"prompt": "p", "response": f"answer <{number}>", "score": score, "status": status}
    return json.dumps({**row, "reason": f"because {number}", "judge": {**facts, **judge}}) + "\n"


def test_a_page_shows_the_spread_the_extremes_and_the_cost(tmp_path: Path) -> None:
    source = tmp_path / "scored.jsonl"
    lines = [scored_line(number, number % 11) for number in range(22)]
    source.write_text("".join([*lines, scored_line(99, None, cause="timed_out")]))
    result = plaudit("report", source)
    assert result.exit_code == 0, result.output
    page = (tmp_path / "scored.html").read_text()
    for words in ("22 of 23 lines have a score", "$11.5000", "because 10", "timed_out", "answer &lt;0&gt;"):
        assert words in page
    assert "<script" not in page


def test_every_format_that_score_writes_can_be_reported(simulator: Simulator, tmp_path: Path) -> None:
    source = tmp_path / "in.csv"
    source.write_text("question,answer\n1+1?,2\n2+2?,5\n")
    for name in ("out.csv", "out.jsonl", "out.json", "out.parquet"):
        assert plaudit("score", source, "-o", tmp_path / name, "--base-url", simulator.url).exit_code == 0
        found = read_scored(str(tmp_path / name))
        assert (found.lines, len(found.digest.scores)) == (2, 2)
        assert {one.response for one in found.digest.worst} == {"2", "5"}


@pytest.mark.parametrize(
    ("text", "words"),
    [('{"prompt": "p", "response": "r"}\n', "plaudit score"), ("", "no lines"), ("nonsense\n", "not JSON")],
)
def test_what_was_not_scored_is_named(tmp_path: Path, text: str, words: str) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text(text)
    result = plaudit("report", source)
    assert result.exit_code == 2
    assert words in result.stderr


def test_a_page_never_takes_the_place_of_the_file_it_is_about(tmp_path: Path) -> None:
    source = tmp_path / "scored.jsonl"
    source.write_text(before := scored_line(1, 3.0))
    result = plaudit("report", source, "-o", source)
    assert result.exit_code == 2
    assert "would overwrite the input" in result.stderr
    assert source.read_text() == before


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("score", "good"),
        ("score", True),
        ("score", float("inf")),
        ("judge", "gpt-4"),
        ("judge", [1]),
        ("judge", {"usage": 5}),
        ("status", {}),
    ],
)
def test_a_file_that_others_have_scored_is_named_with_its_line_and_field(
    tmp_path: Path, field: str, value: object
) -> None:
    source = tmp_path / "scored.jsonl"
    row = json.loads(scored_line(1, 5.0))
    source.write_text(scored_line(0, 5.0) + json.dumps(row | {field: value}) + "\n")
    result = plaudit("report", source)
    assert result.exit_code == 2
    assert f"{source}, line 2: {field!r} is not as plaudit score writes it" in result.output
