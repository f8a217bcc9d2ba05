"""The simulated server as a state machine: capacity of every kind, tenants, schedules, faults."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plaudit.simulator import (
    Fault,
    Knee,
    Latency,
    Queue,
    Rate,
    Reject,
    Scenario,
    SimulatedServer,
    Tenant,
    Unlimited,
    WrongHeaders,
)
from plaudit.simulator.ask import Outcome
from plaudit.simulator.scenario import Capacity
from plaudit.simulator.server import Job
from simulator.asking import FIXED, QUICK, Log, chat

VARIED = Latency(mean_tokens=50.0, sigma=0.8, seconds_per_token=0.02, first_token=0.1, round_trip=0.05)
arrivals = st.lists(st.floats(0.0, 10.0), min_size=1, max_size=40).map(sorted)


def played(scenario: Scenario, times: list[float]) -> Log:
    log = Log(scenario)
    for number, at in enumerate(times):
        log.submit(str(number), at=at)
    log.finish()
    return log


def statuses(log: Log) -> list[int]:
    return [log.outcomes[name][1].status for name in sorted(log.outcomes, key=int)]


def ended(log: Log) -> list[float]:
    return [log.outcomes[name][0] for name in sorted(log.outcomes, key=int)]


@QUICK
@given(arrivals, st.integers(1, 5), st.integers(0, 5))
def test_never_more_are_served_at_once_than_there_are_slots(
    times: list[float], slots: int, max_queue: int
) -> None:
    for capacity in (Reject(slots=slots), Queue(slots=slots, max_queue=max_queue)):
        log = played(Scenario(latency=VARIED, capacity=capacity), times)
        assert log.server.stats.peak_running <= slots
        assert len(log.outcomes) == len(times)
        assert log.server.stats.in_flight == 0


@QUICK
@given(arrivals, st.floats(0.5, 5.0), st.integers(1, 5))
def test_a_rate_is_never_exceeded(times: list[float], per_second: float, burst: int) -> None:
    log = played(Scenario(latency=VARIED, capacity=Rate(per_second=per_second, burst=burst)), times)
    accepted = [at for at, status in zip(times, statuses(log), strict=True) if status == 200]
    for first, start in enumerate(accepted):
        for last in range(first, len(accepted)):
            assert last - first + 1 <= burst + per_second * (accepted[last] - start) + 1e-6


@QUICK
@given(
    arrivals, st.sampled_from([Reject(slots=2), Queue(slots=2), Rate(per_second=3, burst=2), Knee(knee=2)])
)
def test_the_same_seed_gives_the_same_log(times: list[float], capacity: Capacity) -> None:
    scenario = Scenario(
        seed=3,
        latency=VARIED,
        capacity=capacity,
        tenants=(Tenant(load=1, on=1.0, off=1.5),),
        faults=(Fault("slow", probability=0.2), Fault("error", probability=0.2)),
    )
    one, two = played(scenario, times), played(scenario, times)
    assert one.outcomes == two.outcomes
    assert one.server.stats == two.server.stats


@QUICK
@given(arrivals, st.permutations(range(12)))
def test_the_order_of_arrival_changes_no_answer(times: list[float], order: list[int]) -> None:
    scenario = Scenario(latency=VARIED, faults=(Fault("babble", probability=0.3),))
    texts: list[dict[int, str]] = []
    for numbers in (list(range(12)), order):
        log = Log(scenario)
        for position, number in enumerate(numbers):
            log.submit(str(number), at=times[min(position, len(times) - 1)])
        replies = {int(name): outcome.reply for name, (_, outcome) in log.finish().items()}
        texts.append({number: reply.text for number, reply in replies.items() if reply is not None})
    assert len(texts[0]) == 12
    assert texts[0] == texts[1]


@QUICK
@given(arrivals)
def test_being_asked_late_changes_nothing(times: list[float]) -> None:
    scenario = Scenario(latency=VARIED, capacity=Queue(slots=2), tenants=(Tenant(load=1, on=1.0, off=1.0),))
    punctual = played(scenario, times)
    server = SimulatedServer(scenario)
    late: dict[str, Outcome] = {}
    for number, at in enumerate(times):

        def deliver(outcome: Outcome, name: str = str(number)) -> None:
            late[name] = outcome

        server.submit(chat(str(number)), now=at, deliver=deliver)
    server.deliver_due(1e3)
    assert late == {name: outcome for name, (_, outcome) in punctual.outcomes.items()}
    assert server.stats.as_dict() | {"peak_in_flight": 0} == (
        punctual.server.stats.as_dict() | {"peak_in_flight": 0}  # how late replies left is no secret
    )


def test_rejects_come_back_after_one_round_trip() -> None:
    log = played(Scenario(latency=FIXED, capacity=Reject(slots=2)), [0.0, 0.0, 0.0, 1.4, 1.5])
    assert statuses(log) == [200, 200, 429, 429, 200]
    assert ended(log) == [1.6, 1.6, 0.1, 1.5, 3.1]


def test_a_queue_serves_in_the_order_of_arrival_and_says_503_when_full() -> None:
    log = played(Scenario(latency=FIXED, capacity=Queue(slots=1, max_queue=2)), [0.0, 0.1, 0.2, 0.3])
    assert statuses(log) == [200, 200, 200, 503]
    assert ended(log) == [1.6, 3.1, 4.6, 0.4]


def test_capacity_falls_in_mid_run_without_breaking_what_is_served() -> None:
    scenario = Scenario(latency=FIXED, capacity=Reject(slots=3), schedule=((1.0, 1.0),))
    log = played(scenario, [0.0, 0.0, 0.0, 1.2, 1.5, 1.6])
    assert statuses(log) == [200, 200, 200, 429, 200, 429]


def test_time_zero_is_the_first_request() -> None:
    scenario = Scenario(latency=FIXED, capacity=Reject(slots=2), schedule=((1.0, 1.0),))
    log = played(scenario, [1000.0, 1000.5, 1001.6, 1001.7])
    assert statuses(log) == [200, 200, 429, 429]
    assert log.server.stats.arrivals == {0: 2, 1: 2}


def test_a_queue_moves_on_when_capacity_rises() -> None:
    log = played(Scenario(latency=FIXED, capacity=Queue(slots=1), schedule=((1.0, 2.0),)), [0.0, 0.0])
    assert ended(log) == [1.6, 2.6]


def test_a_tenant_takes_slots_while_it_is_there() -> None:
    scenario = Scenario(latency=FIXED, capacity=Queue(slots=2), tenants=(Tenant(load=2, on=1.0, off=5.0),))
    log = played(scenario, [0.0, 0.0, 0.5])
    assert ended(log) == [2.6, 2.6, 4.1]


def test_a_tenant_takes_its_share_of_a_rate() -> None:
    scenario = Scenario(latency=FIXED, capacity=Rate(per_second=2.0, burst=1), tenants=(Tenant(load=1.0),))
    log = played(scenario, [0.0, 0.5, 1.0])
    assert statuses(log) == [200, 429, 200]


@pytest.mark.parametrize(("exponent", "last"), [(0.0, 6.0), (1.0, 12.0)])
def test_past_its_knee_a_machine_slows_down_for_everybody(exponent: float, last: float) -> None:
    scenario = Scenario(latency=FIXED, capacity=Knee(knee=2, exponent=exponent))
    log = played(scenario, [0.0] * 4)
    # Four share what two would have: twice as slow on a plateau, four times when it thrashes by (2 / 4) ** 1.
    assert ended(log) == [pytest.approx(last / 2 + 0.1)] * 4
    alone = played(scenario, [0.0] * 2)
    assert ended(alone) == [1.6, 1.6]


def test_a_tenant_slows_a_machine_past_its_knee() -> None:
    scenario = Scenario(
        latency=FIXED,
        capacity=Knee(knee=1, exponent=0.0),
        tenants=(Tenant(load=1, on=1.0, off=100.0),),
    )
    assert ended(played(scenario, [0.0])) == [2.1]  # half speed for a second, then full speed


def test_a_window_lets_a_minutes_worth_through_at_once() -> None:
    scenario = Scenario(latency=FIXED, capacity=Rate(per_second=0.05, window=60.0, hints="retry-after"))
    log = played(scenario, [0.0, 0.0, 0.0, 10.5, 60.0])
    assert statuses(log) == [200, 200, 200, 429, 200]
    reject = log.outcomes["3"][1]
    assert (reject.retry_after, reject.rate) == (50.0, None)


def test_a_rate_can_count_tokens_too() -> None:
    scenario = Scenario(latency=FIXED, capacity=Rate(per_second=100.0, burst=100, tokens_per_second=4.0))
    log = played(scenario, [0.0, 0.0, 0.0])
    assert statuses(log) == [200, 200, 429]
    reject = log.outcomes["2"][1]
    assert "tokens" in reject.message
    assert reject.rate is not None
    assert (reject.rate.limit_tokens, reject.rate.remaining_tokens) == (240, 38)
    assert reject.retry_after == 15.75


def test_rejected_attempts_do_not_change_what_a_question_gets() -> None:
    faults = (Fault("babble", probability=0.5),)
    direct = played(Scenario(latency=FIXED, faults=faults), [0.0] * 10)
    log = Log(Scenario(latency=FIXED, capacity=Reject(slots=1), faults=faults))
    log.submit("9", at=0.0)
    for number in range(9):
        log.submit(str(number), at=0.1)
    for number in range(9):
        log.submit(str(number), at=2.0 * (number + 1))
    assert log.finish().keys() == direct.outcomes.keys()
    for name, (_, outcome) in log.outcomes.items():
        assert outcome == direct.outcomes[name][1]


def test_a_fault_of_every_period_comes_back_and_goes_again() -> None:
    fault = Fault("error", status=503, during=(1.0, 2.0), every=5.0)
    log = played(
        Scenario(latency=FIXED, faults=(fault,)), [0.0, 0.9, 1.0, 1.9, 2.0, 5.9, 6.0, 6.99, 7.0, 51.5]
    )
    assert statuses(log) == [200, 200, 503, 503, 200, 200, 503, 503, 200, 503]


def test_a_fault_before_the_limits_takes_no_token_and_needs_no_room() -> None:
    times = [0.0, 0.0, 0.0, 0.0]
    random_429 = Fault("error", status=429, requests=(0, 2), before_limits=True)
    limited = Scenario(latency=FIXED, capacity=Rate(per_second=0.1, burst=2), faults=(random_429,))
    assert statuses(played(limited, times)) == [429, 429, 200, 200]
    after = limited.replace(faults=(Fault("error", status=500, requests=(0, 2)),))
    assert statuses(played(after, times)) == [500, 500, 429, 429]
    away = Fault("error", status=500, requests=(1, 4), before_limits=True)
    assert statuses(played(Scenario(latency=FIXED, capacity=Reject(1), faults=(away,)), times)) == [
        200,
        500,
        500,
        500,
    ]


def test_refusals_over_capacity_are_counted_apart_from_those_by_chance() -> None:
    fault = Fault("error", status=429, requests=(0, 2), before_limits=True)
    log = played(Scenario(latency=FIXED, capacity=Reject(slots=1), faults=(fault,)), [0.0] * 5)
    assert log.server.stats.rejects == {429: 4}
    assert log.server.stats.over_capacity == 2


def test_a_refusal_by_chance_is_drawn_anew_at_every_knock() -> None:
    fault = Fault("error", probability=0.5, status=429, before_limits=True)
    scenario = Scenario(latency=FIXED, capacity=Reject(slots=1), faults=(fault,))
    knocks = 0
    for number in range(100):
        log = Log(scenario)
        log.submit("in the way" if number else "first", at=0.0)
        while str(number) not in log.outcomes or log.outcomes[str(number)][1].status != 200:
            log.submit(str(number), at=2.0 * (knocks := knocks + 1))
            log.finish()
    assert 150 < knocks < 260


@pytest.mark.parametrize(
    ("capacity", "told"),
    [
        (Reject(slots=1), None),
        (Reject(slots=1, hints="exact"), 1.2),
        (Reject(slots=1, hints="retry-after"), 2.0),
        (Reject(slots=1, hints="exact", retry_after=3600.0), 3600.0),
        (Rate(per_second=0.5, hints="none"), None),
        (Rate(per_second=0.5, hints="headers"), None),
        (Rate(per_second=0.5, hints="exact"), 1.7),
        (Rate(per_second=0.5, hints="retry-after"), 2.0),
        (Rate(per_second=0.5, hints="retry-after", retry_after=0.0), 0.0),
        (Rate(per_second=0.5, retry_after=3600.0), 3600.0),
    ],
    ids=repr,
)
def test_retry_after_is_absent_true_rounded_up_or_absurd(capacity: Capacity, told: float | None) -> None:
    log = played(Scenario(latency=FIXED, capacity=capacity), [0.0, 0.3])
    outcome = log.outcomes["1"][1]
    assert (outcome.status, outcome.retry_after) == (429, told)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (None, (10, 9, 0.5)),
        (WrongHeaders(limit_factor=10.0), (100, 9, 0.5)),
        (WrongHeaders(reset_factor=60.0), (10, 9, 30.0)),
        (WrongHeaders(reset_factor=0.0), (10, 9, 0.0)),
        (WrongHeaders(remaining=0), (10, 0, 0.5)),
        (WrongHeaders(remaining=1_000_000), (10, 1_000_000, 0.5)),
    ],
)
def test_headers_can_be_wrong(wrong: WrongHeaders | None, told: tuple[int, int, float]) -> None:
    log = played(Scenario(latency=FIXED, capacity=Rate(per_second=2.0, burst=10, wrong=wrong)), [0.0])
    rate = log.outcomes["0"][1].rate
    assert rate is not None
    assert (rate.limit_requests, rate.remaining_requests, rate.reset_requests) == told


def test_slow_requests_take_so_many_times_as_long() -> None:
    log = played(Scenario(latency=FIXED, faults=(Fault("slow", factor=10.0, requests=(1, 2)),)), [0.0, 0.0])
    assert ended(log) == [1.6, 15.1]


def test_a_withdrawn_request_frees_its_slot_or_its_place_in_the_queue() -> None:
    server = SimulatedServer(Scenario(latency=FIXED, capacity=Queue(slots=1)))
    got: list[str] = []

    def submit(name: str) -> Job:
        return server.submit(chat(name), now=0.0, deliver=lambda _: got.append(name))

    jobs = [submit(name) for name in "abc"]
    server.withdraw(jobs[1], now=0.5)
    server.withdraw(jobs[0], now=1.0)
    server.withdraw(jobs[0], now=1.0)
    assert server.next_due() == 2.6
    server.deliver_due(2.6)
    assert got == ["c"]
    assert (server.stats.withdrawn, server.stats.in_flight) == (2, 0)


def test_a_new_scenario_takes_over_while_the_old_requests_go_on() -> None:
    log = Log(Scenario(latency=FIXED, capacity=Reject(slots=1)))
    log.submit("a", at=0.0)
    log.server.become(Scenario(latency=FIXED, capacity=Reject(slots=2), schedule=((5.0, 1.0),)), now=1.0)
    log.submit("b", at=1.2)
    log.submit("c", at=1.3)
    log.submit("d", at=6.3)
    log.submit("e", at=6.4)
    log.finish()
    assert {name: outcome.status for name, (_, outcome) in log.outcomes.items()} == {
        "a": 200, "b": 200, "c": 429, "d": 200, "e": 429,
    }  # fmt: skip
    assert log.outcomes["a"][0] == 1.6


def test_statistics_count_what_was_sent_and_what_was_paid_twice() -> None:
    log = Log(Scenario(latency=FIXED, faults=(Fault("error", status=500, requests=(0, 1)),)))
    log.submit("a", at=0.0)
    log.submit("a", at=1.0)
    log.submit("b", at=1.5)
    log.finish()
    assert log.server.stats.as_dict() == {
        "requests": 3,
        "answered": 2,
        "rejected": 1,
        "rejects": {"500": 1},
        "over_capacity": 0,
        "faults": {"error": 1},
        "withdrawn": 0,
        "in_flight": 0,
        "peak_in_flight": 2,
        "peak_running": 2,
        "unique": 2,
        "duplicates": 1,
        "prompt_tokens": 2,
        "completion_tokens": 200,
        "arrivals": {"0": 1, "1": 2},
    }
    fresh = log.server.stats.reset()
    assert (fresh.requests, fresh.unique, fresh.in_flight) == (0, 0, 0)


def test_an_idle_server_is_never_due() -> None:
    server = SimulatedServer(Scenario(capacity=Queue(slots=1), tenants=(Tenant(load=1, on=1.0, off=1.0),)))
    assert server.next_due() is None
    assert SimulatedServer(Scenario(capacity=Unlimited())).next_due() is None


def test_work_done_past_the_knee_is_what_the_throughput_says() -> None:
    knee, count, exponent = 4, 16, 1.3
    log = played(Scenario(latency=FIXED, capacity=Knee(knee=knee, exponent=exponent)), [0.0] * count)
    throughput = knee * (knee / count) ** exponent
    assert ended(log)[-1] == pytest.approx(count * 1.5 / throughput + 0.1)
    assert math.isclose(ended(log)[0], ended(log)[-1])
