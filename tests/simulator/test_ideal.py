"""The best possible makespan, against schedules found by trying them all."""

from __future__ import annotations

import math
from itertools import product
from typing import get_args

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from plaudit.simulator import (
    PRESETS,
    Fault,
    Knee,
    Latency,
    Queue,
    Rate,
    Reject,
    Scenario,
    Tenant,
    Unlimited,
    costs_of,
    ideal_makespan,
    ideal_makespan_of,
    works_of,
)
from plaudit.simulator.scenario import FaultKind
from plaudit.types import ChatRequest
from simulator.asking import FIXED, QUICK, Log

NO_WIRE = Latency(round_trip=0.0)
works_lists = st.lists(st.integers(1, 9).map(float), min_size=1, max_size=6)


def best_of_all_assignments(works: list[float], slots: int) -> float:
    """Every way to deal the works out to the slots; order within a slot does not matter."""
    ends = []
    for assignment in product(range(slots), repeat=len(works)):
        loads = [0.0] * slots
        for work, slot in zip(works, assignment, strict=True):
            loads[slot] += work
        ends.append(max(loads))
    return min(ends)


def by_small_steps(works: list[float], slots_at: list[int]) -> float:
    """List scheduling of whole seconds, one second at a time: start whatever fits, in order."""
    waiting, running, now, end = list(works), list[float](), 0, 0.0
    while waiting or running:
        running = [left for left in running if left > 0]
        slots = slots_at[min(now, len(slots_at) - 1)]
        while waiting and len(running) < slots:
            running.append(waiting.pop(0))
            end = max(end, now + running[-1])
        running = [left - 1 for left in running]
        now += 1
    return end


@QUICK
@given(works_lists, st.integers(1, 3))
def test_it_is_within_grahams_bound_of_the_best_of_all_schedules(works: list[float], slots: int) -> None:
    ideal = ideal_makespan(Scenario(latency=NO_WIRE, capacity=Reject(slots=slots)), works)
    best = best_of_all_assignments(works, slots)
    assert best <= ideal <= best * (2 - 1 / slots) + 1e-9


@QUICK
@given(works_lists, st.lists(st.integers(0, 4), min_size=1, max_size=8), st.integers(1, 3))
def test_it_follows_a_capacity_that_changes(works: list[float], changes: list[int], last: int) -> None:
    slots_at = [2, *changes, last]
    schedule = tuple((float(at), float(slots)) for at, slots in enumerate(slots_at))
    for capacity in (Reject(slots=2), Queue(slots=2)):
        scenario = Scenario(latency=NO_WIRE, capacity=capacity, schedule=schedule)
        assert ideal_makespan(scenario, works) == by_small_steps(works, slots_at)


@QUICK
@given(works_lists, st.integers(0, 2), st.integers(1, 3), st.integers(1, 3))
def test_it_leaves_tenants_their_slots(works: list[float], load: int, on: int, off: int) -> None:
    tenant = Tenant(load=load, on=float(on), off=float(off))
    scenario = Scenario(latency=NO_WIRE, capacity=Queue(slots=2), tenants=(tenant,))
    slots_at = ([2 - load] * on + [2] * off) * 60
    assert ideal_makespan(scenario, works) == by_small_steps(works, slots_at)


def test_a_server_given_everything_at_once_is_as_fast_as_the_ideal_where_queueing_is_free() -> None:
    scenario = PRESETS["queue"].replace(seed=5)
    requests = [ChatRequest(({"role": "user", "content": str(number)},), 9999) for number in range(200)]
    log = Log(scenario)
    for number in range(200):
        log.submit(str(number), at=0.0)
    last = max(at for at, _ in log.finish().values())
    assert last == pytest.approx(ideal_makespan(scenario, works_of(scenario, requests)))


def test_a_rate_starts_a_burst_and_then_one_at_a_time() -> None:
    scenario = Scenario(latency=FIXED, capacity=Rate(per_second=2.0, burst=3))
    assert ideal_makespan(scenario, [1.5] * 3) == pytest.approx(1.6)
    assert ideal_makespan(scenario, [1.5] * 7) == pytest.approx(2.0 + 1.6)
    slowed = scenario.replace(schedule=((1.0, 0.5),))
    assert ideal_makespan(slowed, [1.5] * 7) == pytest.approx(1.0 + 2 * 2.0 + 1.6)


def test_a_window_starts_what_it_allows_at_its_opening() -> None:
    scenario = Scenario(latency=FIXED, capacity=Rate(per_second=0.05, window=60.0))
    assert ideal_makespan(scenario, [1.5] * 7) == pytest.approx(120.0 + 1.6)


def test_a_knee_is_never_passed_and_no_limit_means_all_at_once() -> None:
    works = [1.0, 2.0, 3.0, 4.0]
    assert ideal_makespan(Scenario(latency=NO_WIRE, capacity=Knee(knee=2)), works) == 6.0
    assert ideal_makespan(Scenario(latency=NO_WIRE, capacity=Unlimited()), works) == 4.0
    crowded = Scenario(latency=NO_WIRE, capacity=Knee(knee=2), tenants=(Tenant(load=2),))
    assert ideal_makespan(crowded, works) == 10.0


def test_nothing_starts_during_an_outage_and_what_is_in_service_goes_on() -> None:
    outage = Fault("error", status=503, during=(1.0, 4.0))
    scenario = Scenario(latency=NO_WIRE, capacity=Reject(slots=1), faults=(outage,))
    assert ideal_makespan(scenario, [2.0]) == 2.0
    assert ideal_makespan(scenario, [2.0, 2.0]) == 6.0
    assert ideal_makespan(scenario, [0.5, 0.5, 1.0]) == 5.0
    assert ideal_makespan(scenario.replace(capacity=Unlimited()), [2.0, 2.0]) == 2.0
    for_ever = scenario.replace(faults=(Fault("down", during=(1.0, math.inf)),))
    assert ideal_makespan(for_ever, [2.0, 2.0]) == math.inf


def test_outages_come_back_and_several_are_sat_out_one_after_the_other() -> None:
    outage = Fault("reset", during=(1.0, 2.0), every=4.0)
    scenario = Scenario(latency=NO_WIRE, capacity=Queue(slots=1), faults=(outage,))
    assert ideal_makespan(scenario, [1.0] * 7) == 9.0
    second = Fault("error", during=(1.5, 3.5))
    assert ideal_makespan(scenario.replace(faults=(outage, second)), [1.0, 1.0]) == 4.5


@QUICK
@given(st.floats(0.1, 9.7), st.floats(0.05, 0.9), st.floats(0.0, 1.0), works_lists)
@example(every=0.5588399702401584, share=0.5, phase=1.0, works=[5.0, 1.0])
def test_an_outage_of_any_period_is_sat_out(
    every: float, share: float, phase: float, works: list[float]
) -> None:
    length = every * share
    start = (every - length) * phase
    outage = Fault("error", during=(start, start + length), every=every)
    latency = Latency(round_trip=0.0)
    ideal = ideal_makespan(Scenario(latency=latency, capacity=Reject(slots=1), faults=(outage,)), works)
    assert sum(works) <= ideal <= sum(works) + (len(works) + 1) * (length + 1e-9)


def test_a_rate_saves_no_more_than_its_burst_during_an_outage() -> None:
    outage = Fault("error", during=(0.0, 10.0))
    scenario = Scenario(latency=NO_WIRE, capacity=Rate(per_second=2.0, burst=3), faults=(outage,))
    assert ideal_makespan(scenario, [1.0] * 5) == pytest.approx(12.0)


def test_no_capacity_for_a_while_is_waited_for() -> None:
    scenario = Scenario(latency=NO_WIRE, capacity=Reject(slots=1), schedule=((0.5, 0.0), (9.0, 1.0)))
    assert ideal_makespan(scenario, [1.0, 1.0]) == 10.0
    for window in (None, 2.0):
        rate = Rate(per_second=1.0, window=window)
        metered = scenario.replace(capacity=rate, schedule=((0.5, 0.0), (9.0, 1.0)))
        assert 10.0 <= ideal_makespan(metered, [1.0] * 3) <= 12.0
        assert ideal_makespan(metered.replace(schedule=((0.0, 0.0),)), [1.0] * 2) == math.inf


def asked(number: int) -> ChatRequest:
    return ChatRequest(({"role": "user", "content": str(number)},))


def test_tries_that_fail_cost_their_token_and_what_was_served_for_nothing() -> None:
    requests = [asked(number) for number in range(400)]
    costs = {
        kind: costs_of(Scenario(latency=FIXED, faults=(Fault(kind, probability=0.5),)), requests)
        for kind in get_args(FaultKind)
    }
    for kind, found in costs.items():
        works, tokens = sum(cost.work for cost in found) / 400, sum(cost.tokens for cost in found) / 400
        is_spoiled = kind in ("cut", "bad_json", "html", "babble", "truncated")
        is_answer = kind in ("plain_text", "refusal", "filtered")
        assert works == pytest.approx(3.0 if is_spoiled else 1.5, rel=0.1)
        assert tokens == pytest.approx(1.0 if is_answer or kind == "down" else 2.0, rel=0.1)


def test_refusals_before_the_limits_cost_nothing() -> None:
    faults = (Fault("error", probability=0.5, status=429, before_limits=True),)
    scenario = Scenario(latency=FIXED, capacity=Rate(per_second=2.0), faults=faults)
    requests = [asked(number) for number in range(20)]
    assert ideal_makespan(scenario, costs_of(scenario, requests)) == pytest.approx(19 / 2.0 + 1.6)


def test_a_request_that_always_fails_takes_for_ever() -> None:
    scenario = Scenario(latency=FIXED, faults=(Fault("hang"),))
    assert ideal_makespan(scenario, costs_of(scenario, [asked(0)])) == math.inf


def test_two_servers_share_the_work_by_who_would_end_it_first() -> None:
    fast = Scenario(latency=NO_WIRE, capacity=Reject(slots=2))
    slow = Scenario(latency=NO_WIRE, capacity=Reject(slots=1))
    works = [2.0] * 6
    assert ideal_makespan_of([(fast, works), (slow, works)]) == 4.0
    assert ideal_makespan_of([(fast, works), (slow, [6.0] * 6)]) == 6.0
    assert ideal_makespan_of([(fast, works), (slow, [100.0] * 6)]) == 6.0


def test_no_work_takes_no_time_and_no_capacity_takes_for_ever() -> None:
    scenario = Scenario(capacity=Queue(slots=1))
    assert ideal_makespan(scenario, []) == 0.0
    assert ideal_makespan(scenario.replace(schedule=((0.0, 0.0),)), [1.0] * 2) == math.inf


@pytest.mark.parametrize("name", [name for name in PRESETS if name != "ollama"])
def test_every_preset_has_an_ideal(name: str) -> None:
    scenario = PRESETS[name]
    requests = [ChatRequest(({"role": "user", "content": str(number)},)) for number in range(300)]
    works = works_of(scenario, requests)
    assert max(works) <= ideal_makespan(scenario, works) < sum(works) + 1.0
