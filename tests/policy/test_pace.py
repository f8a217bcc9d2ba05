"""Sends keep to the rate an endpoint accepts, find it from refusals alone, and are never frozen."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plaudit.policy.pace import Pace, PaceTrial, evidence, rate_hint
from plaudit.simulator.capacity import Bucket
from plaudit.types import RateHeaders

thorough = settings(max_examples=100, deadline=None, derandomize=True, database=None)

ROUND_TRIP = 0.1


class Server:
    """Accepts so many calls a second, after a burst, and refuses some of them whatever the rate is."""

    def __init__(self, rate: float, *, burst: int = 2, weather: float = 0.0) -> None:
        self.bucket = Bucket(rate=rate, burst=burst)
        self.weather = weather
        self.accepted = 0
        self.refused = 0
        self._chance = random.Random(5)
        self._now = 0.0
        self._refusals: list[tuple[float, float]] = []  # when it comes back, and when the call was sent

    def serve(self, pace: Pace, *, until: float) -> None:
        """Let calls come as soon as the pace allows."""
        while self._now < until:
            while self._refusals and self._refusals[0][0] <= self._now:
                back, sent_at = self._refusals.pop(0)
                pace.on_refusal(now=back, sent_at=sent_at)
            ready = pace.ready_at(now=self._now)
            if ready > self._now:
                self._now = min(ready, self._refusals[0][0]) if self._refusals else ready
                continue
            pace.on_send(now=self._now)
            self._answer()

    def _answer(self) -> None:
        self.bucket.refill(self._now)
        if self._chance.random() >= self.weather and self.bucket.wait(1) <= 0.0:
            self.bucket.take(1)
            self.accepted += 1
        else:
            self.refused += 1
            self._refusals.append((self._now + ROUND_TRIP, self._now))


def paced(rate: float) -> Pace:
    pace = Pace()
    pace.begin(now=0.0, rate=rate)
    return pace


def known(rate: float) -> Pace:
    """A pace that has met a refusal, so that it grows with care."""
    pace = paced(4.0 * rate)
    Server(rate).serve(pace, until=20.0)
    assert pace.rate is not None
    return pace


def send_until(pace: Pace, *, since: float, until: float) -> list[float]:
    """Send as soon as it may be, for a while; the answer is when."""
    now, sent = pace.ready_at(now=since), []
    while now < until:
        pace.on_send(now=now)
        sent.append(now)
        now = pace.ready_at(now=now)
    return sent


def test_without_a_rate_everything_may_leave_at_once() -> None:
    pace = Pace()
    for _ in range(1000):
        assert pace.ready_at(now=3.0) == 3.0
        pace.on_send(now=3.0)


def test_sends_keep_to_the_rate_while_it_is_tried() -> None:
    pace = paced(200.0)
    sent = send_until(pace, since=0.0, until=0.1)
    assert 18 <= len(sent) <= 24


def test_what_it_takes_at_once_may_leave_at_once() -> None:
    pace = Pace()
    pace.begin(now=0.0, rate=20.0, burst=30)
    sent = send_until(pace, since=0.0, until=0.001)
    assert 30 <= len(sent) <= 32


def test_a_pace_of_which_nothing_is_known_doubles_while_nothing_is_refused() -> None:
    pace = paced(5.0)
    send_until(pace, since=0.0, until=3.0)
    assert pace.rate is not None and pace.rate >= 40.0


def test_a_pace_that_was_refused_grows_slowly_at_first_and_then_faster() -> None:
    pace = known(20.0)
    assert pace.rate is not None
    before = pace.rate
    send_until(pace, since=20.0, until=23.0)
    assert before < pace.rate < 1.25 * before
    now = 23.0
    while pace.rate < 2.0 * before:  # a limit that was raised is found
        now = pace.ready_at(now=now)
        pace.on_send(now=now)
        assert now < 40.0


def test_a_pace_that_holds_nothing_back_does_not_grow() -> None:
    pace = paced(20.0)
    for step in range(1, 600):
        now = step * 0.5  # two a second, where twenty are allowed
        assert pace.ready_at(now=now) == now
        pace.on_send(now=now)
    assert pace.rate == 20.0


def test_a_refusal_of_a_call_sent_under_another_pace_says_nothing_of_this_one() -> None:
    pace = Pace()
    pace.begin(now=5.0, rate=100.0)
    send_until(pace, since=5.0, until=5.3)
    for _ in range(50):
        pace.on_refusal(now=5.3, sent_at=4.9)
    assert pace.rate is not None and pace.rate >= 100.0


def test_refusals_lower_the_rate_but_never_by_more_than_half_at_once() -> None:
    pace = paced(100.0)
    sent = send_until(pace, since=0.0, until=0.1)
    for at in sent:
        pace.on_refusal(now=0.1, sent_at=at)
    assert pace.rate is not None and 50.0 <= pace.rate < 100.0


def test_a_single_refusal_among_many_sends_changes_nothing() -> None:
    pace = paced(200.0)
    sent = send_until(pace, since=0.0, until=0.08)
    pace.on_refusal(now=0.09, sent_at=sent[3])
    assert pace.rate == 200.0


@pytest.mark.parametrize("true_rate", [5.0, 50.0, 500.0])
@pytest.mark.parametrize("guess", [0.1, 1.0, 4.0])
def test_it_finds_the_rate_of_a_token_bucket_from_its_refusals(true_rate: float, guess: float) -> None:
    pace, server = paced(guess * true_rate), Server(true_rate)
    server.serve(pace, until=60.0)
    assert server.accepted >= 0.85 * true_rate * 60.0
    assert server.refused <= 0.15 * (server.accepted + server.refused)
    assert pace.is_proven


def test_a_bucket_that_holds_a_single_call_is_not_left_empty_for_long() -> None:
    """The slightest haste has every second call refused there."""
    pace, server = paced(50.0), Server(50.0, burst=1)
    server.serve(pace, until=60.0)
    assert server.accepted >= 0.6 * 50.0 * 60.0
    assert server.refused <= 0.3 * (server.accepted + server.refused)


def test_refusals_that_lessen_with_the_pace_are_not_taken_for_weather() -> None:
    pace, server = paced(200.0), Server(50.0)
    server.serve(pace, until=30.0)
    assert pace.weather == 0.0
    assert pace.rate is not None and pace.rate <= 1.3 * 50.0


def test_a_burst_is_not_taken_for_a_rate() -> None:
    pace, server = paced(50.0), Server(20.0, burst=200)
    server.serve(pace, until=30.0)
    assert pace.rate is not None and pace.rate <= 30.0
    assert server.accepted >= 0.85 * (200 + 20.0 * 30.0)


@pytest.mark.parametrize("share", [0.1, 0.2])
def test_refusals_that_a_much_slower_pace_does_not_lessen_are_not_for_the_rate(share: float) -> None:
    """Without that, the pace would go down until nothing is left of it."""
    pace, server = paced(100.0), Server(100.0, weather=share)
    server.serve(pace, until=60.0)
    assert server.accepted >= 0.6 * 100.0 * (1.0 - share) * 60.0


@pytest.mark.parametrize("share", [0.04, 0.14, 0.3, 0.45])
@pytest.mark.parametrize("rate", [20.0, 200.0, 1000.0])
def test_a_pace_far_too_slow_grows_though_some_are_refused_at_any_pace(share: float, rate: float) -> None:
    pace, server = paced(0.05 * rate), Server(rate, burst=5, weather=share)
    server.serve(pace, until=60.0)
    assert server.accepted >= 0.5 * rate * 60.0


def test_a_pace_of_which_nothing_is_known_is_tried_with_few_calls() -> None:
    """Headers may claim any rate."""
    pace, server = paced(100_000.0), Server(50.0)
    pace.refuse_time = ROUND_TRIP
    server.serve(pace, until=0.2)
    assert server.refused <= 64


def test_equal_shares_at_two_paces_speak_for_weather_and_equal_numbers_for_a_rate() -> None:
    fast = PaceTrial(100.0, sent=50, refused=25, seconds=0.5)
    assert evidence(PaceTrial(50.0, sent=50, refused=25, seconds=1.0), fast) > 10.0
    assert evidence(PaceTrial(50.0, sent=50, refused=1, seconds=1.0), fast) < -10.0


def test_a_rate_that_nobody_measured_is_not_proven() -> None:
    pace = paced(20.0)
    assert not pace.is_proven
    send_until(pace, since=0.0, until=1.0)
    assert not pace.is_proven


def test_where_far_more_is_sent_than_was_refused_it_is_no_rate() -> None:
    pace = known(20.0)
    now = 20.0
    while not pace.is_none:
        now = pace.ready_at(now=now)
        pace.on_send(now=now)
        assert now < 120.0
    pace.end()
    assert pace.ready_at(now=now) == now


def test_after_a_time_in_which_nothing_was_let_in_the_next_may_leave_at_once() -> None:
    pace = paced(0.1)
    pace.on_send(now=0.0)
    pace.rest(now=2.0)
    assert pace.ready_at(now=2.0) == 2.0


@thorough
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["send", "refusal", "rest", "begin"]),
            st.floats(min_value=0.0, max_value=30.0),
            st.floats(min_value=0.0, max_value=1e5),
        ),
        max_size=100,
    )
)
def test_whatever_happens_there_is_a_time_at_which_the_next_may_leave(
    steps: list[tuple[str, float, float]],
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
                pace.on_refusal(now=now, sent_at=max(now - 0.1, 0.0))
            case "rest":
                pace.rest(now=now)
            case _:
                pace.begin(now=now, rate=number, burst=int(number) % 7)
        ready = pace.ready_at(now=now)
        assert math.isfinite(ready)
        assert now <= ready
        assert pace.rate is None or (pace.rate > 0.0 and math.isfinite(pace.rate))


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


def test_refusals_that_begin_where_a_clean_pace_is_left_are_for_the_rate() -> None:
    server, pace = Server(367.0, burst=18), paced(367.0)
    pace.refuse_time = ROUND_TRIP
    server.serve(pace, until=3.0)
    assert server.refused < 0.3 * server.accepted
    assert server.accepted > 0.9 * 3.0 * 367.0


def test_a_rate_hundreds_of_times_the_first_guess_is_found() -> None:
    server, pace = Server(150.0, burst=6), paced(2.0)
    server.serve(pace, until=10.0)
    assert not pace.is_none
    assert pace.rate == pytest.approx(150.0, rel=0.3)


def test_a_pace_under_which_half_is_refused_for_long_is_refuted_by_calls_sent_at_once() -> None:
    pace, server = paced(10.0), Server(1e6, burst=10_000, weather=0.6)
    now = 0.0
    while not pace.is_refuted:
        server.serve(pace, until=now)
        now += 0.1
        assert now < 10.0
    assert server.refused < 100


def test_a_rate_that_refuses_what_is_sent_at_once_stands_its_challenges() -> None:
    pace, server = paced(20.0), Server(20.0, weather=0.4)
    server.serve(pace, until=120.0)
    assert not pace.is_refuted
    assert server.accepted >= 0.5 * 20.0 * 120.0


# -- what the endpoint says it takes ------------------------------------------------------------------------


def sent_at_once(pace: Pace, *, now: float) -> list[bool]:
    """Let as many leave as may at this moment: of each, whether it was allowed beyond the pace."""
    sent = []
    while pace.ready_at(now=now) <= now:
        sent.append(pace.on_send(now=now))
    return sent


def test_calls_that_the_endpoint_says_it_takes_leave_at_once_beside_the_pace() -> None:
    pace = Pace()
    pace.begin(now=0.0, rate=1.0)
    sent_at_once(pace, now=0.0)
    pace.allow(20)
    assert sent_at_once(pace, now=0.1) == [True] * 20
    assert pace.ready_at(now=0.1) > 0.9  # and take nothing from it


def test_a_refusal_of_what_was_allowed_ends_the_allowance_and_says_nothing_of_the_pace() -> None:
    pace = Pace()
    pace.begin(now=0.0, rate=50.0)
    pace.allow(20)
    pace.on_send(now=0.0)
    for _ in range(20):
        pace.on_refusal(now=0.1, sent_at=0.0, was_allowed=True)
    assert sum(sent_at_once(pace, now=0.1)) == 0
    assert pace.rate == 50.0


def test_an_endpoint_that_allows_what_it_refuses_is_not_believed_again() -> None:
    pace = Pace()
    pace.begin(now=0.0, rate=1.0)
    pace.allow(1_000_000)
    sent = [pace.on_send(now=0.0) for _ in range(50)]
    for _ in sent:
        pace.on_refusal(now=0.1, sent_at=0.0, was_allowed=True)
    pace.allow(1_000_000)
    assert sum(sent_at_once(pace, now=5.0)) == 0
