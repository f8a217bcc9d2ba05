"""What an unsuccessful answer means, and what its message tells the user to do."""

from __future__ import annotations

import json
from email.utils import formatdate

import pytest

from plaudit.config import Endpoint, Secret
from plaudit.errors import (
    EndpointRefused,
    KeyRefused,
    ModelNotFound,
    PlauditError,
    RateLimited,
    RequestRefused,
    TransportFailed,
    Unreachable,
)
from plaudit.transports.client import Answer
from plaudit.transports.complaint import Complaint
from plaudit.transports.http import refusal_of_raw
from plaudit.transports.http_errors import failure_in_reply, failure_of, proxy_refused, unreachable

KEY = "a-key-of-no-known-form"
HOSTED = Endpoint("https://api.example.com/v1", model="judge-1", api_key=KEY)
OPEN = Endpoint("http://localhost:8000/v1", model="judge-1")
OLLAMA = Endpoint("http://localhost:11434", model="smol")
NOW = 1_800_000_000.0


def failed(
    status: int, body: object = None, *, endpoint: Endpoint = HOSTED, headers: dict[str, str] | None = None
) -> PlauditError:
    return failure_of(endpoint, status, headers or {}, json.dumps(body).encode(), now=NOW)


def said(message: str, code: str | None = None) -> dict[str, object]:
    return {"error": {"message": message, "code": code}}


def test_a_refused_key_names_where_it_came_from() -> None:
    error = failed(401, said("Incorrect API key provided"))
    assert type(error) is KeyRefused
    for part in ("https://api.example.com/v1 judge-1", "401", "Incorrect API key provided", "api_key"):
        assert part in str(error)
    kept = Endpoint("https://api.example.com/v1", api_key=Secret("sk-1", origin="JUDGE_KEY"))
    assert "JUDGE_KEY" in str(failed(401, endpoint=kept))


def test_a_server_that_loads_its_model_is_not_called_rate_limiting() -> None:
    error = failed(503, said("Loading model"))
    assert type(error) is RateLimited
    assert str(error).endswith("answered 503: Loading model; it is overloaded, or not ready yet")


def test_a_missing_key_is_said_to_be_missing() -> None:
    error = failed(401, endpoint=OPEN)
    assert type(error) is KeyRefused
    assert "no key was sent" in str(error) and "OPENAI_API_KEY" in str(error)


@pytest.mark.parametrize(
    "words", ["[SSL: WRONG_VERSION_NUMBER] wrong version number (_ssl.c:1006)", "[SSL] record layer failure"]
)
def test_https_on_a_port_that_speaks_http_is_named(words: str) -> None:
    error = unreachable(Endpoint("https://localhost:8000/v1"), words)
    assert "write http://localhost:8000/v1" in str(error)


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, said("API key not valid. Please pass a valid API key.")),
        (400, said("Invalid API Key")),
        (400, said("no", "invalid_api_key")),
    ],
)
def test_some_services_refuse_a_key_with_another_status(status: int, body: object) -> None:
    assert type(failed(status, body)) is KeyRefused


def test_an_unknown_model_is_named() -> None:
    for error in (
        failed(404, said("The model does not exist", "model_not_found")),
        failed(400, said("judge-1 is not a valid model ID")),
        failed(400, said("/chat/completions: Invalid model name passed in model=judge-1.", "400")),
        failed(400, said("Invalid model: judge-1")),
        failed(400, said("Model Not Exist")),
    ):
        assert type(error) is ModelNotFound
        assert "'judge-1' does not exist" in str(error)


def test_a_model_that_ollama_lacks_can_be_pulled() -> None:
    error = failed(404, {"error": "model 'smol' not found"}, endpoint=OLLAMA)
    assert type(error) is ModelNotFound
    assert "ollama pull smol" in str(error)


def test_an_unknown_route_points_at_the_url() -> None:
    error = failed(404, {"detail": "Not Found"}, endpoint=OPEN)
    assert type(error) is ModelNotFound
    assert "http://localhost:8000/v1 is the base URL" in str(error)
    assert "no path" in str(failed(404, endpoint=OLLAMA))


def test_an_empty_account_is_known_by_what_services_say_with_a_400() -> None:
    for error in (
        failed(400, said("Your credit balance is too low to access the API", "invalid_request_error")),
        failed(400, {"error": {"message": "Budget has been exceeded!", "type": "budget_exceeded"}}),
    ):
        assert type(error) is EndpointRefused
        assert "credit" in str(error)


@pytest.mark.parametrize(
    "code", ["insufficient_quota", "billing_hard_limit_reached", "exceeded_current_quota_error"]
)
def test_an_empty_account_is_not_worth_a_retry(code: str) -> None:
    for status in (402, 429):
        error = failed(status, said("You exceeded your current quota", code), headers={"retry-after": "1"})
        assert type(error) is EndpointRefused
        assert "credit" in str(error)


def test_a_rejection_says_how_long_to_wait_in_whatever_form() -> None:
    for headers, wait in (
        ({"retry-after": "3"}, 3.0),
        ({"retry-after-ms": "250"}, 0.25),
        ({"retry-after": formatdate(NOW + 60, usegmt=True)}, 60.0),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "6m0s"}, 360.0),
        ({}, None),
    ):
        error = failed(429, said("slow down", "rate_limit_exceeded"), headers=headers)
        assert type(error) is RateLimited
        assert error.retry_after == wait


def test_a_request_that_alone_is_over_the_limit_of_a_minute_is_not_waited_for() -> None:
    message = (
        "Request too large for judge-1 in organization org-1 on tokens per min (TPM): Limit 30000, Requested "
        "31538. The input or output tokens must be reduced in order to run successfully."
    )
    error = failed(429, said(message, "rate_limit_exceeded"))
    assert type(error) is RequestRefused
    assert "over the account's limit" in str(error)
    others = (
        "Rate limit reached for judge-1 on tokens per min (TPM): Limit 30000, Used 29000, Requested 1500."
    )
    assert type(failed(429, said(others, "rate_limit_exceeded"))) is RateLimited


def test_a_failing_server_may_say_when_to_come_back() -> None:
    error = failed(502, headers={"retry-after": "9"})
    assert type(error) is TransportFailed
    assert error.retry_after == 9.0


@pytest.mark.parametrize("status", [408, 409, 421, 424, 425, 430, 444, 449, 460, 499])
def test_what_a_gateway_says_of_the_server_behind_it_is_no_fault_of_the_request(status: int) -> None:
    assert type(failed(status, said("generation failed"))) is TransportFailed


def test_a_service_without_room_may_say_so_in_its_own_status() -> None:
    assert type(failed(498, said("flex tier capacity exceeded"), headers={"retry-after": "2"})) is RateLimited


@pytest.mark.parametrize(
    "body",
    [
        b"<html><head><title>400 The plain HTTP request was sent to HTTPS port</title></head></html>",
        b"Client sent an HTTP request to an HTTPS server.\n",
        b"Reason: You're speaking plain HTTP to an SSL-enabled server port.",
    ],
)
def test_http_on_a_port_that_speaks_https_is_named(body: bytes) -> None:
    error = failure_of(OPEN, 400, {}, body, now=NOW)
    assert type(error) is EndpointRefused
    assert "write https://localhost:8000/v1" in str(error)


@pytest.mark.parametrize("status", [400, 413, 422, 500])
def test_a_request_that_is_too_long_says_so(status: int) -> None:
    error = failed(status, said("maximum context length is 4096 tokens", "context_length_exceeded"))
    assert type(error) is RequestRefused
    assert "longer than the model's context" in str(error)


def test_a_redirect_names_its_host_but_no_credentials_in_it() -> None:
    error = failure_of(HOSTED, 308, {"location": "https://u:pw@evil.example/v1?k=1"}, b"", now=NOW)
    assert type(error) is EndpointRefused
    assert "a redirect to evil.example;" in str(error)
    assert "pw" not in str(error)
    moved = failure_of(OPEN, 301, {"location": "https://localhost/v1"}, b"", now=NOW)
    assert "a redirect to https://localhost;" in str(moved)
    for odd in ("/elsewhere", "", "http://[", "::"):
        assert type(failure_of(HOSTED, 302, {"location": odd}, b"", now=NOW)) is EndpointRefused


@pytest.mark.parametrize(
    ("complaint", "meaning"),
    [
        (Complaint("upstream died"), TransportFailed),
        (Complaint("busy", code="429"), RateLimited),
        (Complaint("busy", code="rate_limit_exceeded requests"), RateLimited),
        (Complaint("no", code="invalid_api_key invalid_request_error"), KeyRefused),
        (Complaint("no", code="insufficient_quota"), EndpointRefused),
        (Complaint("no", code="404"), ModelNotFound),
        (Complaint("bad", code="invalid_request_error"), RequestRefused),
    ],
)
def test_an_error_in_a_successful_reply_means_what_its_code_says(
    complaint: Complaint, meaning: type[PlauditError]
) -> None:
    assert type(failure_in_reply(HOSTED, {}, complaint, now=NOW)) is meaning


@pytest.mark.parametrize(
    ("endpoint", "cause", "proxy", "remedy"),
    [
        (OPEN, "Connection refused", None, "start a server there"),
        (OLLAMA, "Connection refused", None, "ollama serve"),
        (HOSTED, "Name or service not known", None, "spelling of the host"),
        (HOSTED, "TLS certificate not accepted (self-signed)", None, "SSL_CERT_FILE"),
        (HOSTED, "TLS certificate not accepted (not valid for 'a.b')", None, "name that the certificate"),
        (HOSTED, "TLS certificate not accepted (it has expired)", None, "renew the server's"),
        (HOSTED, "Connection refused", "http://u:pw@proxy:3128", "HTTPS_PROXY"),
    ],
)
def test_no_connection_says_where_and_what_to_do(
    endpoint: Endpoint, cause: str, proxy: str | None, remedy: str
) -> None:
    error = unreachable(endpoint, cause, proxy=proxy)
    assert type(error) is Unreachable
    assert f"no connection to {endpoint.url}" in str(error)
    assert cause in str(error) and remedy in str(error) and "pw" not in str(error)


def test_a_proxy_that_refuses_is_told_apart_from_one_that_wants_credentials() -> None:
    assert type(proxy_refused(HOSTED, 407, "http://proxy:1")) is EndpointRefused
    assert type(proxy_refused(HOSTED, 502, "http://proxy:1")) is Unreachable


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 405, 407, 408, 413, 418, 422, 429, 500, 503])
def test_no_message_shows_the_key_or_runs_long(status: int) -> None:
    error = failed(status, said(f"your key {KEY} " * 100))
    assert KEY not in str(error)
    assert len(str(error)) < 450


def test_no_message_shows_a_key_that_is_sent_as_a_header_or_in_the_query() -> None:
    endpoint = Endpoint(
        "https://api.example.com/v1?version=2024-10-21&api-key=in-the-query",
        headers={"X-Api-Key": "in-a-header", "X-Team": "judges"},
        api_key="x",
    )
    repeated = b"version 2024-10-21 knows no in-the-query, nor in-a-header, of judges x"
    for error in (
        failure_of(endpoint, 400, {}, repeated, now=NOW),
        refusal_of_raw(endpoint, Answer(400, {}, repeated), now=NOW),
    ):
        shown = f"{error} {error.facts.get('answer')}"
        assert "version 2024-10-21 knows no ***, nor ***, of judges x" in shown
        assert "in-the-query" not in shown and "in-a-header" not in shown
