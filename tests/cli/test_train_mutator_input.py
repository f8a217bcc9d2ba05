"""What `plaudit train-mutator` says of bad input, before it asks anybody or loads anything heavy."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from plaudit.cli import app


def refused(*words: str) -> str:
    done = CliRunner().invoke(app, ["train-mutator", *words])
    assert done.exit_code == 2, done.output
    return done.stderr


def test_more_mini_batches_than_samples() -> None:
    said = refused("--num-processes", "2", "--num-steps", "4", "--num-mini-batch", "16")
    assert "--num-mini-batch 16 is more than 8 samples can fill" in said


def test_an_empty_question_file(tmp_path: Path) -> None:
    empty = tmp_path / "questions.jsonl"
    empty.write_text("\n")
    assert "contains no question; write one JSON object per line" in refused("--questions", str(empty))


def test_an_operator_without_instruction(tmp_path: Path) -> None:
    file = tmp_path / "operators.toml"
    file.write_text('[[operators]]\nname = "mute"\ninstruction = " "\n')
    assert "instruction of the operator 'mute'" in refused("--operators", str(file))


def test_flags_that_exclude_each_other() -> None:
    assert "leave one out" in refused("--no-batching", "--no-barrier")


@pytest.mark.parametrize(
    ("flag", "value"), [("--max-steps", "0"), ("--drift-weight", "-1"), ("--lr", "0"), ("--gamma", "2")]
)
def test_numbers_that_make_no_sense(flag: str, value: str) -> None:
    assert flag.lstrip("-").replace("-", "_") in refused(flag, value).replace("-", "_")


def test_the_help_shows_every_flag_of_the_trainer() -> None:
    shown = CliRunner().invoke(app, ["train-mutator", "--help"], env={"COLUMNS": "200"}).output
    for flag in ("--num-processes", "--num-steps", "--ppo-epoch", "--num-mini-batch", "--num-env-steps"):
        assert flag in shown
    for flag in ("--use-batching", "--no-batching", "--no-barrier", "--servers", "--seed", "--resume"):
        assert flag in shown
