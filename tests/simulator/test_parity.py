"""In memory and over HTTP, through the real transports, the same requests get the same replies and errors."""

from __future__ import annotations

import asyncio
from typing import Literal

import pytest

from plaudit import errors
from plaudit.config import Endpoint
from plaudit.errors import PlauditError
from plaudit.simulator import (
    Fault,
    Latency,
    Rate,
    Reject,
    Scenario,
    SimulatedTransport,
    Unlimited,
    WrongHeaders,
)
from plaudit.simulator.http_server import serving
from plaudit.simulator.scenario import Capacity
from plaudit.testing import run
from plaudit.transports import Transport, open_transport
from plaudit.types import ChatRequest, EmbedRequest, GenerateRequest, LikelihoodRequest, Reply, Request

SWIFT = Latency(mean_tokens=10.0, sigma=0.5, seconds_per_token=0.0005, first_token=0.002, round_trip=0.001)
SCHEMA = {"type": "object", "properties": {"score": {"type": "number", "minimum": 1, "maximum": 5}}}
REQUESTS: list[Request] = [
    ChatRequest(({"role": "user", "content": "plain"},)),
    ChatRequest(
        ({"role": "system", "content": "judge"}, {"role": "user", "content": "émoji 🎈"}), schema=SCHEMA
    ),
    ChatRequest(({"role": "user", "content": "yes or no?"},), max_tokens=1, top_logprobs=5),
    ChatRequest(({"role": "user", "content": "a number"},), schema=SCHEMA, top_logprobs=3),
    GenerateRequest("Once", max_tokens=20),
    EmbedRequest(("a", "b")),
]
LIKELIHOOD = LikelihoodRequest("Question: 1 + 1?\nAnswer:", " It is 2.")
"""Ollama's routes have no such thing."""
Result = Reply | tuple[str, float | None]


async def sent(transport: Transport, requests: list[Request]) -> list[Result]:
    """Each request after the last, with errors reduced to what the scheduler acts on."""
    results: list[Result] = []
    for request in requests:
        try:
            results.append(await transport.send(request))
        except PlauditError as error:
            known = next(kind for kind in type(error).__mro__ if kind.__module__ == errors.__name__)
            results.append((known.__name__, getattr(error, "retry_after", None)))
    await transport.close()
    return results


def in_memory(scenario: Scenario, requests: list[Request], **options: str) -> list[Result]:
    return run(sent(SimulatedTransport(scenario, **options), requests))


def over_http(
    scenario: Scenario,
    requests: list[Request],
    kind: Literal["openai", "ollama"] = "openai",
    model: str = "simulated",
    api_key: str | None = None,
) -> list[Result]:
    async def main() -> list[Result]:
        async with serving(scenario) as url:
            endpoint = Endpoint(url, model=model, kind=kind, api_key=api_key)
            return await sent(open_transport(endpoint, environ={}), requests)

    return asyncio.run(main())


@pytest.mark.parametrize("kind", ["openai", "ollama"])
def test_replies_are_the_same_to_the_last_token(kind: Literal["openai", "ollama"]) -> None:
    scenario = Scenario(seed=11, latency=SWIFT)
    expected = in_memory(scenario, REQUESTS)
    assert all(isinstance(result, Reply) for result in expected)
    assert over_http(scenario, REQUESTS, kind) == expected


def test_the_likelihood_of_a_text_is_the_same_too() -> None:
    scenario = Scenario(seed=11, latency=SWIFT)
    expected = in_memory(scenario, [LIKELIHOOD])
    assert all(isinstance(result, Reply) and len(result.tokens) == 3 for result in expected)
    assert over_http(scenario, [LIKELIHOOD], "openai") == expected


@pytest.mark.parametrize(
    "fault",
    [
        Fault("error", status=429),
        Fault("error", status=429, retry_after=2.0),
        Fault("error", status=500),
        Fault("error", status=503),
        Fault("error", status=503, retry_after=1.5),
        Fault("error", status=413),
        Fault("error", status=408),
        Fault("error", status=402),
        Fault("error", status=529, retry_after=2.0),
        Fault("reset"),
        Fault("cut"),
        Fault("bad_json"),
        Fault("html"),
        Fault("plain_text"),
        Fault("babble"),
        Fault("refusal"),
        Fault("filtered"),
        Fault("truncated"),
        Fault("slow", factor=3.0),
    ],
    ids=lambda fault: f"{fault.kind}-{fault.status}-{fault.retry_after}",
)
def test_every_fault_ends_alike(fault: Fault) -> None:
    scenario = Scenario(latency=SWIFT, faults=(fault,))
    assert over_http(scenario, REQUESTS[:1]) == in_memory(scenario, REQUESTS[:1])


def test_every_status_means_the_same() -> None:
    statuses = [status for status in range(400, 600) if status != 408]  # over HTTP, how a connection ends
    faults = tuple(Fault("error", status=status, requests=(at, at + 1)) for at, status in enumerate(statuses))
    requests = REQUESTS[:1] * len(statuses)
    scenario = Scenario(latency=SWIFT, faults=faults)
    assert over_http(scenario, requests) == in_memory(scenario, requests)


@pytest.mark.parametrize(("model", "api_key"), [("missing", "right"), ("simulated", "wrong")])
def test_refusals_are_alike(model: str, api_key: str) -> None:
    scenario = Scenario(latency=SWIFT, api_key="right")
    expected = in_memory(scenario, REQUESTS[:1], model=model, api_key=api_key)
    assert over_http(scenario, REQUESTS[:1], model=model, api_key=api_key) == expected
    assert expected != in_memory(scenario, REQUESTS[:1], api_key="right")


@pytest.mark.parametrize(
    "capacity",
    [
        Rate(per_second=0.001, burst=2, tokens_per_second=10.0),
        Rate(per_second=0.001, burst=2, hints="retry-after"),
        Rate(per_second=0.001, burst=2, hints="none"),
        Rate(per_second=0.001, burst=2, hints="exact"),
        Rate(per_second=0.001, burst=2, hints="headers"),
        Rate(per_second=0.001, burst=2, retry_after=3600.0),
        Rate(per_second=0.001, burst=2, hints="headers", wrong=WrongHeaders(0.1, 0.033)),
        Rate(per_second=0.001, burst=2, wrong=WrongHeaders(reset_factor=0.0, remaining=1_000_000)),
        Rate(per_second=0.001, window=2000.0, hints="headers"),
        Reject(slots=1),
        Unlimited(),
    ],
    ids=lambda capacity: repr(capacity),
)
def test_limits_are_told_alike(capacity: Capacity) -> None:
    scenario = Scenario(latency=SWIFT, capacity=capacity)
    for memory, http in zip(in_memory(scenario, REQUESTS), over_http(scenario, REQUESTS), strict=True):
        if isinstance(memory, Reply) and isinstance(http, Reply):
            assert (http.text, http.usage) == (memory.text, memory.usage)
            assert (http.rate is None) == (memory.rate is None)
            if http.rate is not None and memory.rate is not None:
                assert http.rate.remaining_requests == memory.rate.remaining_requests
                assert http.rate.reset_requests == pytest.approx(memory.rate.reset_requests, rel=1e-3)
        else:
            assert not isinstance(memory, Reply)
            assert not isinstance(http, Reply)
            assert http[0] == memory[0]
            assert http[1] == (None if memory[1] is None else pytest.approx(memory[1], rel=1e-3))
