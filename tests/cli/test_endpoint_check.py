"""What the doctor makes of what an endpoint answered."""

from __future__ import annotations

from typing import Any

import pytest

from plaudit.cli.endpoint_check import CheckResult, Findings, check_endpoint, check_key, masked
from plaudit.config import Endpoint, Secret
from plaudit.settings import Settings, resolve
from plaudit.setup.model_list import HttpAnswer

LOCAL = Endpoint("http://127.0.0.1:8000/v1", model="m")
DISTANT = Endpoint("https://api.example.com/v1", model="m", api_key="sk-abcdefghijklmnopqrst")
LISTED = HttpAnswer(status=200, seconds=0.002, body={"data": [{"id": "m"}, {"id": "n"}]})


def settings(**environment: str) -> Settings:
    return resolve({}, environment=environment, table={})


def said(text: str, **more: Any) -> HttpAnswer:
    return HttpAnswer(status=200, seconds=0.5, body={"choices": [{"message": {"content": text}, **more}]})


def by_name(found: Findings, **environment: str) -> dict[str, CheckResult]:
    return {check.name: check for check in check_endpoint(found, settings(**environment))}


@pytest.mark.parametrize(
    ("key", "shown"),
    [
        ("sk-proj-0123456789abcdef", "sk-...cdef"),
        ("0123456789abcdef0123", "...0123"),
        ("0123456789", "...89"),
        ("short", "(5 characters)"),
    ],
)
def test_a_key_shows_four_characters_at_most(key: str, shown: str) -> None:
    assert masked(Secret(key)) == shown


def test_a_key_is_named_by_its_variable() -> None:
    check = check_key(settings(OPENAI_API_KEY="sk-abcdefghijklmnopqrst"), (DISTANT,))
    assert check == CheckResult("key", "ok", "sk-...qrst from variable OPENAI_API_KEY")


def test_no_key_is_wrong_only_where_one_is_needed() -> None:
    assert check_key(settings(), (LOCAL,)).state == "ok"
    assert check_key(settings(), (LOCAL, DISTANT)).state == "note"
    check = check_key(settings(), (LOCAL, Endpoint("https://api.openai.com/v1")))
    assert check.state == "wrong"
    assert "export OPENAI_API_KEY" in check.text


def test_a_key_that_would_travel_in_clear_is_wrong() -> None:
    check = check_key(
        settings(OPENAI_API_KEY="sk-abcdefghijklmnopqrst"), (Endpoint("http://api.example.com/v1"),)
    )
    assert check.state == "wrong"
    assert "unencrypted" in check.text


def test_an_endpoint_where_all_is_well() -> None:
    checks = by_name(
        Findings(
            LOCAL,
            LISTED,
            test=HttpAnswer(status=200, seconds=0.5, headers={"X-RateLimit-Limit-Requests": "500"}),
            schema=said('{"ok": true}'),
            logprobs=said("ok", logprobs={"content": [{}]}),
        )
    )
    assert {check.state for check in checks.values()} == {"ok"}
    assert checks["reach"].text == "http://127.0.0.1:8000/v1 answers in 2 ms (HTTP 200)"
    assert checks["model"].text == "m answers in 0.50 s"
    assert checks["limits"].text == "x-ratelimit-limit-requests 500"


def test_nobody_there_ends_the_examination() -> None:
    checks = by_name(Findings(LOCAL, HttpAnswer(error="cannot be reached; start a server")))
    assert list(checks) == ["reach"]
    assert checks["reach"] == CheckResult("reach", "wrong", "cannot be reached; start a server")


def test_a_refused_key_is_wrong_wherever_it_shows() -> None:
    environment = {"OPENAI_API_KEY": "sk-abcdefghijklmnopqrst"}
    early = by_name(Findings(DISTANT, HttpAnswer(status=401)), **environment)
    assert (
        "OPENAI_API_KEY contains a key that https://api.example.com/v1 refuses (401)" in early["reach"].text
    )
    late = by_name(Findings(DISTANT, HttpAnswer(status=404), test=HttpAnswer(status=403)), **environment)
    assert "OPENAI_API_KEY contains a key that https://api.example.com/v1 refuses (403)" in late["model"].text
    assert late["model"].state == "wrong"


def test_an_unknown_model_is_wrong_and_the_others_are_listed() -> None:
    endpoint = Endpoint(LOCAL.url, model="typo")
    checks = by_name(Findings(endpoint, LISTED, test=HttpAnswer(status=404, complaint="no such model")))
    assert checks["model"] == CheckResult("model", "wrong", "typo: HTTP 404: no such model; there are m, n")


def test_no_model_among_several_is_wrong() -> None:
    checks = by_name(Findings(Endpoint(LOCAL.url), LISTED))
    assert checks["model"] == CheckResult(
        "model", "wrong", "none chosen; there are m, n; name one with --model"
    )


def test_a_model_that_answers_though_it_is_not_listed_is_well() -> None:
    checks = by_name(Findings(Endpoint(LOCAL.url, model="alias"), LISTED, test=said("ok")))
    assert checks["model"].state == "ok"
    assert "does not name it" in checks["model"].text


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (HttpAnswer(status=400), "not supported"),
        (said("Sure! Here you are."), "accepted but not followed"),
        (said("[1]"), "accepted but not followed"),
        (HttpAnswer(status=200, body=None), "accepted but not followed"),
    ],
)
def test_schemas_that_do_not_work_are_worth_a_note(answer: HttpAnswer, words: str) -> None:
    check = by_name(Findings(LOCAL, LISTED, test=said("ok"), schema=answer))["schema"]
    assert check.state == "note"
    assert words in check.text


def test_missing_log_probabilities_are_worth_a_note() -> None:
    for answer in (HttpAnswer(status=400), said("ok"), said("ok", logprobs=None)):
        check = by_name(Findings(LOCAL, LISTED, test=said("ok"), logprobs=answer))["logprobs"]
        assert check.state == "note"


@pytest.mark.parametrize(("together", "state"), [(4.0, "note"), (3.0, "note"), (1.1, "ok")])
def test_an_ollama_that_answers_one_after_another_is_told_how_to_do_better(
    together: float, state: str
) -> None:
    native = Endpoint("http://127.0.0.1:11434", model="m")
    found = Findings(
        native,
        HttpAnswer(status=200, body={"models": [{"name": "m"}]}),
        test=HttpAnswer(status=200),
        ollama_version="0.12.0",
        alone_s=1.0,
        together_s=together,
    )
    check = by_name(found)["ollama"]
    assert check.state == state
    assert ("OLLAMA_NUM_PARALLEL=4" in check.text) is (state == "note")


def test_the_text_of_ollama_s_own_reply_is_read_too() -> None:
    native = Endpoint("http://127.0.0.1:11434", model="m")
    schema = HttpAnswer(status=200, body={"message": {"content": '{"ok": false}'}})
    assert (
        by_name(Findings(native, LISTED, test=HttpAnswer(status=200), schema=schema))["schema"].state == "ok"
    )
