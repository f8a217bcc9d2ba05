"""What the summary says of each endpoint: how long it was away, how often it was rate limiting, and why."""

from __future__ import annotations

import pytest

from plaudit.cli.run_summary import RunSummary
from plaudit.events import BreakerChanged, CallFinished, EndpointLost, EndpointSummary, Event, LimitChanged
from plaudit.observers.tally import Tally
from plaudit.policy.breaker import LATE_LOOK


def call(at: float, outcome: str = "ok", endpoint: str = "e") -> CallFinished:
    error = None if outcome == "ok" else f"{outcome} at {at:g}"
    return CallFinished(at, endpoint, in_flight=0, outcome=outcome, latency_s=1.0, error=error)


def lines(tally: Tally) -> list[str]:
    text = RunSummary(tally.summary(1.0), 0, ("m",), None, 0).as_text()
    return [line.strip() for line in text if line.startswith("  endpoint")]


def told(*events: Event) -> tuple[EndpointSummary, ...]:
    tally = Tally()
    for event in events:
        tally(event)
    return tally.summary(1.0).endpoints


def test_an_endpoint_is_away_while_calls_fail_and_none_is_answered() -> None:
    [one] = told(call(1.0), *(call(2.0 + i, "failed") for i in range(5)), call(9.0), call(20.0))
    assert (one.away_s, one.times_away, one.failed, one.calls) == (7.0, 1, 5, 8)


def test_a_few_failures_among_answers_are_no_absence() -> None:
    [one] = told(*(call(float(i), "failed" if i % 3 == 0 else "ok") for i in range(30)))
    assert (one.away_s, one.failed) == (0.0, 10)


def test_calls_that_were_only_rate_limited_are_no_absence() -> None:
    [one] = told(call(0.0), *(call(float(i), "rate_limited") for i in range(1, 9)), call(9.0))
    assert (one.away_s, one.rate_limited) == (0.0, 8)


def test_calls_that_found_out_what_the_endpoint_can_do_without_are_no_absence() -> None:
    [one] = told(*(call(float(i), "sent_again") for i in range(1, 9)), call(9.0))
    assert (one.away_s, one.failed, one.calls, one.error) == (0.0, 0, 9, "")


def test_many_calls_that_had_to_be_sent_again_are_explained_and_a_few_are_not() -> None:
    few, many = Tally(), Tally()
    for at in range(40):
        few(call(float(at), "sent_again" if at == 7 else "ok"))
        many(call(float(at), "sent_again" if at % 2 else "ok"))
    assert few.summary(1.0).endpoints[0].sent_again == 1
    assert lines(few) == []
    assert lines(many) == ["endpoint  e was sent 20 of 40 calls again, most recently: sent_again at 39"]


def test_refusals_that_other_tries_outlived_are_counted_and_named() -> None:
    tally = Tally()
    for event in (call(1.0), call(2.0, "refused"), call(3.0, "refused"), call(4.0)):
        tally(event)
    [one] = tally.summary(1.0).endpoints
    assert (one.calls, one.refused, one.failed, one.away_s) == (4, 2, 0, 0.0)
    assert lines(tally) == ["endpoint  e refused 2 of 4 calls, most recently: refused at 3"]


def test_an_open_breaker_counts_at_once_and_an_absence_that_goes_on_up_to_now() -> None:
    [one] = told(
        call(1.0), BreakerChanged(2.0, "e", "open", "no route"), BreakerChanged(12.0, "e", "half-open")
    )
    assert (one.away_s, one.error) == (10.0, "no route")


def test_time_in_which_it_was_not_asked_is_no_absence() -> None:
    rest = [call(float(i), "failed") for i in range(2, 6)]
    [one] = told(call(1.0), *rest, call(66.0))
    assert one.away_s == 66.0 - 2.0 - (65.0 - 5.0 - LATE_LOOK)
    [believed] = told(call(1.0), *rest, BreakerChanged(5.0, "e", "open", "503", due=60.0), call(66.0))
    assert believed.away_s == 66.0 - 2.0, "it was not asked because it had said when it would be back"


def test_calls_let_in_before_the_door_was_shut_do_not_end_an_absence() -> None:
    shut, opened = BreakerChanged(2.0, "e", "open", "503"), BreakerChanged(9.0, "e", "closed")
    [one] = told(call(1.0), call(2.0, "rate_limited"), shut, call(2.1), call(2.3), opened, call(9.5))
    assert (one.away_s, one.times_away) == (7.0, 1)


def test_refusals_that_shut_the_door_say_nothing_of_how_many_calls_it_takes() -> None:
    limited, cut = call(1.0, "rate_limited"), LimitChanged(1.0, "e", 59, "rate limited")
    [one] = told(call(0.5), limited, cut, BreakerChanged(1.2, "e", "open", "503"), call(7.0))
    assert one.cause == ""


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ([(64, "rate limited"), (65, "probe"), (64, "rate limited")], "it takes 64 at once"),
        ([(40, "rate limited"), (4096, "limited by rate")], "it limits the rate"),
        ([(4096, "limited by rate"), (64, "no rate"), (48, "rate limited")], "it takes 48 at once"),
        (
            [(40, "rate limited"), (200, "refusals are not for load"), (220, "level")],
            "it does so at any load",
        ),
        ([(89, "rate limited"), (138, "level")], ""),
        ([(66, "level")], ""),
    ],
)
def test_why_calls_are_rate_limited_is_what_the_engine_makes_of_it_in_the_end(
    changes: list[tuple[int, str]], why: str
) -> None:
    events = (LimitChanged(2.0 + at, "e", limit, cause) for at, (limit, cause) in enumerate(changes))
    [one] = told(call(0.0), call(1.0, "rate_limited"), *events)
    assert one.cause == why


def test_each_endpoint_has_its_own_line_and_one_without_trouble_has_none() -> None:
    tally = Tally()
    events: tuple[Event, ...] = (
        *(call(float(i), endpoint="http://good/v1 m") for i in range(4)),
        *(call(float(i), "rate_limited" if i % 4 == 0 else "ok", "http://busy/v1 m") for i in range(8)),
        LimitChanged(8.0, "http://busy/v1 m", 5, "rate limited"),
        *(call(float(i), "failed", "http://gone/v1 m") for i in range(1, 4)),
        EndpointLost(4.5, "http://gone/v1 m", "no connection"),
    )
    for event in events:
        tally(event)
    assert lines(tally) == [
        "endpoint  http://busy/v1 m rate limited 25% of 8 calls: it takes 5 at once",
        "endpoint  http://gone/v1 m was unavailable for 3.5 s",
    ]


def test_failures_without_an_absence_name_the_last_of_them() -> None:
    tally = Tally()
    for event in (call(0.0), call(1.0, "failed"), call(2.0)):
        tally(event)
    assert lines(tally) == ["endpoint  e failed 1 of 3 calls, most recently: failed at 1"]
    tally(BreakerChanged(2.1, "e", "open", "429; it is rate limiting"))
    tally(call(2.3))
    assert lines(tally) == ["endpoint  e failed 1 of 4 calls, most recently: failed at 1"]
