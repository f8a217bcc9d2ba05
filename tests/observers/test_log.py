"""Log lines: what INFO says of a batch, what WARNING says once, and what is never said."""

from __future__ import annotations

import logging

import pytest

from plaudit.events import (
    BatchFinished,
    BatchStarted,
    BreakerChanged,
    CacheTrouble,
    CallFinished,
    CallStarted,
    EndpointLost,
    Event,
    LimitChanged,
    RetryPlanned,
    Summary,
    VerdictsReady,
)
from plaudit.observers.log import REPEAT_AFTER, Log
from plaudit.types import Status, Verdict

SUMMARY = Summary(
    samples=100,
    seconds=10.0,
    by_status={"ok": 95, "empty": 1, "failed": 3, "deadline": 1},
    by_source={"call": 60, "cache": 40},
    score_mean=6.25,
)


def lines(caplog: pytest.LogCaptureFixture, *events: Event, level: int = logging.INFO) -> list[str]:
    caplog.set_level(level, logger="plaudit")
    log = Log()
    for event in events:
        log(event)
    return [f"{record.levelname} {record.getMessage()}" for record in caplog.records]


def test_a_batch_says_how_many_how_long_and_the_average(caplog: pytest.LogCaptureFixture) -> None:
    assert lines(caplog, BatchFinished(at=1.0, batch=1, summary=SUMMARY)) == [
        "INFO scored 96 of 100 in 10.00 s (100.0 ms a response); mean score 6.25; 40 from the cache; "
        "without a verdict: 3 failed, 1 deadline"
    ]


def test_an_empty_batch_divides_by_nothing(caplog: pytest.LogCaptureFixture) -> None:
    (line,) = lines(caplog, BatchFinished(at=1.0, batch=1, summary=Summary(samples=0, seconds=0.0)))
    assert line == "INFO scored 0 of 0 in 0.00 s (0.0 ms a response)"


def test_the_same_trouble_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    rejected = CallFinished(at=1.0, endpoint="e", in_flight=1, outcome="rate_limited", latency_s=0.1)
    lost = BreakerChanged(at=1.0, endpoint="e", state="open", error="no connection to e", waits_s=60.0)
    assert lines(caplog, *[rejected] * 50, *[lost] * 50) == [
        "WARNING e is rate limiting; fewer calls are sent at once",
        "WARNING no connection to e. Still trying, for up to 60 s",
    ]


def test_a_first_refusal_is_told_in_the_words_of_the_server(caplog: pytest.LogCaptureFixture) -> None:
    said = "e answered 429: 50 requests a day; it is rate limiting"
    refused = CallFinished(
        at=1.0, endpoint="e", in_flight=1, outcome="rate_limited", latency_s=0.1, error=said
    )
    assert lines(caplog, refused) == [f"WARNING {said}; fewer calls are sent at once"]


def test_trouble_that_comes_back_much_later_is_told_again(caplog: pytest.LogCaptureFixture) -> None:
    told = lines(
        caplog,
        BreakerChanged(at=0.0, endpoint="e", state="open", error="503"),
        BreakerChanged(at=REPEAT_AFTER - 1, endpoint="e", state="open", error="503"),
        BreakerChanged(at=REPEAT_AFTER, endpoint="e", state="open", error="503"),
    )
    assert told == ["WARNING e keeps failing; calls to it pause: 503"] * 2


def test_a_lost_endpoint_and_a_broken_cache_are_warnings_with_their_message(
    caplog: pytest.LogCaptureFixture,
) -> None:
    told = lines(
        caplog,
        EndpointLost(at=0.0, endpoint="e", error="401: set OPENAI_API_KEY"),
        CacheTrouble(at=0.0, message="the cache is full"),
    )
    assert told == ["WARNING endpoint lost: 401: set OPENAI_API_KEY", "WARNING the cache is full"]


QUIET: list[Event] = [
    BatchStarted(at=0.0, batch=1, samples=3),
    VerdictsReady(at=0.0, batch=1, verdicts=(Verdict(score=1.0, status=Status.OK, reason="secret text"),)),
    CallStarted(at=0.0, endpoint="e", in_flight=1),
    CallFinished(at=0.0, endpoint="e", in_flight=0, outcome="failed", latency_s=1.0, error="reset"),
    RetryPlanned(at=0.0, endpoint="e", attempt=2, wait_s=0.5, error="reset"),
    LimitChanged(at=0.0, endpoint="e", limit=64, cause="goodput grew"),
    BreakerChanged(at=0.0, endpoint="e", state="closed"),
]


def test_everything_else_is_debug_and_holds_no_reason(caplog: pytest.LogCaptureFixture) -> None:
    assert lines(caplog, *QUIET) == []
    told = lines(caplog, *QUIET, level=logging.DEBUG)
    assert len(told) == len(QUIET)
    assert all(line.startswith("DEBUG ") for line in told)
    assert not any("secret" in line for line in told)
    assert "DEBUG e: limit 64 (goodput grew)" in told
