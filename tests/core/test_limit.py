"""The concurrency limit: never out of its bounds, cut to what was accepted, and never stuck."""

from __future__ import annotations

import math

from hypothesis import given, settings
from hypothesis import strategies as st

from plaudit.core.limit import ConcurrencyLimit, LimitConfig

thorough = settings(max_examples=120, deadline=None, derandomize=True, database=None)

events = st.lists(
    st.tuples(
        st.sampled_from(["send", "success", "reject", "timeout", "grow"]),
        st.floats(min_value=0.0, max_value=3.0),  # time passed since the event before
        st.floats(min_value=0.0, max_value=10.0),  # age of the call it is about
        st.integers(min_value=0, max_value=300),  # calls under way
    ),
    max_size=150,
)
configs = st.builds(
    LimitConfig,
    start=st.integers(min_value=-5, max_value=500),
    ceiling=st.integers(min_value=1, max_value=300),
    is_known=st.booleans(),
    rejects=st.booleans(),
)


def grown(limit: ConcurrencyLimit, *, until: float, since: float = 0.0, under_way: int = 0) -> float:
    """Ask it to grow as often as it wants to be asked, up to some time; the answer is that time."""
    now = since
    while now < until:
        now = min(max(limit.grow(now=now, accepted=under_way), now + 0.01), until)
    return now


def round_of_calls(limit: ConcurrencyLimit, *, now: float, latency: float) -> float:
    """Fill the limit with calls, growing while they leave, and let all come back; when the last one did."""
    sent: list[float] = []
    deadline = now + latency
    while True:
        while len(sent) < limit.limit:
            sent.append(now)
            limit.on_send(now=now, in_flight=len(sent))
        again = limit.grow(now=now, accepted=len(sent))
        if again >= deadline:
            break
        now = max(again, now + 1e-3)
    for left, at in zip(range(len(sent), 0, -1), sent, strict=True):
        limit.on_success(now=at + latency, sent_at=at, in_flight=left, tokens=100)
    return sent[-1] + latency


@thorough
@given(configs, events)
def test_the_limit_lies_between_1_and_the_ceiling_whatever_happens(
    config: LimitConfig, steps: list[tuple[str, float, float, int]]
) -> None:
    limit = ConcurrencyLimit(config)
    now = 0.0
    assert 1 <= limit.limit <= config.ceiling
    for what, pause, age, count in steps:
        now += pause
        sent_at = max(now - age, 0.0)
        match what:
            case "send":
                limit.on_send(now=now, in_flight=count + 1)
            case "success":
                limit.on_success(now=now, sent_at=sent_at, in_flight=count + 1, tokens=count)
            case "reject":
                limit.on_reject(now=now, sent_at=sent_at, accepted=count)
            case "timeout":
                limit.on_timeout(now=now, in_flight=count)
            case _:
                assert not math.isnan(limit.grow(now=now, accepted=count))
        assert 1 <= limit.limit <= config.ceiling


def test_an_unknown_endpoint_is_met_with_some_courage_and_then_with_more() -> None:
    limit = ConcurrencyLimit(LimitConfig(start=32))
    assert limit.limit == 32
    grown(limit, until=1.0)
    assert limit.limit == 64  # the first doubling is blind: the first replies may take long


def test_a_known_limit_is_where_it_starts() -> None:
    limit = ConcurrencyLimit(LimitConfig(start=200, is_known=True, rejects=True))
    assert limit.limit == 200
    assert limit.is_learned


def test_a_guess_is_not_worth_remembering_until_it_was_tried() -> None:
    limit = ConcurrencyLimit(LimitConfig(start=32))
    assert not limit.is_learned
    limit.on_reject(now=1.0, sent_at=0.9, accepted=20)
    assert limit.is_learned


def test_a_burst_of_rejections_cuts_once_to_what_was_accepted() -> None:
    limit = ConcurrencyLimit(LimitConfig(start=64))
    for n in range(64):
        limit.on_send(now=0.0, in_flight=n + 1)
    for left in range(63, 39, -1):  # forty stay, twenty-four come back rejected
        limit.on_reject(now=0.1, sent_at=0.0, accepted=left)
    assert 36 <= limit.limit <= 40


def test_rejections_of_calls_that_left_before_the_cut_do_not_cut_again() -> None:
    limit = ConcurrencyLimit(LimitConfig(start=64))
    for _ in range(10):
        limit.on_reject(now=0.1, sent_at=0.0, accepted=40)
    cut = limit.limit
    for _ in range(10):
        limit.on_reject(now=0.15, sent_at=0.05, accepted=40)
    assert limit.limit == cut


def test_after_a_cut_it_asks_for_more_again_while_calls_wait() -> None:
    limit = ConcurrencyLimit(LimitConfig(start=64))
    limit.on_reject(now=0.1, sent_at=0.0, accepted=40)
    cut = limit.limit
    now = grown(limit, since=0.1, until=30.0, under_way=cut)
    assert limit.limit > cut
    assert now == 30.0


def test_where_more_calls_bring_more_replies_it_keeps_growing() -> None:
    limit = ConcurrencyLimit(LimitConfig(start=32))
    now = 0.0
    for _ in range(12):
        now = round_of_calls(limit, now=now, latency=2.0)
    assert limit.limit >= 512


def test_the_users_ceiling_stops_the_growth() -> None:
    limit = ConcurrencyLimit(LimitConfig(start=32, ceiling=60))
    now = 0.0
    for _ in range(12):
        now = round_of_calls(limit, now=now, latency=2.0)
        assert limit.limit <= 60
    assert limit.limit == 60


def test_a_storm_of_timeouts_cuts_again_and_again_but_never_to_nothing() -> None:
    limit = ConcurrencyLimit(LimitConfig(start=64))
    heights = [limit.limit]
    for storm in range(40):
        for _ in range(limit.limit):
            limit.on_timeout(now=120.0 * (storm + 1), in_flight=limit.limit)
        heights.append(limit.limit)
    assert heights == sorted(heights, reverse=True)
    assert heights[1] < 64
    assert heights[1] >= 32  # calls that left together are one storm, not sixty-four
    assert heights[-1] <= 2


def test_an_endpoint_that_accepts_more_than_it_just_refused_limits_the_rate() -> None:
    limit = ConcurrencyLimit(LimitConfig(start=64))
    now, under_way = 0.0, 20
    for _ in range(60):  # each time more calls are under way, and none has come back
        now += 1.0
        limit.on_reject(now=now, sent_at=now - 0.1, accepted=under_way)
        grown(limit, since=now, until=now + 0.8, under_way=under_way)
        under_way += 10
        if limit.is_rate:
            break
    assert limit.is_rate


def test_an_endpoint_that_refuses_at_the_same_height_each_time_is_not_taken_for_a_rate() -> None:
    limit = ConcurrencyLimit(LimitConfig(start=64))
    now = 0.0
    for _ in range(40):
        now += 1.0
        for _ in range(30):
            limit.on_success(now=now, sent_at=now - 2.0, in_flight=40, tokens=100)
        limit.on_reject(now=now, sent_at=now - 0.1, accepted=40)
        grown(limit, since=now, until=now + 0.8, under_way=40)
    assert not limit.is_rate
    assert limit.limit < 64


def test_a_lone_rejection_far_below_the_limit_is_believed_by_halves() -> None:
    limit = ConcurrencyLimit(LimitConfig(start=200, is_known=True, rejects=True))
    limit.on_send(now=0.0, in_flight=1)
    limit.on_reject(now=0.1, sent_at=0.0, accepted=0)
    assert limit.limit == 100


def test_a_rejection_of_a_full_load_is_believed_wholly() -> None:
    limit = ConcurrencyLimit(LimitConfig(start=200, is_known=True, rejects=True))
    for in_flight in range(1, 201):
        limit.on_send(now=0.0, in_flight=in_flight)
    for accepted in range(199, 15, -1):
        limit.on_reject(now=0.1, sent_at=0.0, accepted=accepted)
    assert limit.limit == 16
