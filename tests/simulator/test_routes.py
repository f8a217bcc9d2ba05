"""Outcomes as protocols write them: headers in every form, and in the client's seconds."""

from __future__ import annotations

import msgspec
import pytest

from plaudit.simulator.ask import Outcome
from plaudit.simulator.routes import ROUTES, duration, rate_headers, render
from plaudit.types import RateHeaders, Reply, TokenChoice, Usage

OPENAI, OLLAMA = ROUTES["/v1/chat/completions"], ROUTES["/api/chat"]
REPLY = Reply("one two three four five", model="m", usage=Usage(prompt_tokens=3, completion_tokens=5))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0ms"),
        (0.12, "120ms"),
        (0.0001, "1ms"),
        (1.0, "1s"),
        (1.5, "1.5s"),
        (59.9999, "1m0s"),
        (360.0, "6m0s"),
        (3672.25, "1h1m12.25s"),
    ],
)
def test_durations_are_written_as_openai_writes_them(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_a_full_set_of_hints_has_whole_seconds_and_exact_milliseconds() -> None:
    rate = RateHeaders(
        limit_requests=40, remaining_requests=0, reset_requests=2.0,
        limit_tokens=600, remaining_tokens=17, reset_tokens=360.0,
    )  # fmt: skip
    assert dict(rate_headers(Outcome(429, retry_after=0.25, rate=rate))) == {
        "retry-after": "1",
        "retry-after-ms": "250",
        "x-ratelimit-limit-requests": "40",
        "x-ratelimit-remaining-requests": "0",
        "x-ratelimit-reset-requests": "2s",
        "x-ratelimit-limit-tokens": "600",
        "x-ratelimit-remaining-tokens": "17",
        "x-ratelimit-reset-tokens": "6m0s",
    }


def test_compressed_time_compresses_the_headers() -> None:
    rate = RateHeaders(reset_requests=4.0)
    headers = dict(rate_headers(Outcome(429, retry_after=2.0, rate=rate), speed=20.0))
    assert headers == {
        "retry-after": "0.1",
        "retry-after-ms": "100",
        "x-ratelimit-reset-requests": "200ms",
    }
    assert dict(rate_headers(Outcome(429, retry_after=3.0), speed=20.0)) == {"retry-after": "0.15"}
    assert rate_headers(Outcome(429)) == ()


def test_errors_take_the_shape_of_their_protocol() -> None:
    outcome = Outcome(404, message="no such model")
    openai = msgspec.json.decode(render(OPENAI, outcome, streams=False, speed=1.0).body)
    assert openai["error"]["message"] == "no such model"
    assert openai["error"]["code"] == "model_not_found"
    ollama = msgspec.json.decode(render(OLLAMA, outcome, streams=False, speed=1.0).body)
    assert ollama == {"error": "no such model"}


def test_a_refusal_has_a_field_in_openais_form_and_is_text_in_ollamas() -> None:
    outcome = Outcome(reply=Reply("", refusal="No."))
    openai = msgspec.json.decode(render(OPENAI, outcome, streams=False, speed=1.0).body)
    assert openai["choices"][0]["message"] == {"role": "assistant", "content": None, "refusal": "No."}
    ollama = msgspec.json.decode(render(OLLAMA, outcome, streams=False, speed=1.0).body)
    assert ollama["message"]["content"] == "No."


def test_log_probabilities_are_written_for_both() -> None:
    reply = Reply("yes", tokens=(TokenChoice("yes", -0.1, (("yes", -0.1), ("no", -2.4))),))
    openai = msgspec.json.decode(render(OPENAI, Outcome(reply=reply), streams=False, speed=1.0).body)
    entries = openai["choices"][0]["logprobs"]["content"]
    assert [(top["token"], top["logprob"]) for top in entries[0]["top_logprobs"]] == [
        ("yes", -0.1),
        ("no", -2.4),
    ]
    ollama = msgspec.json.decode(render(OLLAMA, Outcome(reply=reply), streams=False, speed=1.0).body)
    assert ollama["logprobs"] == entries


def test_a_stream_carries_the_whole_text_and_its_end() -> None:
    events = render(OPENAI, Outcome(reply=REPLY), streams=True, speed=1.0)
    assert events.content_type == "text/event-stream"
    lines = [line.removeprefix(b"data: ") for line in events.body.split(b"\n\n") if line]
    assert lines[-1] == b"[DONE]"
    chunks = [msgspec.json.decode(line)["choices"][0] for line in lines[:-1]]
    assert "".join(chunk["delta"].get("content", "") for chunk in chunks) == REPLY.text
    assert chunks[-1]["finish_reason"] == "stop"

    native = render(OLLAMA, Outcome(reply=REPLY), streams=True, speed=1.0)
    parts = [msgspec.json.decode(line) for line in native.body.splitlines()]
    assert "".join(part["message"]["content"] for part in parts) == REPLY.text
    assert [part["done"] for part in parts] == [False, True]
    assert parts[-1]["eval_count"] == 5
