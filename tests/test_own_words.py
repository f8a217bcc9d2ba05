"""A mistake is named in the user's own words: the flag, the key, the argument or the variable."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from plaudit import AsyncOpenAIManager, Engine, Rubric, compute_score, connect
from plaudit.cli import app
from plaudit.errors import ConfigError
from plaudit.integrations.scored import Scored, sample_of
from plaudit.integrations.trl import reward_function
from plaudit.integrations.verl import LengthPenaltyConfig, LengthPenaltyRewardManager
from plaudit.integrations.verl.reward_settings import read_settings
from plaudit.mutation import Rules
from plaudit.service.rewards import read_judge

URL = "http://127.0.0.1:9/v1"
JUDGE = Rubric("Is it right?")


def legacy_manager(**table: Any) -> LengthPenaltyRewardManager:
    return LengthPenaltyRewardManager(None, length_penalty_config={"enable_rule": False, **table})


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("mistake", "words"),
    [
        pytest.param(lambda: Engine(URL, model="m", rpm=0), "rpm=0", id="Engine"),
        pytest.param(lambda: Engine("host:8000", model="m"), "url='host:8000'", id="Engine's URL"),
        pytest.param(lambda: connect("host:8400"), "url='host:8400'", id="connect"),
        pytest.param(lambda: Scored(JUDGE, url=URL, model="m", rpm=0), "rpm=0", id="adapters"),
        pytest.param(lambda: Scored(max_failure_rate=-1), "max_failure_rate=-1", id="adapters' own"),
        pytest.param(lambda: reward_function(JUDGE, url=URL, model="m", rpm=0), "rpm=0", id="TRL"),
        pytest.param(
            lambda: reward_function(JUDGE, url=URL, model="m", max_failure_rate=-1),
            "max_failure_rate=-1",
            id="TRL's own",
        ),
        pytest.param(
            lambda: read_settings({"base_url": URL, "rpm": 0}), "reward.plaudit.rpm=0", id="reward loop"
        ),
        pytest.param(
            lambda: legacy_manager(api_endpoint="host:8000"), "api_endpoint='host:8000'", id="old managers"
        ),
        pytest.param(
            lambda: LengthPenaltyConfig(max_concurrent_requests=0),
            "max_concurrent_requests=0",
            id="old managers' config",
        ),
        pytest.param(
            lambda: AsyncOpenAIManager(api_endpoint="host:8000"),
            "api_endpoint='host:8000'",
            id="manager's URL",
        ),
        pytest.param(
            lambda: AsyncOpenAIManager(api_endpoint=URL, max_concurrent_requests=0),
            "max_concurrent_requests=0",
            id="manager",
        ),
        pytest.param(
            lambda: compute_score("a", "b", "other", {"question": "?"}, max_failure_rate=-1),
            "max_failure_rate=-1",
            id="compute_score",
        ),
        pytest.param(
            lambda: read_judge({"kind": "rubric", "criteria": "Right?", "scale": [10, 0]}, JUDGE),
            "judge.scale=(10.0, 0.0)",
            id="the HTTP service",
        ),
        pytest.param(
            lambda: read_judge("rubrik", JUDGE), "judge='rubrik'", id="the HTTP service's judge by name"
        ),
        pytest.param(lambda: Rules(max_steps=0), "max_steps=0", id="query mutation"),
    ],
)
def test_an_argument_or_a_key(mistake: Callable[[], object], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        mistake()
    assert str(caught.value).startswith(f"{words} ")


VARIABLE_READERS: dict[str, Callable[[], object]] = {
    "Engine": lambda: Engine(URL, model="m"),
    "compute_score": lambda: compute_score("a", "b", "other", {"question": "?"}),
    "adapters": lambda: Scored().rewards([sample_of("?", "a")]),
    "TRL": lambda: asyncio.run(reward_function(JUDGE, url=URL, model="m")(["?"], ["a"])),
    "old managers": lambda: legacy_manager(api_endpoint=URL),
    "manager": lambda: AsyncOpenAIManager(api_endpoint=URL),
}


@pytest.mark.parametrize("reader", VARIABLE_READERS)
def test_a_variable(reader: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAUDIT_RPM", "0")
    with pytest.raises(ConfigError) as caught:
        VARIABLE_READERS[reader]()
    assert str(caught.value).startswith("PLAUDIT_RPM='0' ")


def test_a_line_of_the_settings_file(own_folder: Path) -> None:
    (own_folder / "plaudit.toml").write_text("rpm = 0\n")
    with pytest.raises(ConfigError) as caught:
        Engine(URL, model="m")
    assert str(caught.value).startswith(f"{own_folder / 'plaudit.toml'}: rpm=0 ")


@pytest.mark.parametrize(
    "command",
    [
        ["score", "in.jsonl", "-o", "out.jsonl"],
        ["audit", "probe"],
        ["serve"],
        ["rejudge", "journal"],
        ["train-mutator"],
        ["mutate", "folder", "questions.jsonl", "-o", "out.jsonl"],
    ],
    ids=lambda command: command[0],
)
def test_a_flag_of_any_command(command: list[str], own_folder: Path) -> None:
    (own_folder / "in.jsonl").write_text('{"prompt": "1 + 1?", "response": "2"}\n')
    server = "--servers" if command[0] in ("train-mutator", "mutate") else "--base-url"
    ran = CliRunner().invoke(app, [*command, server, URL, "--model", "m", "--rpm", "0"])
    assert ran.exit_code == 2
    assert ran.stderr.startswith("plaudit: --rpm 0 ")
