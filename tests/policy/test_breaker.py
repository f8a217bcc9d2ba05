"""The door of an endpoint: what shuts it, how it is probed, what opens it, and when it is given up."""

from __future__ import annotations

import copy
import math
from itertools import pairwise

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from plaudit.policy.breaker import BadCall, Breaker, BreakerConfig, BreakerState

CONFIG = BreakerConfig()
NOTHING = float("-inf")
"""No call was let in so far."""
TRIP = 0.1
"""Seconds that a bad call takes to come back."""


def fail(
    breaker: Breaker,
    *,
    sent_at: float,
    passed: float = NOTHING,
    accepted: int = 5,
    who: object = None,
    retry_after: float | None = None,
    is_refusal: bool = False,
    is_counted: bool = False,
    is_unreachable: bool = False,
) -> bool:
    """A call comes back bad, a round trip after it was sent."""
    call = BadCall(
        sent_at, who, retry_after, is_refusal=is_refusal, is_counted=is_counted, is_unreachable=is_unreachable
    )
    return breaker.on_bad(call, now=sent_at + TRIP, passed=passed, accepted=accepted)


def shut(*, at: float = 0.0, has_worked: bool = True, retry_after: float | None = None) -> Breaker:
    """A breaker that was found shut at this time."""
    breaker = Breaker()
    if has_worked:
        breaker.on_success(sent_at=at - 5.0)
    assert fail(breaker, sent_at=at - TRIP, accepted=0, retry_after=retry_after)
    return breaker


def probe(breaker: Breaker, *, now: float) -> float:
    """Send a probe as soon as it may leave; the answer is when it left."""
    sent_at = breaker.ready_at(now=now)
    breaker.on_send(now=sent_at)
    assert breaker.state is BreakerState.HALF_OPEN
    return sent_at


# -- what shuts it ----------------------------------------------------------------------------------------


def test_calls_that_fail_in_the_knowledge_of_others_that_failed_shut_it() -> None:
    breaker = Breaker()
    assert not fail(breaker, sent_at=0.0)
    assert fail(breaker, sent_at=0.2)
    assert breaker.state is BreakerState.OPEN
    assert breaker.ready_at(now=0.3) > 0.3


def test_calls_that_left_together_fail_together_and_are_one_piece_of_news() -> None:
    breaker = Breaker()
    assert not any(fail(breaker, sent_at=0.0, accepted=60 - n) for n in range(60))
    assert breaker.is_closed


def test_where_nothing_is_under_way_the_first_bad_call_shuts_it() -> None:
    assert fail(Breaker(), sent_at=0.0, accepted=0)


def test_bad_calls_say_nothing_where_later_ones_were_let_in() -> None:
    breaker = Breaker()
    assert not any(fail(breaker, sent_at=n, passed=n + 0.05, accepted=0) for n in range(100))
    assert breaker.is_closed


def test_a_call_let_in_between_two_that_failed_keeps_it_open() -> None:
    breaker = Breaker()
    for n in range(50):
        assert not fail(breaker, sent_at=n, passed=n - 0.5)
    assert breaker.is_closed


def failures_until_shut(*, failing: float) -> int:
    """Failures in a row that shut the door of an endpoint of whose calls this share fails at all times."""
    breaker = Breaker()
    for n in range(400):
        breaker.on_send(now=n)
        if n * failing % 1.0 + failing >= 1.0:
            assert not fail(breaker, sent_at=n, passed=n + 0.5)
        else:
            breaker.on_success(sent_at=n)
    count, now = 1, 500.0
    while not fail(breaker, sent_at=now, passed=499.0):
        count, now = count + 1, now + 1.0
    return count


def test_the_more_calls_fail_at_all_times_the_longer_a_run_of_them_must_be() -> None:
    assert failures_until_shut(failing=0.0) == 2
    assert 2 < failures_until_shut(failing=0.25) < failures_until_shut(failing=0.5) < 10
    assert failures_until_shut(failing=0.9) < 10


def test_an_endpoint_that_refuses_at_the_same_height_is_full_and_not_shut() -> None:
    breaker = Breaker()
    assert not any(fail(breaker, sent_at=n, accepted=40, is_refusal=True) for n in range(20))
    assert breaker.is_closed


def test_one_that_refuses_though_fewer_are_under_way_is_shut() -> None:
    breaker = Breaker()
    assert not fail(breaker, sent_at=0.0, accepted=40, is_refusal=True)
    assert fail(breaker, sent_at=1.0, accepted=30, is_refusal=True)


# -- how it is probed -------------------------------------------------------------------------------------


def test_one_probe_leaves_soon_and_no_second_beside_it() -> None:
    breaker = shut()
    sent_at = probe(breaker, now=0.0)
    assert 0.0 < sent_at < 0.2
    assert breaker.ready_at(now=sent_at) > sent_at


def test_a_probe_that_is_answered_opens_the_door() -> None:
    breaker = shut()
    sent_at = probe(breaker, now=0.0)
    breaker.on_success(sent_at=sent_at)
    assert breaker.ready_at(now=sent_at) == sent_at
    assert breaker.is_closed


def test_a_probe_that_is_under_way_for_longer_than_bad_calls_take_was_let_in() -> None:
    breaker = shut()
    sent_at = probe(breaker, now=0.0)
    assert breaker.ready_at(now=sent_at + TRIP) > sent_at + TRIP
    assert breaker.ready_at(now=sent_at + 2 * TRIP) == sent_at + 2 * TRIP
    assert breaker.is_closed


def test_a_reply_to_a_call_let_in_before_does_not_open_the_door() -> None:
    breaker = shut(at=10.0)
    breaker.on_success(sent_at=9.0)
    assert breaker.state == "open"
    probe(breaker, now=10.0)
    breaker.on_success(sent_at=9.0)
    assert breaker.state == "half-open"


def test_stragglers_neither_end_nor_prolong_the_wait_for_a_probe() -> None:
    breaker = shut(at=10.0)
    until = breaker.open_until
    for _ in range(20):
        fail(breaker, sent_at=9.905, accepted=3)
    assert (breaker.state, breaker.open_until) == (BreakerState.OPEN, until)
    sent_at = probe(breaker, now=10.0)
    fail(breaker, sent_at=9.99)
    assert breaker.state == "half-open"
    fail(breaker, sent_at=sent_at)
    assert breaker.state == "open"


def test_the_longer_it_was_shut_the_rarer_the_probes_but_never_rarer_than_the_longest_wait() -> None:
    breaker, now, waits = shut(), 0.0, []
    while now < 60.0:
        sent_at = probe(breaker, now=now)
        waits.append(round(sent_at - now, 6))
        assert sent_at - now <= max(0.2 * now, 0.1)  # the end of an outage is found soon after it
        fail(breaker, sent_at=sent_at)
        now = sent_at + TRIP
    assert waits == sorted(waits)
    assert waits[-1] == pytest.approx(CONFIG.longest_wait)
    assert len(waits) < 80


# -- what the endpoint says -------------------------------------------------------------------------------


def test_where_the_endpoint_says_sooner_it_is_asked_sooner() -> None:
    breaker = shut()
    now = 0.0
    while now < 60.0:
        sent_at = probe(breaker, now=now)
        now = sent_at + TRIP
        fail(breaker, sent_at=sent_at, retry_after=0.3 if now >= 60.0 else None)
    assert breaker.ready_at(now=now) == pytest.approx(now + 0.3)


def test_an_hour_asked_for_is_tested_early_and_then_less_and_less_often() -> None:
    breaker = shut(retry_after=3600.0)
    now, sent = 0.0, []
    while now < 500.0:
        sent.append(probe(breaker, now=now))
        fail(breaker, sent_at=sent[-1], retry_after=3600.0 - sent[-1], is_refusal=True)
        now = sent[-1] + TRIP
    assert sent[0] < 0.2
    assert len(sent) < 32
    assert all(later < 3.0 * earlier + 1.0 for earlier, later in pairwise(sent))


def probes_until_open(breaker: Breaker, *, since: float, seconds: float) -> list[float]:
    """Probe an endpoint that is shut for so long and says truly when it will be back; when each left."""
    assert fail(breaker, sent_at=since - TRIP, accepted=0, retry_after=seconds, is_refusal=True)
    sent = []
    now = since
    while not breaker.is_closed:
        sent.append(probe(breaker, now=now) - since)
        if sent[-1] >= seconds - 1e-9:
            breaker.on_success(sent_at=since + sent[-1])
        else:
            fail(breaker, sent_at=since + sent[-1], retry_after=seconds - sent[-1] - TRIP, is_refusal=True)
            now = since + sent[-1] + TRIP
    return sent


def test_a_door_believed_for_what_it_said_is_asked_by_our_own_schedule_once_it_says_nothing() -> None:
    breaker, now = Breaker(), 10.0
    for _ in range(3):  # it says when it will be back, and is
        probes_until_open(breaker, since=now, seconds=1.0)
        now += 10.0
    assert fail(breaker, sent_at=now - TRIP, accepted=0, is_refusal=True)
    assert breaker.ready_at(now=now) < now + 0.5


def test_an_endpoint_that_said_twice_right_when_it_is_back_is_believed() -> None:
    breaker = Breaker()
    first, *_, last = (probes_until_open(breaker, since=10.0 * n, seconds=1.0) for n in range(1, 5))
    assert len(first) > 1
    assert last == [pytest.approx(1.0)]


def test_one_that_was_believed_is_tested_again_where_it_asks_for_far_more() -> None:
    breaker = Breaker()
    for n in range(1, 5):
        probes_until_open(breaker, since=10.0 * n, seconds=1.0)
    assert probes_until_open(breaker, since=100.0, seconds=300.0)[0] < 2.0


# -- calls and their attempts -----------------------------------------------------------------------------


def test_one_call_that_fails_again_and_again_does_not_make_the_endpoint_sick() -> None:
    breaker, call = Breaker(), object()
    fail(breaker, sent_at=0.0, accepted=0, who=call)
    fail(breaker, sent_at=probe(breaker, now=0.1), who=call)
    assert not breaker.is_sick


def test_different_calls_that_fail_one_after_another_do() -> None:
    breaker = Breaker()
    fail(breaker, sent_at=0.0, accepted=0, who="one")
    fail(breaker, sent_at=probe(breaker, now=0.1), who="other")
    assert breaker.is_sick
    breaker.on_success(sent_at=probe(breaker, now=1.0))
    assert not breaker.is_sick


def test_a_door_that_is_shut_again_at_once_was_hardly_open() -> None:
    breaker, now = shut(), 0.0
    for openings in range(3):
        assert breaker.short_openings == openings
        sent_at = probe(breaker, now=now)
        breaker.on_success(sent_at=sent_at)
        now = sent_at + 0.5
        assert fail(breaker, sent_at=now - TRIP, accepted=0)
    breaker.on_success(sent_at=probe(breaker, now=now))
    for _ in range(100):
        breaker.on_send(now=now + 1.0)
    assert fail(breaker, sent_at=now + 2.0, accepted=0)
    assert breaker.short_openings == 0


def test_a_door_that_was_open_for_seconds_was_open_however_few_calls_there_were() -> None:
    breaker, now = shut(), 0.0
    for _ in range(3):
        sent_at = probe(breaker, now=now)
        breaker.on_success(sent_at=sent_at)
        now = sent_at + 5.0
        assert fail(breaker, sent_at=now - TRIP, accepted=0)
    assert breaker.short_openings == 0


def test_a_ban_that_every_look_prolongs_is_left_once_what_it_asks_for_is_waited_for() -> None:
    breaker, banned_until = shut(retry_after=7.0), 7.0
    now = 0.0
    while not breaker.is_closed:
        now = probe(breaker, now=now) + TRIP
        if now - TRIP >= banned_until:
            breaker.on_success(sent_at=now - TRIP)
        else:
            banned_until = now + 7.0
            fail(breaker, sent_at=now - TRIP, retry_after=7.0, is_refusal=True)
        assert now < 30.0


@pytest.mark.parametrize("allowed", [2, 3, 10])
@pytest.mark.parametrize("asks_for", [None, 1.0, 20.0])
def test_a_window_that_counts_what_it_refuses_is_left_the_time_to_empty(
    allowed: int, asks_for: float | None
) -> None:
    breaker = Breaker()
    counted = [0.0] * allowed
    now = 0.5
    assert fail(
        breaker, sent_at=now - TRIP, accepted=0, retry_after=asks_for, is_refusal=True, is_counted=True
    )
    while not breaker.is_closed:
        sent_at = probe(breaker, now=now)
        if sum(at > sent_at - 60.0 for at in counted) < allowed:
            breaker.on_success(sent_at=sent_at)
        else:
            fail(breaker, sent_at=sent_at, retry_after=asks_for, is_refusal=True, is_counted=True)
        counted.append(sent_at)
        now = sent_at + TRIP
        assert now < 360.0


def test_under_a_pace_a_shut_door_is_looked_at_half_as_often_as_calls_may_leave() -> None:
    breaker = Breaker()
    breaker.least_wait = 0.5
    assert fail(breaker, sent_at=0.0, accepted=0, is_refusal=True)
    looks = [0.0]
    for _ in range(4):
        looks.append(probe(breaker, now=looks[-1]))
        fail(breaker, sent_at=looks[-1], is_refusal=True)
    assert looks[1] >= 0.5
    assert all(later - earlier >= 1.0 for earlier, later in pairwise(looks[1:]))


# -- given up ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("has_worked", "is_refusal", "is_unreachable", "patience"),
    [
        (False, False, True, CONFIG.cold_patience),
        (True, False, True, CONFIG.patience),
        (False, False, False, CONFIG.patience),
        (True, True, False, CONFIG.refusal_patience),
    ],
    ids=["nobody there yet", "gone", "broken", "refuses all"],
)
def test_an_endpoint_is_waited_for_as_long_as_there_is_hope(
    has_worked: bool, is_refusal: bool, is_unreachable: bool, patience: float
) -> None:
    breaker, now = shut(has_worked=has_worked), 0.0
    while breaker.state is not BreakerState.LOST:
        sent_at = probe(breaker, now=now)
        fail(breaker, sent_at=sent_at, is_refusal=is_refusal, is_unreachable=is_unreachable)
        now = sent_at + TRIP
    assert patience <= now <= patience + 2 * CONFIG.longest_wait
    assert breaker.ready_at(now=1e9) == math.inf


def test_an_endpoint_that_may_start_late_is_waited_for_longer_than_half_a_minute() -> None:
    assert CONFIG.cold_patience > 30.0


def test_a_failure_that_left_before_the_loss_does_not_bring_the_endpoint_back() -> None:
    breaker = Breaker()
    breaker.lose(now=0.0)
    for _ in range(10):
        assert not fail(breaker, sent_at=0.5, accepted=0)
    assert breaker.state is BreakerState.LOST


def test_a_reply_shows_that_an_endpoint_given_up_is_alive() -> None:
    breaker = Breaker()
    breaker.lose(now=0.0)
    breaker.on_success(sent_at=-1.0)
    assert breaker.is_closed


def test_revived_it_lets_one_probe_through_at_once() -> None:
    breaker = Breaker()
    breaker.lose(now=0.0)
    breaker.revive(now=5.0)
    assert probe(breaker, now=5.0) == 5.0
    fail(breaker, sent_at=5.0)
    assert breaker.state is BreakerState.OPEN


def test_revived_it_has_all_its_patience_again() -> None:
    breaker = shut()
    breaker.lose(now=0.0)
    breaker.revive(now=500.0)
    fail(breaker, sent_at=probe(breaker, now=500.0))
    assert breaker.state is BreakerState.OPEN


def test_an_endpoint_given_up_is_due_for_another_look_after_a_while() -> None:
    breaker = Breaker()
    assert not breaker.is_due(now=1e9)
    breaker.lose(now=10.0)
    assert not breaker.is_due(now=10.0 + CONFIG.look_again - 0.1)
    assert breaker.is_due(now=10.0 + CONFIG.look_again)


def test_the_last_one_is_due_sooner() -> None:
    breaker = Breaker()
    breaker.lose(now=10.0)
    assert not breaker.is_due(now=10.1, is_last=True)
    assert breaker.is_due(now=10.0 + CONFIG.look_again_last, is_last=True)


# -- any order of events ----------------------------------------------------------------------------------


class BreakerMachine(RuleBasedStateMachine):
    """Any order of events, as a dispatcher could bring them about."""

    def __init__(self) -> None:
        super().__init__()
        self.breaker = Breaker()
        self.now = 0.0
        self.flights: list[float] = []
        self.passed = NOTHING
        self.is_lost = False

    @rule(seconds=st.floats(min_value=0.0, max_value=30.0) | st.floats(min_value=0.0, max_value=0.1))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule(count=st.integers(min_value=1, max_value=4))
    def calls_leave(self, count: int) -> None:
        for _ in range(count):
            state, until = self.breaker.state, self.breaker.open_until
            if self.breaker.ready_at(now=self.now) > self.now:
                continue
            assert not self.is_lost
            assert not (state is BreakerState.OPEN and self.now < until), "shut, and yet a call left"
            self.breaker.on_send(now=self.now)
            self.flights.append(self.now)
            if self.breaker.state is BreakerState.HALF_OPEN:
                assert state is BreakerState.OPEN, "a second probe beside the first"

    @precondition(lambda self: self.flights)
    @rule(which=st.integers(min_value=0, max_value=7))
    def a_reply_comes(self, which: int) -> None:
        sent_at = self.flights.pop(which % len(self.flights))
        self.passed = max(self.passed, sent_at)
        self.breaker.on_success(sent_at=sent_at)
        self.is_lost = self.breaker.state is BreakerState.LOST

    @precondition(lambda self: self.flights)
    @rule(
        which=st.integers(min_value=0, max_value=7),
        retry_after=st.none() | st.sampled_from([0.0, 0.5, 1.0, 60.0, 3600.0]),
        is_refusal=st.booleans(),
        is_unreachable=st.booleans(),
    )
    def a_call_is_bad(
        self, which: int, retry_after: float | None, is_refusal: bool, is_unreachable: bool
    ) -> None:
        sent_at = self.flights.pop(which % len(self.flights))
        was_closed, was_lost = self.breaker.is_closed, self.is_lost
        call = BadCall(sent_at, which, retry_after, is_refusal=is_refusal, is_unreachable=is_unreachable)
        is_shut = self.breaker.on_bad(call, now=self.now, passed=self.passed, accepted=len(self.flights))
        assert is_shut == (was_closed and not self.breaker.is_closed)
        self.is_lost = self.breaker.state is BreakerState.LOST
        assert self.is_lost or not was_lost

    @precondition(lambda self: self.flights)
    @rule()
    def a_call_is_cancelled(self) -> None:
        self.flights.pop()

    @rule()
    def the_endpoint_refuses_every_call(self) -> None:
        self.breaker.lose(now=self.now)
        self.is_lost = True

    @precondition(lambda self: self.is_lost)
    @rule()
    def new_work_looks_again(self) -> None:
        self.breaker.revive(now=self.now)
        self.is_lost = False

    @invariant()
    def a_probe_is_never_further_away_than_the_door_was_shut(self) -> None:
        if self.breaker.state is BreakerState.OPEN:
            shut_for = self.now - self.breaker.shut_at
            assert self.breaker.open_until - self.now <= shut_for + CONFIG.longest_wait + 1e-6

    @invariant()
    def an_endpoint_that_is_not_lost_is_tried_again_in_time(self) -> None:
        asked = copy.deepcopy(self.breaker)  # asking is hypothetical
        ready = asked.ready_at(now=self.now)
        assert math.isinf(ready) == self.is_lost
        if not self.is_lost:
            assert asked.ready_at(now=ready) == ready


TestBreakerMachine = BreakerMachine.TestCase
TestBreakerMachine.settings = settings(
    max_examples=60, stateful_step_count=30, deadline=None, derandomize=True, database=None
)


def test_at_an_endpoint_that_often_fails_not_even_its_last_call_is_at_fault() -> None:
    breaker = Breaker()
    for n in range(90):
        breaker.on_send(now=n)
        if n % 3 == 0:
            assert not fail(breaker, sent_at=n, passed=n + 0.5, who="another")
        else:
            breaker.on_success(sent_at=n)
    for n in range(100, 110):
        fail(breaker, sent_at=n, accepted=0, who="the last")
    assert not breaker.is_closed
    assert breaker.is_sick
