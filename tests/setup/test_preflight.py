"""Whether a judge will ever answer: asked by its own route, once."""

from __future__ import annotations

from typing import Any

import pytest
from loopback import INSTANT, loopback

from plaudit import Endpoint, Engine, Jury, Likelihood, Rubric
from plaudit.errors import BatchFailed
from plaudit.setup.preflight import Greeting, check_engine, greeting
from plaudit.types import ChatRequest, LikelihoodRequest, Reply, Request, Sample, Verdict


class Untested:
    """A judge of the user's that fails without the columns of the data set."""

    version = "1"
    scale = (0.0, 1.0)

    def render(self, sample: Sample) -> Request:
        return ChatRequest(({"role": "user", "content": sample.extra["question"]},))

    def parse(self, reply: Reply, sample: Sample) -> Verdict:
        raise NotImplementedError


@pytest.mark.parametrize(
    ("judge", "kind"),
    [
        (None, ChatRequest),
        (Rubric("Is it kind?"), ChatRequest),
        (Untested(), ChatRequest),
        (Likelihood(), LikelihoodRequest),
        (Jury([Likelihood(), Likelihood("Q: {prompt} A:")]), LikelihoodRequest),
    ],
)
def test_a_judge_is_greeted_by_its_own_route(judge: Any, kind: type) -> None:
    assert isinstance(Greeting.like(judge).render(greeting("x")), kind)


@pytest.mark.parametrize("judge", [Rubric("Is it kind?"), Likelihood()])
def test_an_unknown_model_is_named_whatever_is_asked(judge: Any) -> None:
    with (
        loopback(INSTANT) as server,
        Engine(server.url, model="missing", cache=None) as engine,
        pytest.raises(BatchFailed, match="missing"),
    ):
        check_engine(engine, judge, seconds=30.0)


def test_an_engine_that_has_answered_is_not_asked_again() -> None:
    with (
        loopback(INSTANT) as server,
        Engine(server.url, model="m", cache=None, headers={"X-Team": "rl"}) as engine,
    ):
        for _ in range(3):
            check_engine(engine, seconds=30.0)
        assert server.stats.requests == 1


@pytest.mark.parametrize("given", [{"model": "simulated"}, {"model": "an alias"}, {"api_key": "sk-right"}])
@pytest.mark.parametrize("kind", ["openai", "ollama"])
def test_a_list_of_models_that_tells_enough_saves_the_call(given: dict[str, str], kind: Any) -> None:
    scenario = INSTANT.replace(api_key=given.get("api_key") if kind == "openai" else None)
    with loopback(scenario) as server:
        options: dict[str, Any] = {"model": "simulated", **(given if kind == "openai" else {})}
        url = server.url.removesuffix("/v1") if kind == "ollama" else server.url
        with Engine(endpoints=[Endpoint(url, kind=kind, **options)], cache=None) as engine:
            check_engine(engine, seconds=30.0)
        assert server.stats.requests == 0


def test_a_list_that_is_open_to_everybody_says_nothing_of_the_key() -> None:
    with loopback(INSTANT) as server, Engine(server.url, model="m", api_key="any", cache=None) as engine:
        check_engine(engine, seconds=30.0)
        assert server.stats.requests == 1


def test_where_one_of_two_servers_refuses_the_other_is_enough() -> None:
    with loopback(INSTANT) as server, loopback(INSTANT.replace(api_key="sk-right")) as refusing:
        endpoints = [Endpoint(server.url, model="m"), Endpoint(refusing.url, model="m", api_key="sk-wrong")]
        with Engine(endpoints=endpoints, cache=None) as engine:
            check_engine(engine, seconds=30.0)
