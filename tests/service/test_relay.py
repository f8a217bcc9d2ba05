"""Which requests share a reply, and what a failure is to an OpenAI client."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import psutil
import pytest

from plaudit.service.relay import Draws, digest_of, error_body, is_sampled, raw_request, status_of
from plaudit.types import Cause, Failure, RawRequest, Status, Verdict

CHAT = "/chat/completions"
ASK: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "temperature": 0}


def asked(fields: dict[str, Any], draw: int | None, body: bytes = b"") -> RawRequest:
    return raw_request(CHAT, body, fields, digest_of(CHAT, fields), draw)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, False),
        ({"temperature": 0.0}, False),
        ({"temperature": 0.7}, True),
        ({"temperature": None}, True),
        ({"temperature": False}, True),
        ({"n": 1}, False),
        ({"n": 4}, True),
        ({"seed": 7}, False),
    ],
)
def test_only_a_single_reply_at_temperature_0_is_a_question(change: dict[str, Any], expected: bool) -> None:
    assert is_sampled(CHAT, {**ASK, **change}) is expected


def test_a_request_without_a_temperature_is_a_draw_and_an_embedding_never_is() -> None:
    without = {name: value for name, value in ASK.items() if name != "temperature"}
    assert is_sampled(CHAT, without)
    assert not is_sampled("/embeddings", without)


def test_the_kth_equal_request_of_a_run_is_draw_k() -> None:
    draws = Draws()
    one, other = digest_of(CHAT, ASK), digest_of(CHAT, {**ASK, "seed": 1})
    assert [draws.next("a", one), draws.next("a", one), draws.next("a", other)] == [0, 1, 0]
    assert draws.next("b", one) == 0


def test_draws_have_keys_of_their_own_and_a_rerun_has_the_same() -> None:
    keys = [asked(ASK, draw).identity for draw in (None, 0, 1)]
    assert len(set(keys)) == 3
    assert asked(ASK, 1, b"other bytes").identity == keys[2]


@pytest.mark.parametrize("name", ["user", "metadata", "store", "safety_identifier", "prompt_cache_key"])
def test_who_asks_is_no_part_of_the_question(name: str) -> None:
    assert digest_of(CHAT, {**ASK, name: "x"}) == digest_of(CHAT, ASK)


@pytest.mark.parametrize(
    "change",
    [{"model": "n"}, {"top_k": 5}, {"stream": True}, {"tools": []}, {"messages": []}],
)
def test_everything_else_is(change: dict[str, Any]) -> None:
    assert digest_of(CHAT, {**ASK, **change}) != digest_of(CHAT, ASK)
    assert digest_of("/completions", ASK) != digest_of(CHAT, ASK)


@pytest.mark.parametrize("change", [{"background": True}, {"conversation": "conv_1"}])
def test_a_request_that_changes_something_at_the_endpoint_equals_no_other(
    change: dict[str, Any],
) -> None:
    fields = {**ASK, **change}
    assert digest_of("/responses", fields) != digest_of("/responses", fields)
    assert is_sampled("/responses", fields)


def test_half_a_surrogate_pair_is_a_text_like_any_other() -> None:
    one, other = ({**ASK, "user_text": text} for text in ("a\ud800", "a\ud801"))
    assert digest_of(CHAT, one) == digest_of(CHAT, dict(one)) != digest_of(CHAT, other)


def test_the_order_of_fields_makes_no_difference() -> None:
    assert digest_of(CHAT, dict(reversed(ASK.items()))) == digest_of(CHAT, ASK)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"max_tokens": 10, "n": 3}, 30),
        ({"max_tokens": 10.0, "n": 3.0}, 30),
        ({"max_tokens": 10, "n": 2, "best_of": 5}, 50),
        ({"max_tokens": 10, "prompt": ["a", "b", "c"]}, 30),
        ({"max_tokens": 10, "prompt": [[1, 2], [3]]}, 20),
        ({"max_tokens": 10, "prompt": [1, 2, 3]}, 10),
        ({"max_tokens": 10, "prompt": []}, 10),
        ({"max_tokens": 10, "n": True}, 10),
        ({"max_tokens": -1, "max_completion_tokens": 7}, 7),
    ],
)
def test_the_most_tokens_of_a_reply_are_known_to_budgets(change: dict[str, Any], expected: int) -> None:
    assert asked({**ASK, **change}, None).max_tokens == expected


@pytest.mark.parametrize("number", [10**400, 1e300, float("inf"), float("nan"), "many", None, [1]])
def test_any_number_that_a_request_says_makes_a_bound_to_count_with(number: object) -> None:
    most = asked({**ASK, "max_tokens": number, "n": number}, None).max_tokens
    assert 1000 < most < 1e20


@pytest.mark.parametrize(
    ("cause", "facts", "expected"),
    [
        (Cause.REQUEST_REFUSED, {"http_status": 422}, 422),
        (Cause.REQUEST_REFUSED, {"http_status": 451}, 451),
        (Cause.REQUEST_REFUSED, {}, 400),
        (Cause.UNKNOWN_MODEL, {}, 404),
        (Cause.BUDGET, {}, 402),
        (Cause.RATE_LIMITED, {"http_status": 429}, 500),
        (Cause.TIMED_OUT, {}, 500),
        (Cause.REFUSED_KEY, {"http_status": 401}, 500),
        (Cause.DEADLINE, {}, 500),
    ],
)
def test_a_final_failure_is_none_that_a_client_would_try_again(
    cause: Cause, facts: dict[str, int], expected: int
) -> None:
    verdict = Verdict(None, Status.FAILED, error="x", failure=Failure(cause, facts))
    assert status_of(verdict) == expected


def test_an_error_has_openais_form() -> None:
    error = json.loads(error_body("no", status=404, code="model_not_found"))["error"]
    assert error == {
        "message": "no",
        "type": "invalid_request_error",
        "param": None,
        "code": "model_not_found",
    }


def test_the_memory_for_draws_stays_flat_and_none_is_forgotten() -> None:
    def resident() -> int:
        return int(psutil.Process().memory_info().rss)

    draws = Draws()

    def take(numbers: range) -> set[int]:
        return {draws.next(f"run {n % 3}", hashlib.sha256(b"%d" % n).digest()) for n in numbers}

    assert take(range(80_000)) == {0}
    before = resident()
    assert take(range(80_000, 200_000)) == {0}
    assert resident() - before < 1_000_000
    assert take(range(100)) == {1}


def test_where_draws_cannot_be_counted_none_is_given_twice(caplog: pytest.LogCaptureFixture) -> None:
    draws = Draws()
    numbers = [draws.next("run", b"a"), draws.next("run", b"a")]
    draws.close()  # as it is when the disk is full
    numbers += [draws.next("run", b"a") for _ in range(3)]
    assert len(set(numbers)) == 5
    assert len(caplog.records) == 1
