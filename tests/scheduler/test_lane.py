"""One endpoint, when it is full."""

from __future__ import annotations

import math

from plaudit.config import Endpoint
from plaudit.core.limit import LimitConfig
from plaudit.scheduler.call import Call, Outcome
from plaudit.scheduler.lane import Flight, Lane
from plaudit.testing import ScriptedTransport
from plaudit.types import ChatRequest


def lane_of(*, limit: int = 40, ceiling: int | None = None) -> Lane:
    start = LimitConfig(start=limit, is_known=True, refuses=True)
    return Lane(Endpoint("http://a/v1", model="m", max_concurrent=ceiling), ScriptedTransport([]), start=start)


def ignore(_: Call, __: Outcome) -> None:
    pass


def send(lane: Lane, *, at: float) -> Flight:
    id_ = len(lane.flights) + 1
    call = Call(ChatRequest(()), key=id_.to_bytes(), on_done=ignore)
    flight = lane.flights[id_] = Flight(call, lane, sent_at=at, id=id_)
    lane.on_send(flight, now=at)
    return flight


def test_a_lane_that_is_full_under_a_pace_waits_for_a_reply_and_not_for_its_limit() -> None:
    lane = lane_of(ceiling=2)
    lane.begin_pace(20.0, now=0.0)
    send(lane, at=1.0)
    flight = send(lane, at=1.0)
    assert lane.grow(now=1.0) == math.inf  # "now" would be asked again at once, for ever
    assert lane.ready_at(flight.call, now=1.0) == math.inf
