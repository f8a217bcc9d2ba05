"""An outage: calls of one engine that fail in a row, for as long as patience lasts."""

from __future__ import annotations

import pytest

from plaudit.errors import ConfigError
from plaudit.events import CallFinished, EndpointLost, Observer
from plaudit.mutation.outage import FAILED_IN_A_ROW, OutageWatch


def calls(observer: Observer, outcome: str, *times: float) -> None:
    for at in times:
        observer(CallFinished(at, "server", 0, outcome, 0.1, error=None if outcome == "ok" else "no server"))


def watched(patience: float) -> tuple[OutageWatch, list[str]]:
    watch, causes = OutageWatch(patience), list[str]()
    watch.begin(causes.append)
    return watch, causes


def test_failures_in_a_row_are_an_outage_once_they_have_lasted() -> None:
    watch, causes = watched(5.0)
    observer = watch.observer()
    calls(observer, "failed", *(0.1 * number for number in range(FAILED_IN_A_ROW)))
    assert (watch.error, causes) == ("no server", [])
    calls(observer, "failed", 5.0, 6.0)
    assert causes == ["no server"]  # once


@pytest.mark.parametrize("outcome", ["ok", "rate_limited"])
def test_an_answer_ends_an_outage(outcome: str) -> None:
    watch, causes = watched(5.0)
    observer = watch.observer()
    calls(observer, "failed", *range(FAILED_IN_A_ROW - 4))
    calls(observer, outcome, 4.5)
    calls(observer, "failed", 100.0)
    assert (watch.error, causes) == ("", [])


def test_a_few_failures_far_apart_and_requests_refused_are_no_outage() -> None:
    watch, causes = watched(5.0)
    calls(watch.observer(), "failed", 0.0, 1000.0)
    calls(watch.observer(), "refused", *range(100))
    calls(watch.observer(), "cancelled", *range(100))
    assert (watch.error, causes) == ("", [])


def test_an_endpoint_that_refuses_every_request_is_gone_at_once() -> None:
    watch, causes = watched(5.0)
    observer = watch.observer()
    observer(EndpointLost(0.0, "server", "unknown model"))
    assert watch.error == "unknown model"
    observer(EndpointLost(5.0, "server", "unknown model"))
    assert causes == ["unknown model"]


def test_one_engine_that_answers_does_not_hide_another_that_fails() -> None:
    watch, causes = watched(1.0)
    rewriter, target = watch.observer(), watch.observer()
    for at in range(FAILED_IN_A_ROW):
        calls(rewriter, "ok", at)
        calls(target, "failed", at)
    assert causes == ["no server"]


def test_when_it_has_ended_nothing_is_called() -> None:
    watch, causes = watched(0.0)
    watch.end()
    calls(watch.observer(), "failed", *range(20))
    assert causes == []


def test_patience_is_a_number_of_seconds() -> None:
    with pytest.raises(ConfigError) as raised:
        OutageWatch(patience=-1.0)
    assert raised.value.setting == "patience"
