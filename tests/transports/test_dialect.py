"""Learning which parameters an endpoint takes, from refusals as real servers word them."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plaudit.transports.complaint import Complaint, complaint_of
from plaudit.transports.dialect import FULL, Shape


def openai(message: str, **fields: str | None) -> dict[str, object]:
    return {"error": {"message": message, "type": "invalid_request_error", **fields}}


LESSONS = [
    (
        openai(
            "Unsupported parameter: 'max_tokens' is not supported with this model. "
            "Use 'max_completion_tokens' instead.",
            param="max_tokens",
            code="unsupported_parameter",
        ),
        replace(FULL, limit_name="max_completion_tokens"),
    ),
    (
        openai(
            "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) value "
            "is supported.",
            param="temperature",
            code="unsupported_value",
        ),
        replace(FULL, has_temperature=False),
    ),
    (
        openai(
            "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model.",
            param=None,
        ),
        replace(FULL, has_schema=False),
    ),
    (openai("This response_format type is unavailable now"), replace(FULL, has_schema=False)),
    (
        openai("This model does not support the 'logprobs' parameter."),
        replace(FULL, has_logprobs=False),
    ),
    (
        {"detail": [{"type": "extra_forbidden", "loc": ["body", "logprobs"], "msg": "Extra inputs are bad"}]},
        replace(FULL, has_logprobs=False),
    ),
    (
        {"detail": [{"loc": ["body", "temperature"], "msg": "Extra inputs are not permitted", "input": 0}]},
        replace(FULL, has_temperature=False),
    ),
    (
        {"error": "json: cannot unmarshal object into Go struct field ChatRequest.format of type string"},
        replace(FULL, has_schema=False),
    ),
]


@pytest.mark.parametrize(("body", "learned"), LESSONS)
def test_a_refusal_that_names_a_parameter_is_a_lesson(body: object, learned: Shape) -> None:
    assert FULL.adapted(complaint_of(json.dumps(body).encode())) == learned


@pytest.mark.parametrize(
    "body",
    [
        openai(
            "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4488 in "
            "the messages, 512 in the completion). Reduce the length, or max_tokens, which is not supported."
        ),
        openai(
            "'max_tokens' or 'max_completion_tokens' is too large: 512. This model's context length is 8."
        ),
        openai("max_tokens must be at least 1, got 0"),
        openai("Invalid value: 'judge'. Supported values are: 'system', 'user'.", param="messages[0].role"),
        openai("We could not parse the JSON body of your request."),
        {"detail": [{"loc": ["body", "messages"], "msg": "Field required", "input": "unknown temperature"}]},
        {},
    ],
)
def test_a_refusal_about_something_else_teaches_nothing(body: object) -> None:
    assert FULL.adapted(complaint_of(json.dumps(body).encode())) is None


def test_the_parameter_that_is_named_counts_more_than_those_mentioned() -> None:
    said = Complaint("temperature is unsupported when logprobs are set", param="logprobs")
    assert FULL.adapted(said) == replace(FULL, has_logprobs=False)


def test_the_same_lesson_is_learned_once() -> None:
    said = Complaint("Unknown parameter: temperature")
    learned = FULL.adapted(said)
    assert learned is not None
    assert learned.adapted(said) is None


NAMES = ["max_tokens", "temperature", "logprobs", "response_format", "json_schema", "top_p"]


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from([*NAMES, ""])), max_size=30))
def test_however_an_endpoint_complains_adapting_ends(complaints: list[tuple[str, str]]) -> None:
    shape, lessons = FULL, 0
    for name, param in complaints:
        learned = shape.adapted(Complaint(f"unknown parameter {name}", param=param))
        if learned is not None:
            shape, lessons = learned, lessons + 1
    assert lessons <= 4
