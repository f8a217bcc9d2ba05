"""The breaker's states: what opens it, what closes it, when an endpoint is given up, and that none mix."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from plaudit.core.breaker import Breaker, BreakerConfig, BreakerState

CONFIG = BreakerConfig(
    failures=3, first_open=1.0, max_open=8.0, patience=60.0, cold_patience=3.0, look_again=60.0
)


def opened(*, at: float = 0.0, has_worked: bool = True) -> Breaker:
    breaker = Breaker(CONFIG)
    if has_worked:
        breaker.on_success()
    for _ in range(CONFIG.failures):
        breaker.on_failure(now=at, is_unreachable=True)
    return breaker


def test_failures_in_a_row_open_it() -> None:
    breaker = Breaker(CONFIG)
    breaker.on_failure(now=0.0, is_unreachable=False)
    breaker.on_failure(now=0.0, is_unreachable=False)
    assert breaker.allows(now=0.0, in_flight=5)
    breaker.on_failure(now=0.0, is_unreachable=False)
    assert breaker.state is BreakerState.OPEN
    assert not breaker.allows(now=0.5, in_flight=0)


def test_a_success_between_failures_keeps_it_closed() -> None:
    breaker = Breaker(CONFIG)
    for _ in range(20):
        breaker.on_failure(now=0.0, is_unreachable=False)
        breaker.on_failure(now=0.0, is_unreachable=False)
        breaker.on_success()
    assert breaker.state is BreakerState.CLOSED


def test_when_its_time_is_up_one_probe_may_leave_and_no_second() -> None:
    breaker = opened()
    assert breaker.allows(now=breaker.open_until, in_flight=0)
    assert breaker.state is BreakerState.HALF_OPEN
    assert not breaker.allows(now=breaker.open_until, in_flight=1)


def test_a_probe_that_comes_back_closes_it() -> None:
    breaker = opened()
    breaker.allows(now=1.0, in_flight=0)
    breaker.on_success()
    assert breaker.state is BreakerState.CLOSED
    assert breaker.allows(now=1.0, in_flight=100)


def test_each_failed_probe_is_followed_by_a_longer_pause_up_to_the_longest() -> None:
    breaker = opened()
    pauses = [breaker.open_until]
    for _ in range(6):
        now = breaker.open_until
        assert breaker.allows(now=now, in_flight=0)
        breaker.on_failure(now=now, is_unreachable=False)
        if breaker.state is BreakerState.LOST:
            break
        pauses.append(breaker.open_until - now)
    assert pauses == sorted(pauses)
    assert pauses[1] > pauses[0]
    assert max(pauses) <= CONFIG.max_open


def test_an_endpoint_without_a_success_for_its_patience_is_given_up() -> None:
    breaker = opened()
    now = 0.0
    while breaker.state is not BreakerState.LOST:
        now = breaker.open_until
        breaker.allows(now=now, in_flight=0)
        breaker.on_failure(now=now, is_unreachable=True)
        assert now <= CONFIG.patience + CONFIG.max_open
    assert now >= CONFIG.patience
    assert not breaker.allows(now=now + 1e6, in_flight=0)


def test_an_endpoint_nobody_ever_reached_is_given_up_within_seconds() -> None:
    breaker = opened(has_worked=False)
    now = 0.0
    while breaker.state is not BreakerState.LOST:
        now = breaker.open_until
        breaker.allows(now=now, in_flight=0)
        breaker.on_failure(now=now, is_unreachable=True)
    assert CONFIG.cold_patience <= now <= 2 * CONFIG.cold_patience


def test_a_failure_that_left_before_the_loss_does_not_bring_the_endpoint_back() -> None:
    breaker = Breaker(CONFIG)
    breaker.lose(now=0.0)
    for _ in range(10):
        breaker.on_failure(now=0.5, is_unreachable=False)
    assert breaker.state is BreakerState.LOST


def test_a_reply_shows_that_an_endpoint_given_up_is_alive() -> None:
    breaker = Breaker(CONFIG)
    breaker.lose(now=0.0)
    breaker.on_success()
    assert breaker.state is BreakerState.CLOSED


def test_revived_it_lets_one_probe_through_at_once() -> None:
    breaker = Breaker(CONFIG)
    breaker.lose(now=0.0)
    breaker.revive(now=5.0)
    assert breaker.allows(now=5.0, in_flight=0)
    assert not breaker.allows(now=5.0, in_flight=1)


def test_revived_it_has_all_its_patience_again() -> None:
    breaker = opened()
    breaker.lose(now=0.0)
    breaker.revive(now=500.0)
    breaker.allows(now=500.0, in_flight=0)
    breaker.on_failure(now=500.0, is_unreachable=False)
    assert breaker.state is BreakerState.OPEN


def test_an_endpoint_given_up_is_due_for_another_look_after_a_while() -> None:
    breaker = Breaker(CONFIG)
    assert not breaker.is_due(now=1e9)
    breaker.lose(now=10.0)
    assert not breaker.is_due(now=10.0 + CONFIG.look_again - 0.1)
    assert breaker.is_due(now=10.0 + CONFIG.look_again)


class BreakerMachine(RuleBasedStateMachine):
    """Any order of events, as a dispatcher could bring them about."""

    def __init__(self) -> None:
        super().__init__()
        self.breaker = Breaker(CONFIG)
        self.now = 0.0
        self.in_flight = 0
        self.is_lost = False

    @rule(seconds=st.floats(min_value=0.0, max_value=30.0))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule(count=st.integers(min_value=1, max_value=4))
    def calls_leave(self, count: int) -> None:
        for _ in range(count):
            state, until = self.breaker.state, self.breaker.open_until
            if not self.breaker.allows(now=self.now, in_flight=self.in_flight):
                continue
            assert not self.is_lost
            assert not (state is BreakerState.OPEN and self.now < until), "open, and yet a call left"
            if self.breaker.state is BreakerState.HALF_OPEN:
                assert self.in_flight == 0, "a probe leaves alone"
            self.in_flight += 1

    @precondition(lambda self: self.in_flight > 0)
    @rule()
    def a_reply_comes(self) -> None:
        self.in_flight -= 1
        self.breaker.on_success()
        self.is_lost = False
        assert self.breaker.state is BreakerState.CLOSED

    @precondition(lambda self: self.in_flight > 0)
    @rule(is_unreachable=st.booleans())
    def a_call_breaks(self, is_unreachable: bool) -> None:
        self.in_flight -= 1
        state, until = self.breaker.state, self.breaker.open_until
        self.breaker.on_failure(now=self.now, is_unreachable=is_unreachable)
        if state is BreakerState.OPEN:
            assert self.breaker.open_until == until, "stragglers do not prolong the pause"
        if state is BreakerState.HALF_OPEN:
            assert self.breaker.state in (BreakerState.OPEN, BreakerState.LOST)
        self.is_lost = self.breaker.state is BreakerState.LOST

    @precondition(lambda self: self.in_flight > 0)
    @rule()
    def a_call_is_cancelled_or_rejected(self) -> None:
        self.in_flight -= 1

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
    def only_a_look_or_a_reply_brings_a_lost_endpoint_back(self) -> None:
        assert (self.breaker.state is BreakerState.LOST) == self.is_lost

    @invariant()
    def a_pause_is_never_longer_than_the_longest(self) -> None:
        if self.breaker.state is BreakerState.OPEN:
            assert self.breaker.open_until - self.now <= CONFIG.max_open

    @invariant()
    def an_idle_endpoint_that_is_not_lost_is_tried_again_in_time(self) -> None:
        if self.in_flight == 0 and not self.is_lost:
            later = max(self.now, self.breaker.open_until)
            if self.breaker.state is not BreakerState.OPEN or self.now >= self.breaker.open_until:
                later = self.now
            state = self.breaker.state
            assert self.breaker.allows(now=later, in_flight=0)
            self.breaker.state = state  # asking was hypothetical


TestBreakerMachine = BreakerMachine.TestCase
TestBreakerMachine.settings = settings(
    max_examples=60, stateful_step_count=30, deadline=None, derandomize=True, database=None
)
