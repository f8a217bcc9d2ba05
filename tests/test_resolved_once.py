"""Settings are resolved once for each run, where it begins; what receives the result reads nothing again."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from loopback import JUDGE, Loopback, loopback, samples

import plaudit.settings
from plaudit import AsyncOpenAIManager, Engine, compute_score
from plaudit.cli import app
from plaudit.integrations.scored import Scored, sample_of
from plaudit.integrations.trl import reward_function
from plaudit.integrations.verl import LengthPenaltyConfig, LengthPenaltyRewardManager
from plaudit.integrations.verl.reward_engine import open_reward_engine, resolve
from plaudit.integrations.verl.reward_settings import read_settings
from plaudit.scoring import Scoring
from plaudit.settings import Settings, load


@pytest.fixture
def resolutions(monkeypatch: pytest.MonkeyPatch) -> list[Settings]:
    """Every resolution of settings in this process, from now on."""
    found: list[Settings] = []
    really = plaudit.settings.resolve

    def counted(*arguments: Any, **options: Any) -> Settings:
        found.append(really(*arguments, **options))
        return found[-1]

    monkeypatch.setattr(plaudit.settings, "resolve", counted)
    return found


@pytest.fixture
def server() -> Iterator[Loopback]:
    with loopback() as server:
        yield server


def test_for_the_command_line(server: Loopback, resolutions: list[Settings], tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text('{"prompt": "1 + 1?", "response": "2"}\n', encoding="utf-8")
    arguments = ["score", str(source), "-o", str(tmp_path / "out.jsonl"), "--base-url", server.url, "--quiet"]
    assert CliRunner().invoke(app, arguments).exit_code == 0
    assert len(resolutions) == 1


def test_for_a_comparison_of_two_models(
    server: Loopback, resolutions: list[Settings], tmp_path: Path
) -> None:
    pairs = tmp_path / "pairs.jsonl"
    pairs.write_text('{"prompt": "1 + 1?", "chosen": "2", "rejected": "3"}\n', encoding="utf-8")
    arguments = ["audit", "compare", str(pairs), "--model", "small", "--model", "large", "--quiet"]
    ran = CliRunner().invoke(app, [*arguments, "--base-url", server.url])
    assert ran.exit_code == 0, ran.output
    assert len(resolutions) == 1


def test_for_an_engine(server: Loopback, resolutions: list[Settings]) -> None:
    with Engine(server.url, model="m", cache=None) as engine:
        engine.score(samples(3), JUDGE)
        engine.score(samples(3), JUDGE)
    assert len(resolutions) == 1


def test_for_the_manager_of_openai_names(server: Loopback, resolutions: list[Settings]) -> None:
    with AsyncOpenAIManager(api_endpoint=server.url, cache=None) as manager:
        manager.get_results(manager.submit(samples(3), JUDGE))
    assert len(resolutions) == 1


def test_for_compute_score_over_many_calls(
    server: Loopback, resolutions: list[Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    monkeypatch.setenv("TRAIN_WITH_MONITOR", "true")
    for number in range(3):
        compute_score(f"{number}", "2", "other", {"question": "1 + 1?"})
    assert len(resolutions) == 1


def test_for_scoring_by_settings(server: Loopback, resolutions: list[Settings]) -> None:
    scoring = Scoring(load({"base_url": (server.url,)}))
    scoring.rewards([sample_of("1 + 1?", "2")], on_failure="mask", max_failure_rate=None)
    assert len(resolutions) == 1


@pytest.mark.parametrize("judge", [None, JUDGE])
def test_for_the_adapters(server: Loopback, resolutions: list[Settings], judge: Any) -> None:
    scored = Scored(judge, url=server.url, model="m", cache=None)
    scored.rewards([sample_of("1 + 1?", "2")])
    assert len(resolutions) == 1


def test_for_trl(server: Loopback, resolutions: list[Settings]) -> None:
    rewards = reward_function(JUDGE, url=server.url, model="m", cache=None)
    asyncio.run(rewards(["1 + 1?", "1 + 1?"], ["2", "3"]))
    assert len(resolutions) == 1


def test_for_verl(server: Loopback, resolutions: list[Settings]) -> None:
    settings = read_settings({"base_url": server.url, "cache": "off"})
    engine = open_reward_engine(settings, resolve(settings))
    asyncio.run(engine.ascore(samples(3), JUDGE, deadline=30.0))
    engine.close()
    assert len(resolutions) == 1


def test_for_the_managers_of_old_verl(server: Loopback, resolutions: list[Settings]) -> None:
    config = LengthPenaltyConfig(api_endpoint=server.url, rubric="Is it right?", enable_rule=False)
    manager = LengthPenaltyRewardManager(tokenizer=None, num_examine=0, length_penalty_config=config)
    manager.start_workers()
    manager.shutdown_workers()
    manager.start_workers()
    manager.shutdown_workers()
    assert len(resolutions) == 1


def test_an_adapter_that_comes_from_another_process_reads_nothing(
    server: Loopback, resolutions: list[Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = pickle.dumps(
        [
            Scored(JUDGE, url=server.url, model="m", cache=None),
            reward_function(JUDGE, url=server.url, model="m", cache=None),
        ]
    )
    resolutions.clear()
    monkeypatch.setenv("PLAUDIT_MODEL", "another")
    monkeypatch.setenv("PLAUDIT_RPM", "not even a number")
    scored, rewards = pickle.loads(packed)
    assert scored.rewards([sample_of("1 + 1?", "2")])[0].valid
    assert asyncio.run(rewards(["1 + 1?", "1 + 1?"], ["2", "3"]))[0] is not None
    assert resolutions == []
