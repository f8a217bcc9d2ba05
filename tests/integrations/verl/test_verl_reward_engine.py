"""From reward.plaudit to a judge and an engine, in messages that speak of its keys."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest
from complaints import about
from loopback import JUDGE, loopback, samples

from plaudit import Group, Rubric
from plaudit.config import EngineConfig
from plaudit.errors import BatchFailed, ConfigError
from plaudit.integrations.verl.reward_engine import (
    LocalEngine,
    check_judge_answers,
    config_for,
    judge_for,
    open_reward_engine,
    resolve,
)
from plaudit.integrations.verl.reward_settings import read_settings
from plaudit.types import Cause, Verdict

URL = "http://localhost:9/v1"


def config(**table: Any) -> EngineConfig:
    settings = read_settings(table)
    return config_for(settings, resolve(settings))


def judge(**table: Any) -> Any:
    settings = read_settings(table)
    return judge_for(settings, resolve(settings))


def test_limits_of_the_configuration_reach_the_engine() -> None:
    given = config(base_url=URL, model="m", rpm=60, tpm=9000, max_concurrent=4, timeout=7, cache="memory")
    assert (given.rpm, given.tpm, given.max_concurrent, given.timeout) == (60, 9000, 4, 7.0)
    assert given.cache == "memory"
    (endpoint,) = given.endpoints
    assert (endpoint.url, endpoint.model) == (URL, "m")


@pytest.mark.parametrize("named", ["mine:watch", ["mine:watch"]])
def test_observers_of_the_configuration_reach_the_engine(named: str | list[str]) -> None:
    assert config(base_url=URL, model="m", observers=named).observers == ("mine:watch",)


@pytest.mark.parametrize("off", ["off", False])
def test_the_cache_can_be_turned_off(off: str | bool) -> None:
    assert config(base_url=URL, model="m", cache=off).cache is None


def test_what_the_configuration_leaves_out_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", URL)
    monkeypatch.setenv("PLAUDIT_MODEL", "m")
    monkeypatch.setenv("PLAUDIT_RPM", "30")
    assert config().rpm == 30
    assert config(rpm=60).rpm == 60


def test_several_endpoints_have_settings_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTHER_KEY", "sk-other")
    tables = [{"url": URL, "model": "a"}, {"url": URL, "model": "b", "rpm": 5, "api_key_env": "OTHER_KEY"}]
    first, second = config(endpoints=tables).endpoints
    assert (first.model, first.key) == ("a", None)
    assert (second.model, second.rpm, second.key) == ("b", 5, "sk-other")


@pytest.mark.parametrize(
    ("table", "setting", "words"),
    [
        ({}, "base_url", "reward.plaudit.base_url"),
        ({"base_url": URL, "rpm": 0}, "rpm", "reward.plaudit.rpm=0"),
        (
            {"base_url": "https://api.openai.com/v1", "model": "m"},
            "api_key_env",
            "reward.plaudit.api_key_env",
        ),
        ({"endpoints": [{"url": URL, "api_key_env": "NO_SUCH"}]}, "api_key_env", "export NO_SUCH="),
        ({"endpoints": [{"url": URL}, {"url": URL, "rpm": 0}]}, "rpm", "reward.plaudit.endpoints[1].rpm=0"),
        (
            {"endpoints": [{"url": "judge:8000"}]},
            "url",
            "reward.plaudit.endpoints[0].url='judge:8000' has no",
        ),
        ({"base_url": f"{URL}/chat/completions"}, "base_url", f"reward.plaudit.base_url='{URL}/chat"),
        ({"base_url": URL, "judge": "rubrik"}, "judge", "reward.plaudit.judge='rubrik'"),
        ({"base_url": URL, "judge": {"kind": "rubrik"}}, "kind", "reward.plaudit.judge.kind='rubrik'"),
        ({"base_url": URL, "judge": {"criterion": "x"}}, "criterion", "reward.plaudit.judge.criterion"),
        ({"base_url": URL, "judge": "group", "scale": [5, 1]}, "scale", "reward.plaudit.scale=[5"),
    ],
)
def test_what_is_wrong_is_said_of_the_key(table: dict[str, Any], setting: str, words: str) -> None:
    with pytest.raises(ConfigError, check=about(setting, words)):
        judge(**table)
        config(**table)


def test_an_observer_that_cannot_be_had_is_said_of_the_key_or_of_the_variable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    by_key = read_settings({"base_url": URL, "model": "m", "observers": ["no_such:observer"]})
    with pytest.raises(ConfigError, check=about("observers", "reward.plaudit.observers='no_such:observer'")):
        open_reward_engine(by_key, resolve(by_key))
    monkeypatch.setenv("PLAUDIT_OBSERVERS", "no_such:observer")
    by_variable = read_settings({"base_url": URL, "model": "m"})
    with pytest.raises(ConfigError, check=about("observers", "PLAUDIT_OBSERVERS='no_such:observer'")):
        open_reward_engine(by_variable, resolve(by_variable))


def test_a_judge_is_a_name_a_file_or_a_table(tmp_path: Path) -> None:
    assert judge(rubric="Is it right?", scale=[1, 5]) == Rubric("Is it right?", (1, 5))
    assert judge(judge="group", rubric="Is it right?") == Group("Is it right?")
    assert judge(judge={"kind": "group", "criteria": "Is it right?"}) == Group("Is it right?")
    file = tmp_path / "judge.toml"
    file.write_text('kind = "rubric"\ncriteria = "Is it brief?"\n', encoding="utf-8")
    assert judge(judge=str(file)) == Rubric("Is it brief?")


def test_without_ray_a_process_has_an_engine_of_its_own_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    async def judged(engine: Any) -> tuple[list[Any], dict[str, int]]:
        verdicts = await engine.ascore(samples(3), JUDGE, deadline=30.0)
        return verdicts, await engine.gather("u1", "me", 1, size=1, timeout=1.0)

    with loopback() as server:
        settings = read_settings({"base_url": server.url, "cache": "off"})
        with caplog.at_level(logging.WARNING, logger="plaudit"):
            engine = open_reward_engine(settings, resolve(settings))
        assert isinstance(engine, LocalEngine)
        with engine.engine:
            verdicts, came = asyncio.run(judged(engine))
    assert all(verdict.is_valid for verdict in verdicts)
    assert came == {"me": 1}
    assert "call ray.init() first" in caplog.text


def test_a_judge_that_will_never_answer_is_found_out_before_the_first_row() -> None:
    with loopback() as server:
        settings = read_settings({"base_url": server.url, "model": "missing", "cache": "off"})
        engine = open_reward_engine(settings, resolve(settings))
        with pytest.raises(BatchFailed, match="missing"):
            check_judge_answers(engine)
        engine.close()


class NotThereYet(LocalEngine):
    """An engine whose server still loads its model."""

    def __init__(self) -> None:
        """It opens nothing."""

    async def ascore(self, *_: Any, **__: Any) -> list[Verdict]:
        return [Verdict.failed(Cause.UNREACHABLE, "no connection to http://judge")]


def test_a_judge_that_is_not_there_yet_is_only_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    check_judge_answers(NotThereYet())
    assert "no connection to http://judge" in caplog.text


def test_an_identity_stands_for_the_model_in_cache_keys() -> None:
    assert config(base_url=URL, model="m", identity="q4").model == "q4"
