"""When a server has read its requests: from its answers, and never sooner than they allow."""

from __future__ import annotations

import pytest

from plaudit.policy.arrival import GIVE_UP, MOMENT, Arrivals, Heard

WINDOW = 60.0


def sent(*times: float) -> Arrivals:
    arrivals = Arrivals(WINDOW)
    for at in times:
        arrivals.on_send(now=at)
    return arrivals


def read_at(arrivals: Arrivals) -> list[float]:
    return [end - WINDOW for end in arrivals.ends()]


def confirmed(latency: float) -> Arrivals:
    """A server that has shown twice how long its replies take, long ago."""
    arrivals = Arrivals(WINDOW)
    for at in (-1000.0, -900.0):
        arrivals.on_send(now=at)
        arrivals.on_back(Heard.REPLY, now=at + latency, sent_at=at)
    arrivals.forget(now=-500.0)
    return arrivals


def test_any_answer_says_that_everything_sent_before_it_was_read() -> None:
    for heard in (Heard.REPLY, Heard.ANSWER):
        arrivals = sent(0.0, 1.0, 2.0)
        arrivals.on_back(heard, now=20.0, sent_at=1.0)
        assert read_at(arrivals) == [20.0 + MOMENT] * 3
        assert not arrivals.may_yet_read(2.0)


def test_a_known_time_of_service_is_taken_off_for_what_was_sent_no_later() -> None:
    arrivals = confirmed(latency=5.0)
    for at in (0.0, 1.0, 2.0):
        arrivals.on_send(now=at)
    arrivals.on_back(Heard.REPLY, now=6.0, sent_at=1.0)
    assert read_at(arrivals) == [1.0, 1.0, 6.0 + MOMENT]


def test_one_slow_reply_may_have_been_a_freeze() -> None:
    arrivals = sent(0.0)
    arrivals.on_back(Heard.REPLY, now=30.0, sent_at=0.0)
    assert read_at(arrivals) == [30.0 + MOMENT]
    arrivals.on_send(now=30.0)
    arrivals.on_back(Heard.REPLY, now=60.0, sent_at=30.0)
    assert read_at(arrivals) == [0.0, 30.0], "another took as long, so that is the time of service"


def test_a_much_shorter_reply_takes_the_belief_away() -> None:
    arrivals = confirmed(latency=30.0)
    arrivals.on_send(now=0.0)
    arrivals.on_back(Heard.REPLY, now=1.0, sent_at=0.0)
    assert read_at(arrivals) == [1.0 + MOMENT]


def test_refusals_take_no_service_so_their_time_says_nothing() -> None:
    arrivals = confirmed(latency=30.0)
    arrivals.on_send(now=0.0)
    arrivals.on_back(Heard.ANSWER, now=0.1, sent_at=0.0)
    arrivals.on_send(now=1.0)
    arrivals.on_back(Heard.REPLY, now=31.0, sent_at=1.0)
    assert read_at(arrivals) == pytest.approx([0.1 + MOMENT, 1.0])


def test_what_timed_out_stays_unread_until_the_server_answers_something() -> None:
    arrivals = sent(0.0, 10.0)
    arrivals.on_back(Heard.NOTHING, now=5.0, sent_at=0.0)
    arrivals.forget(now=500.0)
    assert len(arrivals) == 2
    assert arrivals.may_yet_read(0.0)
    arrivals.on_back(Heard.REPLY, now=510.0, sent_at=10.0)
    assert read_at(arrivals) == [510.0 + MOMENT] * 2


def test_a_dead_connection_ends_the_wait_for_its_own_request_alone() -> None:
    arrivals = sent(0.0, 1.0)
    arrivals.on_back(Heard.DROPPED, now=3.0, sent_at=0.0)
    assert read_at(arrivals)[0] == 3.0
    assert arrivals.may_yet_read(1.0)


def test_what_was_never_sent_does_not_count() -> None:
    arrivals = sent(0.0, 1.0)
    arrivals.on_back(Heard.NOT_SENT, now=1.0, sent_at=0.0)
    arrivals.on_back(Heard.REPLY, now=2.0, sent_at=1.0)
    arrivals.on_back(Heard.NOT_SENT, now=3.0, sent_at=1.0)
    assert len(arrivals) == 0


def test_a_silent_server_is_given_up_in_the_end() -> None:
    arrivals = sent(0.0)
    assert list(arrivals.ends()) == [GIVE_UP]
    arrivals.forget(now=GIVE_UP)
    assert len(arrivals) == 0
