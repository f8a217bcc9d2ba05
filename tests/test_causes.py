"""Every sample without a score says why, as data."""

from __future__ import annotations

import pickle

import msgspec
import pytest

from plaudit import errors
from plaudit.config import Endpoint
from plaudit.setup.json_lines import Line, parse, render
from plaudit.transports.http_errors import failure_of
from plaudit.types import Cause, Failure, Status, Verdict

ENDPOINT = Endpoint("http://host/v1", model="m")


def test_each_error_that_can_cost_a_sample_its_score_has_a_cause_of_its_own() -> None:
    expected = {
        errors.RateLimited: Cause.RATE_LIMITED,
        errors.TimedOut: Cause.TIMED_OUT,
        errors.Unreachable: Cause.UNREACHABLE,
        errors.TransportFailed: Cause.SERVER_ERROR,
        errors.KeyRefused: Cause.REFUSED_KEY,
        errors.ModelNotFound: Cause.UNKNOWN_MODEL,
        errors.EndpointRefused: Cause.ENDPOINT_REFUSED,
        errors.RequestRefused: Cause.REQUEST_REFUSED,
        errors.UnreadableVerdict: Cause.UNREADABLE,
        errors.CutOff: Cause.CUT_OFF,
        errors.Declined: Cause.DECLINED,
        errors.BudgetSpent: Cause.BUDGET,
        errors.EngineClosed: Cause.CLOSED,
        errors.ConfigError: Cause.INPUT,
    }
    assert {kind: kind("x").failure.cause for kind in expected} == expected


@pytest.mark.parametrize(
    ("status", "cause"),
    [
        (401, Cause.REFUSED_KEY),
        (402, Cause.ENDPOINT_REFUSED),
        (404, Cause.UNKNOWN_MODEL),
        (413, Cause.REQUEST_REFUSED),
        (429, Cause.RATE_LIMITED),
        (503, Cause.RATE_LIMITED),
        (500, Cause.SERVER_ERROR),
        (302, Cause.ENDPOINT_REFUSED),
    ],
)
def test_an_answer_becomes_a_cause_with_its_endpoint_and_status(status: int, cause: Cause) -> None:
    failure = failure_of(ENDPOINT, status, {"retry-after": "7"}, b"", now=0.0).failure
    assert failure.cause is cause
    assert (failure.facts["endpoint"], failure.facts["http_status"]) == (ENDPOINT.name, status)
    assert failure.facts.get("retry_after_s", 7.0) == 7.0


@pytest.mark.parametrize(
    ("cause", "status"),
    [
        (Cause.DECLINED, Status.REFUSED),
        (Cause.CUT_OFF, Status.UNREADABLE),
        (Cause.UNREADABLE, Status.UNREADABLE),
        (Cause.FLAGGED, Status.FLAGGED),
        (Cause.DEADLINE, Status.DEADLINE),
        (Cause.RATE_LIMITED, Status.FAILED),
        (Cause.BUDGET, Status.FAILED),
    ],
)
def test_the_status_follows_from_the_cause(cause: Cause, status: Status) -> None:
    assert Verdict.failed(cause, "x").status is status


def test_no_score_has_no_cause_only_where_there_is_one() -> None:
    for status in (Status.FAILED, Status.DEADLINE, Status.UNREADABLE, Status.REFUSED, Status.FLAGGED):
        assert Verdict(None, status).cause is not None
    assert Verdict(1.0, Status.OK).cause is None


def test_a_failure_travels_between_processes_and_into_json_lines() -> None:
    verdict = Verdict.failed(Failure(Cause.RATE_LIMITED, {"http_status": 429}), "too many requests")
    assert pickle.loads(pickle.dumps(verdict)) == verdict
    line = parse(1, b'{"prompt": "q", "response": "a", "cause": "mine"}')
    assert isinstance(line, Line)
    written = msgspec.json.decode(render(line, verdict))
    assert (written["status"], written["judge"]["cause"]) == ("failed", "rate_limited")
    assert written["cause"] == "mine"
    assert "cause" not in msgspec.json.decode(render(line, Verdict(1.0, Status.OK)))["judge"]


def test_a_failure_goes_to_another_process_without_facts_too() -> None:
    verdict = Verdict.failed(errors.UnreadableVerdict("two scores").failure, "two scores")
    assert pickle.loads(pickle.dumps(verdict)) == verdict
