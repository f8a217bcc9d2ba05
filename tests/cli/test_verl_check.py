"""`plaudit doctor --verl`: a configuration that would fail in training fails here, without verl or a GPU."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from simulated_judge import Simulator

from plaudit.cli import app

GOOD = """
data: {{train_batch_size: 64}}
actor_rollout_ref: {{rollout: {{n: 8}}}}
reward:
  num_workers: 8
  reward_manager: {{name: plaudit}}
  plaudit: {{base_url: "{url}", rubric: "Is it right?"}}
"""


def doctor(path: Path, text: str, url: str = "http://127.0.0.1:9/v1") -> Result:
    path.write_text(text.format(url=url))
    return CliRunner().invoke(app, ["doctor", "--verl", str(path)])


def test_a_good_configuration_is_well(tmp_path: Path, simulator: Simulator) -> None:
    result = doctor(tmp_path / "c.yaml", GOOD, simulator.url)
    assert result.exit_code == 0, result.output
    assert "8 responses to a prompt" in result.stdout
    assert simulator.url in result.stdout
    assert "everything is fine" in result.stdout


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("rubric:", "rubrik:", "did you mean reward.plaudit.rubric?"),
        ("name: plaudit", "name: naive", "reward.reward_manager.name=plaudit"),
        ("num_workers: 8", "num_workers: 0", "everything is fine"),
        ("train_batch_size: 64", "train_batch_size: 2048", "reward.num_workers=19"),
        ('rubric: "Is it right?"', "budget: 5.0", "reward.plaudit.price"),
        ('rubric: "Is it right?"', "rpm: none", "reward.plaudit.rpm='none'"),
        ("plaudit: {{base_url", "other: {{base_url", "reward.plaudit.base_url=http://host:8000/v1"),
    ],
)
def test_what_would_stop_or_spoil_the_training_is_named(
    tmp_path: Path, simulator: Simulator, before: str, after: str, words: str
) -> None:
    assert before in GOOD
    result = doctor(tmp_path / "c.yaml", GOOD.replace(before, after), simulator.url)
    assert words in result.stdout


def test_a_judge_that_compares_needs_several_responses(tmp_path: Path, simulator: Simulator) -> None:
    text = GOOD.replace("n: 8", "n: 1").replace('rubric: "Is it right?"', "judge: group")
    result = doctor(tmp_path / "c.yaml", text, simulator.url)
    assert result.exit_code == 1
    assert "actor_rollout_ref.rollout.n=8" in result.stdout


@pytest.mark.parametrize(
    ("text", "words"),
    [("a: [", "as YAML"), *((text, "has no section reward") for text in ("a: 1", "[1]"))],
)
def test_a_file_that_is_no_configuration_is_named(tmp_path: Path, text: str, words: str) -> None:
    result = doctor(tmp_path / "c.yaml", text)
    assert result.exit_code == 1
    assert words in result.stdout
