"""Request options: from Python, files, variables and flags into the request, and into its key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from complaints import about

from plaudit import Engine, EngineConfig, Rubric, Sample, Sampling, load_judge
from plaudit.config import Endpoint, Price
from plaudit.errors import ConfigError
from plaudit.settings import engine_config, resolve
from plaudit.transports.client import headers_for
from plaudit.types import ChatRequest, Reply, Request, Usage

SAMPLE = Sample("What is 2 + 2?", "4")
ALL: dict[str, Any] = {
    "max_tokens": 999,
    "temperature": 0.5,
    "top_p": 0.9,
    "seed": 7,
    "reasoning_effort": "low",
    "extra": {"top_k": 20},
}


class Listener:
    """A transport that answers, and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[ChatRequest] = []

    async def send(self, request: Request) -> Reply:
        assert isinstance(request, ChatRequest)
        self.asked.append(request)
        return Reply('{"reason": "right", "score": 9}', usage=Usage(5, 5))

    async def close(self) -> None:
        pass


def options_of(request: ChatRequest) -> dict[str, Any]:
    return {name: getattr(request, name) for name in ALL}


def test_options_of_the_engine_are_in_every_request_of_a_judge() -> None:
    listener = Listener()
    with Engine("http://judge/v1", model="m", cache=None, transport=lambda _: listener, **ALL) as engine:
        engine.score([SAMPLE], Rubric("Is it right?", sampling=Sampling(temperature=1.0)))
    assert [options_of(request) for request in listener.asked] == [ALL]


def test_options_of_a_judge_hold_where_the_engine_says_nothing() -> None:
    request = Rubric("Is it right?", sampling=Sampling(**ALL)).render(SAMPLE)
    assert isinstance(request, ChatRequest)
    assert options_of(request) == ALL


def test_a_judge_file_has_them_in_a_table(tmp_path: Path) -> None:
    path = tmp_path / "judge.toml"
    path.write_text('criteria = "Is it right?"\n[sampling]\nreasoning_effort = "high"\nseed = 3\n')
    judge = load_judge(path)
    assert isinstance(judge, Rubric)
    assert judge.sampling == Sampling(reasoning_effort="high", seed=3)


def test_another_option_is_another_verdict() -> None:
    listener = Listener()
    for temperature in (0.0, 0.5, 0.0):
        with Engine(
            "http://judge/v1",
            model="m",
            cache="memory",
            transport=lambda _: listener,
            temperature=temperature,
        ) as engine:
            engine.score([SAMPLE, SAMPLE], Rubric("Is it right?"))
    assert [request.temperature for request in listener.asked] == [0.0, 0.5, 0.0]


@pytest.mark.parametrize(
    ("environment", "table"),
    [
        (
            {
                "PLAUDIT_MAX_TOKENS": "999",
                "PLAUDIT_TEMPERATURE": "0.5",
                "PLAUDIT_TOP_P": "0.9",
                "PLAUDIT_SEED": "7",
                "PLAUDIT_REASONING_EFFORT": "low",
                "PLAUDIT_EXTRA": '{"top_k": 20}',
            },
            {},
        ),
        ({}, ALL),
    ],
    ids=["variables", "plaudit.toml"],
)
def test_settings_become_options(environment: dict[str, str], table: dict[str, Any]) -> None:
    settings = resolve({}, environment=environment, table=table)
    config = engine_config(settings, "http://judge/v1", model="m")
    assert config.sampling == Sampling(**ALL)


def test_headers_reach_the_endpoint_and_nothing_shows_their_values() -> None:
    settings = resolve({}, environment={"PLAUDIT_HEADERS": '{"X-Team": "s3cret"}'}, table={})
    config = engine_config(settings, "http://judge/v1", model="m")
    assert headers_for(config.endpoints[0])["X-Team"] == "s3cret"
    other = engine_config(resolve({}, environment={}, table={}), "http://judge/v1", model="m")
    assert "s3cret" not in f"{config!r} {config.differences(other)}"


@pytest.mark.parametrize(
    ("bad", "setting"),
    [
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": 1.5}, "max_tokens"),
        ({"temperature": -1}, "temperature"),
        ({"top_p": 2}, "top_p"),
        ({"seed": True}, "seed"),
        ({"extra": {"model": "other"}}, "extra"),
        ({"extra": {"temperature": 1}}, "extra"),
        ({"extra": {"x": object()}}, "extra"),
        ({"extra": ["x"]}, "extra"),
    ],
    ids=str,
)
def test_an_option_that_makes_no_sense_is_named(bad: dict[str, Any], setting: str) -> None:
    with pytest.raises(ConfigError, check=about(setting)):
        EngineConfig(**bad)
    with pytest.raises(ConfigError, check=about(setting)):
        Sampling(**bad)


def test_a_key_among_the_headers_is_sent_to_where_keys_go_in_every_front_end() -> None:
    with pytest.raises(ConfigError, check=about("headers", "OPENAI_API_KEY", "api_key=")):
        Endpoint("http://host/v1", headers={"authorization": "Bearer x"})


@pytest.mark.parametrize(
    "headers", [{"Authorization": "x"}, {"Content-Length": "1"}, {"a b": "x"}, {"X": "a\nb"}, {"X": 1}]
)
def test_a_header_that_cannot_be_sent_is_named_without_its_value(headers: dict[str, Any]) -> None:
    with pytest.raises(ConfigError) as raised:
        Endpoint("http://judge/v1", headers=headers)
    assert raised.value.setting == "headers"


def test_a_variable_that_is_no_json_is_named_without_its_value() -> None:
    with pytest.raises(ConfigError) as raised:
        resolve({}, environment={"PLAUDIT_HEADERS": "X-Key: s3cret"}, table={})
    assert "PLAUDIT_HEADERS" in str(raised.value)
    assert "s3cret" not in str(raised.value)


def test_cached_prompt_tokens_have_a_price_of_their_own() -> None:
    price = Price(prompt=2.0, completion=8.0, cached_prompt=0.5)
    tokens = {"prompt_tokens": 1_000_000, "completion_tokens": 0, "cached_tokens": 600_000}
    assert price.cost(**tokens) == pytest.approx(1.1)
    assert Price(prompt=2.0, completion=8.0).cost(**tokens) == pytest.approx(2.0)
