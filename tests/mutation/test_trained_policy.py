"""A trained policy applied to questions: what it gains, and what it refuses."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from complaints import about

pytestmark = pytest.mark.trainers

from click.testing import CliRunner  # noqa: E402
from loopback import loopback  # noqa: E402
from simulated_mutation import SimulatedMutation  # noqa: E402

from plaudit.cli import app  # noqa: E402
from plaudit.errors import ConfigError  # noqa: E402
from plaudit.mutation.mutation_trainer import train  # noqa: E402
from plaudit.mutation.trained_policy import apply_policy, load_policy, trained_rules  # noqa: E402
from plaudit.mutation.training import Training  # noqa: E402

SMALL = Training(num_processes=4, num_steps=8, num_env_steps=64, num_mini_batch=2, seed=3)


def test_every_question_gets_a_query_that_is_at_least_as_good(tmp_path: Path) -> None:
    with SimulatedMutation() as practice:
        train(practice.task, SMALL, tmp_path)
        task = replace(practice.task, questions=practice.task.questions[:20], rules=trained_rules(tmp_path))
        found = apply_policy(task, load_policy(task, tmp_path))
    assert [one.question for one in found] == [item.question for item in task.questions]
    for one in found:
        assert one.quality is not None and one.quality_before is not None
        assert one.quality >= one.quality_before


def test_a_policy_wants_the_operators_it_was_trained_with(tmp_path: Path) -> None:
    with SimulatedMutation() as practice:
        train(practice.task, SMALL, tmp_path)
        other = replace(practice.task, operators=practice.task.operators[:-1])
        with pytest.raises(ConfigError, check=about("", "operators=")):
            load_policy(other, tmp_path)


def test_a_folder_without_a_training_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, check=about("", str(tmp_path))):
        trained_rules(tmp_path)


def test_the_command_writes_a_line_for_each_question(tmp_path: Path) -> None:
    source, out, folder = tmp_path / "questions.jsonl", tmp_path / "out.jsonl", tmp_path / "mutator"
    source.write_text('{"question": "What is 2 + 2?", "reference": "4"}\n')
    with loopback() as server:
        models = ["--servers", server.url, "--model", "simulated"]
        small = ["--num-processes", "2", "--num-steps", "4", "--num-env-steps", "8", "--num-mini-batch", "2"]
        trained = CliRunner().invoke(app, ["train-mutator", "-o", str(folder), *models, *small])
        assert trained.exit_code == 0, trained.output
        done = CliRunner().invoke(app, ["mutate", str(folder), str(source), "-o", str(out), *models])
    assert done.exit_code == 0, done.output
    [line] = [json.loads(text) for text in out.read_text().splitlines()]
    assert line["question"] == "What is 2 + 2?"
    assert line["quality"] >= line["quality_before"]
    assert "of 1 questions rewritten" in done.stderr
