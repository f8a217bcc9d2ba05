"""`plaudit doctor --trl`: a training that would fail or go wrong is named, without TRL or a GPU."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from complaints import about
from simulated_judge import Simulator

from plaudit.cli import app
from plaudit.cli.trl_check import check_trl
from plaudit.errors import ConfigError

SCRIPT = """
import os
from trl import GRPOConfig, GRPOTrainer
from plaudit import Reference
from plaudit.integrations.trl import overlap, reward_function

URL = "{url}"
reward = reward_function(
    Reference(),
    reference="solution",
    url=URL,
    model="simulated",
)
config = GRPOConfig(output_dir="judged", beta=0.04)
trainer = overlap(GRPOTrainer)(model="m", reward_funcs=reward, args=config)
raise SystemExit("this script is not to be run")
"""


def doctor(path: Path, text: str, url: str) -> Result:
    path.write_text(text.replace("{url}", url))
    return CliRunner().invoke(app, ["doctor", "--trl", str(path)])


def test_a_good_script_is_well(tmp_path: Path, simulator: Simulator) -> None:
    result = doctor(tmp_path / "train.py", SCRIPT, simulator.url)
    assert result.exit_code == 0, result.output
    assert "reward_function in line 8, Reference" in result.stdout
    assert "8 completions for each prompt" in result.stdout
    assert "simulated answers" in result.stdout


@pytest.mark.parametrize(
    ("before", "after", "words", "status"),
    [
        ('reference="solution",', "", "name its column", 1),
        ('reference="solution",', "penality=1,", "did you mean penalty?", 1),
        ("Reference()", "Reference(scale=3)", "line 9:", 1),
        ("Reference()", "Rubric('Is it right?', scale=(9, 1))", "scale", 1),
        ("Reference()", "MyJudge()", "a judge of the script's own", 0),
        ('model="simulated"', 'model="missing"', "missing", 1),
        ('model="simulated"', 'model="simulated", rpm=0', "rpm=0", 1),
        ("url=URL", "url=os.environ['JUDGE']", "url: known only when the script runs", 0),
        ('model="simulated",', "**options", "**options: known only when the script runs", 0),
        ('model="simulated",', "**options", "simulated answers", 0),
        ("url=URL,", "**options,", "**options: known only when the script runs", 0),
        ("reward_funcs=reward", "reward_funcs=[reward, accuracy]", "rules=[...]", 1),
        ("reward_funcs=reward", "reward_funcs=[reward]", "everything is fine", 0),
        (", beta=0.04", "", "beta=0 leaves no log-probs", 0),
        ("overlap(GRPOTrainer)", "GRPOTrainer", "judges during the log-probs", 0),
        (", beta=0.04", ", num_generations=1", "no advantage", 1),
        (", beta=0.04", ", per_device_train_batch_size=6", "no multiple of 8", 0),
        (", beta=0.04", ", num_generations=args.n", "known only at run time", 0),
        ("reward_function(", "other_function(", "has no call of reward_function", 1),
        ("import os", "import", "line 2", 1),
    ],
)
def test_what_would_stop_or_spoil_the_training_is_named(
    tmp_path: Path, simulator: Simulator, before: str, after: str, words: str, status: int
) -> None:
    assert before in SCRIPT
    result = doctor(tmp_path / "train.py", SCRIPT.replace(before, after), simulator.url)
    assert words in result.stdout
    assert result.exit_code == status, result.output


def test_a_judge_that_compares_needs_whole_groups(tmp_path: Path, simulator: Simulator) -> None:
    text = SCRIPT.replace("Reference()", "Group('Is it right?')").replace(
        "beta=0.04", "per_device_train_batch_size=6"
    )
    result = doctor(tmp_path / "train.py", text, simulator.url)
    assert result.exit_code == 1
    assert "compares within a group" in result.stdout


@pytest.mark.parametrize("name", ["config.yaml", "config.json"])
def test_a_configuration_is_checked_with_the_module_it_names(
    tmp_path: Path, simulator: Simulator, name: str
) -> None:
    (tmp_path / "rewards.py").write_text(SCRIPT.replace("{url}", simulator.url))
    config = {"reward_funcs": ["rewards.reward"], "num_generations": 4, "beta": 0.04}
    (tmp_path / name).write_text(json.dumps(config))
    result = CliRunner().invoke(app, ["doctor", "--trl", str(tmp_path / name)])
    assert result.exit_code == 0, result.output
    assert "4 completions for each prompt" in result.stdout


def test_a_file_that_is_not_there_is_named_as_it_was_typed() -> None:
    result = CliRunner().invoke(app, ["doctor", "--trl", "nowhere.py"])
    assert result.exit_code == 1
    assert "--trl nowhere.py cannot be read: No such file" in result.stdout


@pytest.mark.parametrize("functions", ["5", "true", "{a: b}", "[[]]"])
def test_a_configuration_without_the_name_of_a_function_is_said(functions: str, tmp_path: Path) -> None:
    path = tmp_path / "grpo.yaml"
    path.write_text(f"reward_funcs: {functions}")
    with pytest.raises(ConfigError, check=about("trl", "has no call of reward_function")):
        check_trl(path)


def test_a_file_of_another_kind_is_not_taken_for_a_configuration() -> None:
    result = CliRunner().invoke(app, ["doctor", "--trl", "answers.jsonl"])
    assert result.exit_code == 1
    assert "--trl answers.jsonl is neither a Python script nor a YAML or JSON file" in result.stdout


def test_one_training_at_a_time() -> None:
    result = CliRunner().invoke(app, ["doctor", "--trl", "a.py", "--verl", "b.yaml"])
    assert result.exit_code == 2
