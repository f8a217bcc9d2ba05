"""LengthPenaltyConfig: the user's names and defaults, what it refuses, and what becomes of the key."""

from __future__ import annotations

import dataclasses
import logging
import pickle
from typing import Any

import pytest
from complaints import about

from plaudit import Group, Rubric
from plaudit.config import Secret, warn_unneeded
from plaudit.errors import ConfigError
from plaudit.integrations.verl import LengthPenaltyConfig
from plaudit.judges.base import Judge, Panel
from plaudit.settings import load

KEY = "sk-never-shown"


def test_the_users_names_come_first_in_their_order_with_their_defaults() -> None:
    fields = {item.name: item.default for item in dataclasses.fields(LengthPenaltyConfig) if not item.kw_only}
    assert fields == {
        "api_key": None,
        "model_name": "deepseek-v3",
        "api_endpoint": None,
        "use_async_io": True,
        "max_concurrent_requests": None,
        "reward_coefficient": 1.0,
        "enable_openai_reward": True,
        "enable": True,
        "penalty_scale": 1.0,
        "max_penalty": 1.0,
        "peak_ratio": 0.3,
        "outer_ratio": 0.5,
    }


def test_a_batch_has_300_seconds_and_a_failure_gets_the_mean_of_its_group() -> None:
    config = LengthPenaltyConfig()
    assert (config.time_limit, config.on_failure, config.max_failure_rate) == (300.0, "group_mean", 0.2)


def test_a_number_of_workers_is_accepted_and_the_log_says_why_none_are_needed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    warn_unneeded.cache_clear()
    assert LengthPenaltyConfig.of({"num_async_workers": 4}).max_concurrent_requests is None
    (record,) = caplog.records
    assert "num_async_workers" in record.getMessage()


@pytest.mark.parametrize(
    ("given", "setting"),
    [
        ({"outer_ratio": 0.3}, "outer_ratio"),
        ({"penalty_scale": -1.0}, "penalty_scale"),
        ({"reward_coefficient": float("nan")}, "reward_coefficient"),
        ({"api_endpoint": 8000}, "api_endpoint"),
        ({"use_async_io": "false"}, "use_async_io"),
        ({"enable": 1}, "enable"),
        ({"max_concurrent_requests": 0}, "max_concurrent_requests"),
        ({"max_concurrent_requests": True}, "max_concurrent_requests"),
        ({"time_limit": 0}, "time_limit"),
        ({"on_failure": "mask"}, "on_failure"),
        ({"on_failure": "zero"}, "on_failure"),
        ({"enable_rule": False, "enable_openai_reward": False}, "enable_rule"),
    ],
)
def test_what_cannot_work_is_refused_by_name(given: dict[str, Any], setting: str) -> None:
    with pytest.raises(ConfigError, check=about(setting)):
        LengthPenaltyConfig(**given)


def test_a_table_of_the_trainers_configuration_will_do() -> None:
    config = LengthPenaltyConfig.of({"model_name": "m", "reward_coefficient": 0.5})
    assert config == LengthPenaltyConfig(model_name="m", reward_coefficient=0.5)
    assert LengthPenaltyConfig.of(None) == LengthPenaltyConfig()
    assert LengthPenaltyConfig.of(config) is config


def test_a_misspelt_key_is_named_with_the_one_that_was_meant() -> None:
    with pytest.raises(ConfigError, check=about("reward_coeficient")):
        LengthPenaltyConfig.of({"reward_coeficient": 0.5})
    with pytest.raises(ConfigError, check=about("zebra")):
        LengthPenaltyConfig.of({"zebra": 1})
    with pytest.raises(ConfigError, check=about("length_penalty_config")):
        LengthPenaltyConfig.of(0.5)  # type: ignore[arg-type]


def test_the_key_is_neither_shown_nor_lost() -> None:
    config = LengthPenaltyConfig(api_key=KEY)
    assert KEY not in repr(config)
    assert KEY not in str(dataclasses.replace(config, enable=False))
    copy = pickle.loads(pickle.dumps(config))
    assert copy == config
    assert copy.api_key == Secret(KEY)
    assert KEY not in repr(copy)


def test_a_key_from_the_environment_does_not_travel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    config = LengthPenaltyConfig(api_endpoint="https://judge.example/v1")
    with config.open_engine(load({}), None) as engine:
        assert engine.endpoints[0].key == KEY
    assert KEY.encode() not in pickle.dumps(config)


def test_a_key_in_the_trainers_configuration_is_advised_against(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="plaudit"):
        assert LengthPenaltyConfig.of({"api_key": KEY}).api_key == Secret(KEY)
    assert "set OPENAI_API_KEY" in caplog.text
    assert KEY not in caplog.text


def test_no_key_says_how_to_set_it() -> None:
    with pytest.raises(ConfigError, check=about("api_key_env")):
        LengthPenaltyConfig(api_endpoint="https://api.openai.com/v1").open_engine(load({}), None)


def test_no_endpoint_says_how_to_set_it() -> None:
    with pytest.raises(ConfigError, check=about("api_endpoint")):
        LengthPenaltyConfig(api_key=KEY).open_engine(load({}), None)


@pytest.mark.parametrize("written", ["http://host/v1", "http://host/v1/", "http://host/v1/chat/completions"])
def test_an_endpoint_may_be_written_with_its_route(written: str) -> None:
    with LengthPenaltyConfig(api_endpoint=written).open_engine(load({}), 3) as engine:
        assert engine.endpoints[0].url == "http://host/v1"
        assert engine.model == "deepseek-v3"


def judge_of(config: LengthPenaltyConfig) -> Judge | Panel:
    return config.chosen_judge(config.settings())


def test_the_judge_may_be_an_object_a_name_or_words(monkeypatch: pytest.MonkeyPatch) -> None:
    rubric = Rubric("Is it kind?", scale=(1, 5))
    assert judge_of(LengthPenaltyConfig(judge=rubric)) is rubric
    assert isinstance(judge_of(LengthPenaltyConfig(judge="group")), Group)
    words = judge_of(LengthPenaltyConfig(rubric="Is it kind?"))
    assert isinstance(words, Rubric)
    assert words.criteria == "Is it kind?"
    monkeypatch.setenv("PLAUDIT_RUBRIC", "Is it short?")
    assert judge_of(LengthPenaltyConfig()) == Rubric("Is it short?")
