"""Servers drawn at random: every kind, every weather, the same for the same number."""

from __future__ import annotations

import math
from collections import Counter

import msgspec
import pytest

from plaudit.simulator import (
    Knee,
    Latency,
    Queue,
    Rate,
    Reject,
    Scenario,
    SimulatedServer,
    Tenant,
    draw,
    ideal_makespan,
)
from simulator.asking import chat

MANY = [draw(number) for number in range(600)]


def test_the_same_number_gives_the_same_server() -> None:
    assert [draw(number) for number in range(20)] == MANY[:20]
    assert len({drawn.about for drawn in MANY}) == len(MANY)


def test_every_server_survives_a_json_file() -> None:
    for drawn in MANY:
        assert msgspec.json.decode(msgspec.json.encode(drawn.scenario), type=Scenario) == drawn.scenario


def test_every_kind_of_capacity_is_drawn_over_all_its_sizes() -> None:
    sizes: dict[str, list[float]] = {"reject": [], "queue": [], "knee": [], "rate": []}
    for drawn in MANY:
        match drawn.scenario.capacity:
            case Reject(slots=slots):
                sizes["reject"].append(slots)
            case Queue(slots=slots):
                sizes["queue"].append(slots)
            case Knee(knee=knee):
                sizes["knee"].append(knee)
            case Rate(per_second=per_second):
                sizes["rate"].append(per_second)
    ends = {"reject": (10, 2000), "queue": (10, 2000), "knee": (10, 1000), "rate": (5, 2000)}
    for kind, (low, high) in ends.items():
        found = sorted(sizes[kind])
        assert low <= found[0] < 2 * low
        assert high / 2 < found[-1] <= high
        assert found[len(found) // 2] == pytest.approx(math.sqrt(low * high), rel=0.5)


def test_calls_take_from_a_tenth_of_a_second_to_eight() -> None:
    def mean(latency: Latency) -> float:
        return latency.work(round(latency.mean_tokens))

    means = sorted(mean(drawn.scenario.latency) for drawn in MANY)
    assert 0.1 <= means[0] < 0.12
    assert 7.0 < means[-1] <= 8.01
    assert all(0.001 <= drawn.scenario.latency.round_trip <= 0.2 for drawn in MANY)


def test_a_third_has_no_weather_and_every_kind_of_it_is_drawn() -> None:
    calm, seen = 0, Counter[str]()
    for drawn in MANY:
        scenario = drawn.scenario
        calm += not (scenario.faults or scenario.tenants or scenario.schedule)
        seen["changes"] += bool(scenario.schedule)
        seen["neighbour"] += any(
            isinstance(tenant, Tenant) and tenant.on is None for tenant in scenario.tenants
        )
        for fault in scenario.faults:
            when = "at random" if fault.during is None else "once" if fault.every is None else "every"
            seen[f"{fault.kind} {when} {'some' if fault.probability < 1 else 'all'}"] += 1
            assert fault.during is not None or fault.probability <= 0.2
    assert 160 <= calm <= 240
    for kind in (
        "changes",
        "neighbour",
        "error every all",
        "down every all",
        "error once all",
        "reset once all",
        "error every some",
        "error at random some",
        "hang at random some",
        "slow at random some",
        "cut at random some",
        "bad_json at random some",
    ):
        assert seen[kind] >= 3, kind


def test_hints_are_true_wrong_absurd_or_none() -> None:
    rates = [drawn.scenario.capacity for drawn in MANY if isinstance(drawn.scenario.capacity, Rate)]
    assert {rate.hints for rate in rates} == {"none", "retry-after", "exact", "headers", "all"}
    assert {rate.retry_after for rate in rates} == {None, 0.0, 30.0, 3600.0}
    assert len({rate.wrong for rate in rates}) > 8
    assert any(rate.window for rate in rates)
    assert min(rate.burst for rate in rates) == 1
    assert max(rate.burst / rate.per_second for rate in rates) > 50


def test_every_server_can_be_used_up_to_its_end() -> None:
    for drawn in MANY[:200]:
        work = drawn.scenario.latency.work(200)
        assert 0.0 < ideal_makespan(drawn.scenario, [work] * 1024) < 2000.0


def test_every_server_takes_requests() -> None:
    for drawn in MANY[:100]:
        server = SimulatedServer(drawn.scenario)
        for number in range(30):
            server.submit(chat(str(number)), now=number * 0.01, deliver=lambda _: None)
        server.deliver_due(100.0)
        assert server.stats.requests == 30
