"""Sends keep to the rate an endpoint accepts, find it from refusals alone, and are never frozen."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plaudit.core.pace import MAX_PAUSE, Pace, rate_hint
from plaudit.simulator.bucket import Bucket
from plaudit.types import RateHeaders

thorough = settings(max_examples=100, deadline=None, derandomize=True, database=None)


def send_until(pace: Pace, *, since: float, until: float) -> list[float]:
    """Send as soon as it may be, for a while; the answer is when."""
    now, sent = pace.ready_at(now=since), []
    while now < until:
        pace.on_send(now=now)
        sent.append(now)
        now = pace.ready_at(now=now)
    return sent


def test_without_a_refusal_everything_may_leave_at_once() -> None:
    pace = Pace()
    for _ in range(1000):
        assert pace.ready_at(now=3.0) == 3.0
        pace.on_send(now=3.0)


def test_sends_keep_to_the_rate_the_headers_told() -> None:
    pace = Pace()
    pace.begin(now=0.0, rate=20.0)
    sent = send_until(pace, since=0.0, until=2.0)
    assert 36 <= len(sent) <= 46


def test_a_clean_run_creeps_up_so_that_a_raised_limit_is_found() -> None:
    pace = Pace()
    pace.begin(now=0.0, rate=20.0)
    send_until(pace, since=0.0, until=20.0)
    assert pace.rate is not None and pace.rate > 24.0


def test_nothing_leaves_during_a_pause() -> None:
    pace = Pace()
    pace.pause(now=10.0, seconds=7.0)
    assert pace.ready_at(now=11.0) == 17.0
    assert pace.ready_at(now=18.0) == 18.0


def test_a_shorter_pause_does_not_end_a_longer_one() -> None:
    pace = Pace()
    pace.pause(now=0.0, seconds=30.0)
    pace.pause(now=1.0, seconds=2.0)
    assert pace.ready_at(now=5.0) == 30.0


def test_no_pause_freezes_it_for_longer_than_the_longest() -> None:
    pace = Pace()
    pace.pause(now=0.0, seconds=1e9)
    assert pace.ready_at(now=0.0) <= MAX_PAUSE
    pace.begin(now=0.0, rate=5.0)
    pace.on_send(now=0.0)
    pace.on_refusal(now=0.1, sent_at=0.0, retry_after=1e9)
    assert pace.ready_at(now=0.1) <= 0.1 + MAX_PAUSE


def test_a_burst_of_refusals_is_one_pause() -> None:
    pace = Pace()
    pace.begin(now=0.0, rate=10.0)
    for _ in range(5):
        pace.on_send(now=1.0)
    news = [pace.on_refusal(now=1.1, sent_at=1.0, retry_after=3.0) for _ in range(5)]
    assert news == [True, False, False, False, False]
    assert pace.ready_at(now=1.2) == pytest.approx(4.1)


def test_a_refusal_lowers_the_rate_but_never_by_more_than_half() -> None:
    pace = Pace()
    pace.begin(now=0.0, rate=100.0)
    sent = send_until(pace, since=0.0, until=0.05)
    pace.on_refusal(now=0.1, sent_at=sent[-1], retry_after=None)
    assert pace.rate is not None and 50.0 <= pace.rate < 100.0


@thorough
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["send", "refusal", "pause", "begin"]),
            st.floats(min_value=0.0, max_value=30.0),
            st.none() | st.floats(min_value=0.0, max_value=1e5),
        ),
        max_size=100,
    )
)
def test_whatever_happens_there_is_a_time_at_which_the_next_may_leave(
    steps: list[tuple[str, float, float | None]],
) -> None:
    pace = Pace()
    now = 0.0
    for what, wait, number in steps:
        now += wait
        match what:
            case "send":
                now = pace.ready_at(now=now)
                pace.on_send(now=now)
            case "refusal":
                pace.on_refusal(now=now, sent_at=max(now - 0.1, 0.0), retry_after=number)
            case "pause":
                pace.pause(now=now, seconds=number or 0.0)
            case _:
                pace.begin(now=now, rate=number)
        ready = pace.ready_at(now=now)
        assert math.isfinite(ready)
        assert now <= ready
        assert pace.rate is None or (pace.rate > 0.0 and math.isfinite(pace.rate))


@pytest.mark.parametrize("true_rate", [2.0, 20.0, 200.0])
@pytest.mark.parametrize("says_when", [True, False])
def test_it_finds_the_rate_of_a_token_bucket_from_its_refusals(true_rate: float, says_when: bool) -> None:
    round_trip = 0.1
    pace, bucket = Pace(), Bucket(rate=true_rate, burst=int(2 * true_rate))
    pace.begin(now=0.0)
    accepted = refused = 0
    now, until = 0.0, 60.0
    on_the_wire: list[tuple[float, float, float]] = []  # (comes back, sent, wait told) of the refused
    while now < until:
        while on_the_wire and on_the_wire[0][0] <= now:
            back, sent, wait = on_the_wire.pop(0)
            pace.on_refusal(now=back, sent_at=sent, retry_after=wait if says_when else None)
        ready = pace.ready_at(now=now)
        if ready > now:
            now = min(ready, on_the_wire[0][0]) if on_the_wire else ready
            continue
        pace.on_send(now=now)
        bucket.refill(now)
        wait = bucket.wait(1)
        if wait > 0.0:
            refused += 1
            on_the_wire.append((now + round_trip, now, wait))
        else:
            bucket.take(1)
            accepted += 1
    assert accepted >= 0.8 * true_rate * until
    assert refused <= 0.15 * (accepted + refused)


def test_the_headers_tell_the_rate_by_what_is_used_up() -> None:
    told = RateHeaders(limit_requests=60, remaining_requests=20, reset_requests=2.0)
    assert rate_hint(told) == pytest.approx(20.0)


@pytest.mark.parametrize(
    "headers",
    [
        RateHeaders(),
        RateHeaders(limit_requests=60, remaining_requests=60, reset_requests=2.0),
        RateHeaders(limit_requests=60, remaining_requests=10, reset_requests=0.0),
        RateHeaders(limit_requests=60, remaining_requests=10),
        RateHeaders(remaining_requests=10, reset_requests=1.0),
        RateHeaders(limit_requests=10, remaining_requests=60, reset_requests=2.0),
    ],
    ids=str,
)
def test_headers_that_do_not_tell_the_rate_are_not_taken_to(headers: RateHeaders) -> None:
    assert rate_hint(headers) is None


def test_a_pace_that_holds_nothing_back_does_not_grow() -> None:
    pace = Pace()
    pace.begin(now=0.0, rate=20.0)
    for step in range(1, 600):
        now = step * 0.5  # two a second, where twenty are allowed
        assert pace.ready_at(now=now) == now
        pace.on_send(now=now)
    assert pace.rate == 20.0
