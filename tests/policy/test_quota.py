"""Requests and tokens a minute hold in every window of sixty seconds, and nobody waits for ever."""

from __future__ import annotations

import heapq
import math

from hypothesis import given, settings
from hypothesis import strategies as st

from plaudit.policy.arrival import Heard
from plaudit.policy.quota import WINDOW, Quota

thorough = settings(max_examples=80, deadline=None, derandomize=True, database=None)

gaps = st.floats(min_value=0.0, max_value=40.0) | st.just(0.0)


def most_in_a_window(events: list[tuple[float, int]]) -> int:
    """The largest sum that any half-open window of sixty seconds holds."""
    return max(sum(size for at, size in events if start <= at < start + WINDOW) for start, _ in events)


@thorough
@given(st.integers(min_value=1, max_value=7), st.lists(gaps, min_size=1, max_size=60))
def test_no_minute_ever_holds_more_requests_than_allowed(rpm: int, waits: list[float]) -> None:
    quota = Quota(rpm=rpm)
    now, sent = 0.0, []
    for wait in waits:
        now = quota.ready_at(now=now + wait, tokens=0)
        assert math.isfinite(now)
        quota.on_send(now=now, tokens=0)
        sent.append((now, 1))
    assert most_in_a_window(sent) <= rpm


Traffic = list[tuple[float, int, float, float]]
"""(pause before it, tokens reserved, share of them used, latency), one for each request."""

traffic = st.lists(
    st.tuples(
        gaps,
        st.integers(min_value=1, max_value=150),
        st.floats(min_value=0.0, max_value=1.0),
        st.floats(min_value=0.0, max_value=90.0),
    ),
    min_size=1,
    max_size=30,
)


def send_all(quota: Quota, requests: Traffic) -> list[tuple[float, int, int]]:
    """Send each request as soon as it may leave; the answer has (sent at, reserved, used) for each."""
    now, sent = 0.0, []
    under_way: list[tuple[float, float, int, int]] = []
    for wait, reserved, share, latency in requests:
        used = round(share * reserved)
        now += wait
        while True:
            while under_way and under_way[0][0] <= now:
                back, left, held, counted = heapq.heappop(under_way)
                quota.on_back(Heard.REPLY, now=back, sent_at=left, reserved=held, used=counted)
            ready = quota.ready_at(now=now, tokens=reserved)
            if ready <= now:
                break
            # Only a reply can free what is reserved, so with none to come the answer must be a time.
            assert math.isfinite(ready) or under_way
            now = min(ready, under_way[0][0]) if under_way else ready
        quota.on_send(now=now, tokens=reserved)
        sent.append((now, reserved, used))
        heapq.heappush(under_way, (now + latency, now, reserved, used))
    return sent


@thorough
@given(traffic)
def test_no_minute_ever_holds_more_tokens_than_allowed(requests: Traffic) -> None:
    sent = send_all(Quota(tpm=150), requests)
    assert most_in_a_window([(at, used) for at, _, used in sent]) <= 150


@thorough
@given(traffic)
def test_both_limits_hold_together(requests: Traffic) -> None:
    sent = send_all(Quota(rpm=3, tpm=200), requests)
    assert most_in_a_window([(at, 1) for at, _, _ in sent]) <= 3
    assert most_in_a_window([(at, used) for at, _, used in sent]) <= 200


@thorough
@given(traffic)
def test_a_request_larger_than_the_allowance_goes_alone(
    requests: Traffic,
) -> None:
    sent = send_all(Quota(tpm=60), requests)  # every request larger than 60 is oversized
    for at, reserved, _ in sent:
        if reserved > 60:
            others = [used for when, _, used in sent if at - WINDOW < when < at]
            assert sum(others) == 0


def test_tokens_are_counted_as_used_once_the_reply_tells() -> None:
    quota = Quota(tpm=100)
    quota.on_send(now=0.0, tokens=90)
    assert quota.ready_at(now=1.0, tokens=50) == math.inf  # only the reply can tell
    quota.on_back(Heard.REPLY, now=2.0, sent_at=0.0, reserved=90, used=30)
    assert quota.ready_at(now=2.0, tokens=50) == 2.0
    assert quota.ready_at(now=2.0, tokens=80) >= 2.0 + WINDOW


def test_what_was_used_counts_for_a_minute_from_the_reply() -> None:
    quota = Quota(tpm=100)
    quota.on_send(now=0.0, tokens=100)
    quota.on_back(Heard.REPLY, now=30.0, sent_at=0.0, reserved=100, used=100)
    ready = quota.ready_at(now=61.0, tokens=1)
    assert 90.0 <= ready < 92.0
    assert quota.ready_at(now=ready, tokens=100) == ready


def test_a_call_that_used_nothing_leaves_nothing_behind() -> None:
    quota = Quota(tpm=100)
    quota.on_send(now=0.0, tokens=100)
    quota.on_back(Heard.REPLY, now=1.0, sent_at=0.0, reserved=100, used=0)
    assert quota.ready_at(now=1.0, tokens=100) == 1.0


def test_without_limits_everything_may_leave_at_once() -> None:
    quota = Quota()
    for _ in range(1000):
        assert quota.ready_at(now=5.0, tokens=10**9) == 5.0
        quota.on_send(now=5.0, tokens=10**9)


def test_an_idle_minute_gives_the_whole_allowance_back() -> None:
    quota = Quota(rpm=5, tpm=50)
    for _ in range(5):
        quota.on_send(now=0.0, tokens=10)
        quota.on_back(Heard.REPLY, now=0.0, sent_at=0.0, reserved=10, used=10)
    for _ in range(5):
        assert quota.ready_at(now=100.0, tokens=10) == 100.0
        quota.on_send(now=100.0, tokens=10)
