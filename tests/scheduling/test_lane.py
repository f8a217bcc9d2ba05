"""What an endpoint is taken to be like when it is full, and when calls to it were given up."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from plaudit.config import Endpoint
from plaudit.policy.limit import LimitConfig
from plaudit.scheduling.call import Call, Outcome
from plaudit.scheduling.lane import Flight, Lane
from plaudit.testing import ScriptedTransport
from plaudit.types import ChatRequest, RateHeaders, Reply


def lane_of(*, limit: int = 40, ceiling: int | None = None) -> Lane:
    start = LimitConfig(start=limit, is_known=True, refuses=True)
    endpoint = Endpoint("http://a/v1", model="m", max_concurrent=ceiling)
    return Lane(endpoint, ScriptedTransport([]), start=start)


def ignore(_: Call, __: Outcome) -> None:
    pass


def some_call(id_: int = 0) -> Call:
    return Call(ChatRequest(()), key=id_.to_bytes(2), on_done=ignore)


def send(lane: Lane, *, at: float) -> Flight:
    id_ = max(lane.flights, default=0) + 1
    call = some_call(id_)
    flight = lane.flights[id_] = Flight(call, lane, sent_at=at, id=id_)
    lane.on_send(flight, now=at)
    return flight


def answer(lane: Lane, *, at: float, of: int) -> None:
    """One of so many calls at once is answered, and the others are gone."""
    flights = [send(lane, at=at) for _ in range(of)]
    del lane.flights[flights[0].id]
    lane.on_reply(Reply("7"), flights[0], now=at + 0.5)
    lane.flights.clear()


def test_a_lane_that_is_full_under_a_pace_waits_for_a_reply_and_not_for_its_limit() -> None:
    lane = lane_of(ceiling=2)
    lane.begin_pace(20.0, now=0.0)
    send(lane, at=1.0)
    flight = send(lane, at=1.0)
    assert lane.grow(now=1.0) == math.inf  # "now" would be asked again at once, for ever
    assert lane.ready_at(flight.call, now=1.0) == math.inf


TOLD = RateHeaders(limit_requests=100, remaining_requests=60, reset_requests=4.0)
"""Ten a second, and sixty left."""


def refuse(lane: Lane, *, at: float, rate: RateHeaders | None) -> None:
    flights = [send(lane, at=at) for _ in range(20)]
    for flight in flights:
        del lane.flights[flight.id]
        lane.on_refusal(flight, now=at + 0.01, retry_after=None, rate=rate)


def told(lane: Lane) -> None:
    """A reply tells the allowance, and others are under way."""
    flight = send(lane, at=0.0)
    del lane.flights[flight.id]
    lane.on_reply(Reply("7", rate=TOLD), flight, now=0.1)
    for _ in range(10):
        send(lane, at=0.2)


def test_a_refusal_while_the_headers_show_an_allowance_is_not_put_down_to_their_rate() -> None:
    lane = lane_of()
    told(lane)
    refuse(lane, at=1.0, rate=None)
    refuse(lane, at=2.0, rate=TOLD)
    assert lane.pace.rate is None


def test_a_refusal_with_nothing_left_is_followed_at_the_rate_that_the_headers_tell() -> None:
    lane = lane_of()
    told(lane)
    refuse(lane, at=1.0, rate=replace(TOLD, remaining_requests=0, reset_requests=10.0))
    assert lane.pace.rate == 10.0


def test_headers_are_not_believed_again_once_far_more_was_let_in_than_they_allow() -> None:
    lane = lane_of()
    told(lane)
    none_left = replace(TOLD, remaining_requests=0, reset_requests=10.0)
    refuse(lane, at=1.0, rate=none_left)
    now = 1.1
    while lane.pace.rate is not None:
        now = max(now + 1e-4, lane.ready_at(some_call(), now=now))
        assert now < 60.0
        if lane.ready_at(some_call(), now=now) <= now:
            lane.flights.clear()
            send(lane, at=now)
    refuse(lane, at=now + 1.0, rate=none_left)
    assert lane.pace.rate is None


def test_a_timeout_under_a_pace_does_not_limit_the_calls_at_once() -> None:
    lane = lane_of(ceiling=100)
    lane.begin_pace(20.0, now=0.0)
    lane.on_timeout(send(lane, at=1.0), now=121.0)
    assert lane.limit.limit == 100


def test_a_call_that_later_ones_have_overtaken_hung_alone_and_says_nothing_about_the_load() -> None:
    lane = lane_of()
    hung, later = send(lane, at=0.0), send(lane, at=1.0)
    del lane.flights[later.id]
    lane.on_reply(Reply("7"), later, now=2.0)
    lane.on_timeout(hung, now=120.0)
    assert lane.limit.limit == 40


def test_a_few_calls_of_many_that_run_out_of_time_say_nothing_about_the_load() -> None:
    lane = lane_of()
    flights = [send(lane, at=0.0) for _ in range(40)]
    for flight in flights[:-2]:
        del lane.flights[flight.id]
        lane.on_reply(Reply("7"), flight, now=2.0)
    assert not any(lane.on_timeout(flight, now=120.0) for flight in flights[-2:])
    assert lane.limit.limit == 40


def test_where_many_run_out_of_time_so_many_are_sent_as_were_answered_in_half_of_it() -> None:
    lane = lane_of(limit=400)
    flights = [send(lane, at=0.0) for _ in range(400)]
    for flight in flights[:100]:
        del lane.flights[flight.id]
        lane.on_reply(Reply("7"), flight, now=100.0)
    assert [lane.on_timeout(flight, now=120.0) for flight in flights[100:130]][-1]
    assert lane.limit.limit == 50


def test_where_no_call_of_many_was_ever_answered_far_fewer_are_sent_and_the_search_goes_on() -> None:
    lane = Lane(Endpoint("http://a/v1", model="m"), ScriptedTransport([]), start=LimitConfig(start=64))
    flights = [send(lane, at=0.0) for _ in range(64)]
    for flight in flights:
        lane.on_timeout(flight, now=120.0)
    lane.limit.hold(since=0.0)
    assert lane.limit.limit == 8
    lane.flights.clear()
    for second in range(130, 150):
        rounds = [send(lane, at=float(second)) for _ in range(lane.limit.limit)]
        lane.flights.clear()
        for flight in rounds:
            lane.on_reply(Reply("7"), flight, now=second + 0.5)
            lane.grow(now=second + 0.5)
    assert lane.limit.limit > 8


def test_a_pace_under_which_far_more_calls_wait_than_were_ever_answered_at_once_is_given_up() -> None:
    lane = lane_of()
    answer(lane, at=0.0, of=10)
    lane.begin_pace(20.0, now=1.0)
    for n in range(200):
        send(lane, at=1.0 + n / 20)
    for flight in list(lane.flights.values())[:3]:
        lane.on_timeout(flight, now=121.0)
    assert lane.pace.rate is None
    assert lane.limit.limit <= 100


def test_a_pace_lets_no_more_calls_wait_than_a_rate_explains() -> None:
    lane = lane_of()
    for n in range(40):
        answer(lane, at=float(n), of=1)  # half a second each
    lane.begin_pace(20.0, now=50.0)
    now = 50.0
    while (ready := lane.ready_at(some_call(), now=now)) < math.inf:
        now = max(now, ready)
        if ready <= now:
            send(lane, at=now)
        assert now < 100.0
    assert 20 <= lane.in_flight < 500


def test_a_search_whose_calls_all_failed_goes_on_with_later_ones() -> None:
    start = LimitConfig(start=8, ceiling=32)
    lane = Lane(Endpoint("http://a/v1", model="m"), ScriptedTransport([]), start=start)
    for _ in range(8):  # the calls that were to show what eight at once are like
        send(lane, at=0.0)
    lane.flights.clear()
    for second in range(1, 20):
        flights = [send(lane, at=float(second)) for _ in range(lane.limit.limit)]
        lane.flights.clear()
        for flight in flights:
            lane.on_reply(Reply("7"), flight, now=second + 0.5)
            lane.grow(now=second + 0.5)
    assert lane.limit.limit > 8


def test_no_rate_is_guessed_that_lets_fewer_in_than_one_call_after_another() -> None:
    lane = lane_of()
    answer(lane, at=0.0, of=1)  # takes half a second
    lane.limit.turn_to_rate(0.001)
    lane.grow(now=1.0)
    assert lane.pace.rate == 2.0


def test_a_retry_at_a_shut_door_waits_for_as_long_as_it_has_been_shut() -> None:
    lane = lane_of()
    answer(lane, at=0.0, of=1)
    lane.breaker.lose(now=0.0)
    lane.breaker.revive(now=10.0)
    assert lane.longest_backoff(now=10.3) == pytest.approx(0.3)
    assert lane.longest_backoff(now=100.0) == 10.0


def left(lane: Lane, flight: Flight, *, remaining: int, at: float) -> None:
    """A call comes back, with word of how many more the endpoint takes."""
    del lane.flights[flight.id]
    lane.on_reply(Reply("7", rate=RateHeaders(remaining_requests=remaining)), flight, now=at)


def paced() -> Lane:
    """A lane that sends a call in two seconds, and has had thirty replies."""
    lane = lane_of(limit=1000)
    for _ in range(30):
        lane.answered += 1
        left(lane, send(lane, at=0.0), remaining=0, at=0.5)
    lane.begin_pace(0.5, now=1.0, burst=30)
    while lane.ready_at(some_call(), now=1.0) <= 1.0:
        send(lane, at=1.0)
    lane.flights.clear()
    return lane


def left_at_once(lane: Lane, *, at: float) -> int:
    before = lane.in_flight
    while lane.ready_at(some_call(), now=at) <= at:
        send(lane, at=at)
    return lane.in_flight - before


def test_a_window_that_begins_anew_is_used_at_once_as_far_as_the_headers_tell() -> None:
    lane = paced()
    first = send(lane, at=10.0)
    left(lane, first, remaining=20, at=10.2)
    assert left_at_once(lane, at=10.2) >= 20


def test_calls_that_left_since_count_against_what_the_headers_tell() -> None:
    lane = paced()
    first = send(lane, at=10.0)
    for _ in range(18):
        send(lane, at=10.1)
    left(lane, first, remaining=20, at=10.2)
    assert left_at_once(lane, at=10.2) <= 3


def test_a_hung_call_holds_no_place_of_those_that_an_endpoint_stands_without_going_down() -> None:
    start = LimitConfig(start=40, collapses_at=10)
    lane = Lane(Endpoint("http://a/v1", model="m"), ScriptedTransport([]), start=start)
    flights = [send(lane, at=0.0) for _ in range(9)]
    assert lane.ready_at(flights[0].call, now=60.0) == math.inf
    assert lane.ready_at(flights[0].call, now=60.0, hung=1) == 60.0


def test_headers_that_allow_far_less_than_was_let_in_are_not_believed() -> None:
    lane = lane_of(limit=64)
    flights = [send(lane, at=0.0) for _ in range(64)]
    del lane.flights[flights[0].id]
    hourly = RateHeaders(limit_requests=1, remaining_requests=0, reset_requests=3600.0)
    lane.on_reply(Reply("7", rate=hourly), flights[0], now=1.0)
    assert lane.pace.rate is None
    assert lane.ready_at(flights[0].call, now=1.0) == 1.0


def test_no_more_is_taken_as_told_than_was_ever_answered() -> None:
    lane = paced()
    left(lane, send(lane, at=10.0), remaining=1_000_000, at=10.2)
    assert left_at_once(lane, at=10.2) <= 31


def test_a_reply_to_a_call_from_before_a_refusal_allows_nothing() -> None:
    lane = paced()
    early, late = send(lane, at=10.0), send(lane, at=10.1)
    del lane.flights[late.id]
    lane.on_refusal(late, now=10.2, retry_after=None)
    left(lane, early, remaining=20, at=10.3)
    assert left_at_once(lane, at=10.3) <= 1
