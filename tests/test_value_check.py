"""A value of the wrong type, or that makes no sense, is refused by its setting's name, before any call."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import numpy as np
import pytest
from complaints import about

from plaudit import (
    ConfigError,
    Endpoint,
    Engine,
    Expected,
    Group,
    Monitor,
    Pairwise,
    Price,
    Reference,
    Rubric,
    Yes,
)
from plaudit.config import EngineConfig
from plaudit.value_check import ABOVE_0, check_known, check_number, reworded

URL = "http://127.0.0.1:9/v1"


@pytest.mark.parametrize(
    ("setting", "values"),
    [
        ("max_concurrent", [0, -1, "5", 1.5, True, math.nan, math.inf, 10**400]),
        ("rpm", [0, "5", 0.5, [5]]),
        ("tpm", [0, "5"]),
        ("budget", [-1, "5", math.nan]),
        ("timeout", [0, -1.0, "10", None, math.nan, True, 10**400]),
        ("hedge", ["no", 0, None]),
        ("client", ["requests", 5, None]),
        ("cache", [5, object()]),
        ("journal", [5, True]),
        ("journal_max_mb", [0, "1", None]),
        ("journal_text", ["yes", 1]),
        ("run", [5, None]),
        ("max_tokens", [0, 1.5, "9"]),
        ("temperature", [-1, "hot", math.inf]),
        ("top_p", [1.1, -0.1]),
        ("seed", [1.5, "1"]),
        ("reasoning_effort", [5]),
        ("extra", [[1], "x", {1: 2}]),
        ("headers", ["x", [1], {"X": 5}]),
        ("observers", ["module:name", 5, [5], print]),
        ("model", [5]),
        ("api_key", [5]),
    ],
)
def test_an_option_of_an_engine(setting: str, values: list[Any]) -> None:
    for value in values:
        options: Any = {"model": "m", setting: value}
        with pytest.raises(ConfigError, check=about(setting)):
            Engine(URL, **options)


@pytest.mark.parametrize(
    "value", [URL, [URL], Endpoint(URL), [{"url": URL, "api_key": "sk-0123456789"}], 5], ids=repr
)
def test_endpoints_that_are_none(value: Any) -> None:
    with pytest.raises(ConfigError, check=about("endpoints", "Endpoint(")) as caught:
        Engine(endpoints=value)
    assert "sk-" not in str(caught.value)


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        *(("url", 5), ("kind", "vllm"), ("price", (0.1, 0.2)), ("identity", 5), ("is_direct", "no")),
        *(("rpm", "5"), ("tpm", 0), ("max_concurrent", 0.5), ("headers", "x"), ("api_key", 5)),
    ],
)
def test_a_field_of_an_endpoint(setting: str, value: Any) -> None:
    options: Any = {"url": URL, setting: value}
    with pytest.raises(ConfigError, check=about(setting)):
        Endpoint(**options)


@pytest.mark.parametrize("value", [-0.1, math.nan, "0.15"])
def test_a_price(value: Any) -> None:
    with pytest.raises(ConfigError, check=about("completion")):
        Price(prompt=0.0, completion=value)


@pytest.mark.parametrize("judge", [Rubric, Expected, Group, Monitor, Pairwise, Reference, Yes])
def test_an_option_of_a_judge(judge: Any) -> None:
    for setting in ("max_chars", "show_thinking", "view", "sampling"):
        with pytest.raises(ConfigError, check=about(setting)):
            judge("Is it right?", **{setting: "odd"})


@pytest.mark.parametrize("deadline", [0, -1.0, math.nan, "60"])
def test_a_deadline(deadline: Any) -> None:
    with Engine(URL, model="m", cache=None) as engine, pytest.raises(ConfigError, check=about("deadline")):
        engine.submit([], "Is it right?", deadline=deadline)


def test_numbers_of_numpy_and_whole_floats_are_numbers() -> None:
    config = EngineConfig(rpm=np.int64(5), timeout=np.float32(2.5), max_concurrent=1e3)  # type: ignore[arg-type]
    assert (config.rpm, config.timeout, config.max_concurrent) == (5, 2.5, 1000)


@pytest.mark.parametrize(
    ("bounds", "good", "bad"),
    [
        ({}, [0, -1e300, np.float64(2)], [math.inf, math.nan, "1", True, None]),
        ({"low": 1}, [1, 2.5], [0, 0.999, math.nan, math.inf, 10**400]),
        ({"low": ABOVE_0, "high": 1}, [1e-300, 1], [0, 1.001, -1]),
        ({"low": 0, "high": math.inf}, [0, math.inf], [-1, math.nan]),
    ],
)
def test_a_number_is_held_to_its_bounds(bounds: dict[str, float], good: list[Any], bad: list[Any]) -> None:
    for value in good:
        check_number("size", value, **bounds)
    for value in bad:
        with pytest.raises(ConfigError, check=about("size", repr(value)[:9])):
            check_number("size", value, **bounds)


def test_an_unknown_name_is_told_the_closest_one_or_all_there_are() -> None:
    check_known("rpm", ["rpm", "tpm"], "option")
    with pytest.raises(ConfigError, check=about("max-tokens", "max_tokens?")):
        check_known("max-tokens", ["rpm", "max_tokens"], "option")
    with pytest.raises(ConfigError, check=about("penalty.zzz", "peak, outer")):
        check_known("zzz", ["peak", "outer"], "key", place="penalty.")


def test_a_wrong_value_is_said_without_the_names_of_types() -> None:
    with pytest.raises(msgspec.ValidationError) as raised:
        msgspec.convert({"rows": [{"size": "x"}]}, dict[str, list[dict[str, int | None]]])
    words, place = reworded(raised.value)
    assert place == "[...][0][...]"
    assert "`" not in words


def test_a_judge_shows_itself_as_it_would_be_written() -> None:
    assert repr(Rubric("Is it right?", scale=(0, 5))) == "Rubric(criteria='Is it right?', scale=(0, 5))"
    assert repr(Yes(view="last")) == "Yes(view='last')"
    assert repr(Group("Is it right?")) == "Group(criteria='Is it right?')"
