"""What holds on a flaky server, whatever the seed: one outcome each, ceilings kept, and runs that repeat."""

from __future__ import annotations

import pytest
from simulation import Result, score_batches, seeded

from plaudit.config import EngineConfig
from plaudit.events import CallFinished, CallStarted
from plaudit.simulator import PRESETS, Fault, Rate, Scenario

FLAKY = PRESETS["flaky"]
HOSTILE = FLAKY.replace(
    faults=(*FLAKY.faults, Fault("hang", probability=0.01), Fault("error", probability=0.05, status=429))
)
SEEDS = range(4)


def flaky(seed: int, max_concurrent: int | None = None) -> Result:
    servers = [seeded(HOSTILE, seed), seeded(FLAKY, seed + 100)]
    config = EngineConfig(timeout=60.0, max_concurrent=max_concurrent)
    return score_batches(servers, samples=300, config=config)[0]


@pytest.mark.parametrize("seed", SEEDS)
def test_every_call_has_exactly_one_outcome(seed: int) -> None:
    result = flaky(seed)
    assert [len(outcomes) for outcomes in result.outcomes] == [1] * 300
    assert result.failures == 0


@pytest.mark.parametrize("seed", SEEDS)
def test_calls_under_way_never_exceed_the_ceiling(seed: int) -> None:
    result = flaky(seed, max_concurrent=24)
    under_way = {"http://server0/v1 m": 0, "http://server1/v1 m": 0}
    for event in result.events:
        if isinstance(event, CallStarted | CallFinished):
            under_way[event.endpoint] = event.in_flight
            assert sum(under_way.values()) <= 24
    assert sum(result.peak) <= 2 * 24
    assert max(result.peak) <= 24


@pytest.mark.parametrize("seed", SEEDS)
def test_the_same_seed_gives_the_same_events(seed: int) -> None:
    assert flaky(seed).events == flaky(seed).events


def test_another_seed_gives_other_events() -> None:
    assert flaky(0).events != flaky(1).events


@pytest.mark.parametrize("seed", SEEDS)
def test_every_call_that_started_also_finished(seed: int) -> None:
    result = flaky(seed)
    started = sum(isinstance(event, CallStarted) for event in result.events)
    finished = sum(isinstance(event, CallFinished) for event in result.events)
    # What was cut off when the last call got its reply lands a moment later.
    assert 0 <= started - finished <= 8


def test_a_server_that_counts_finds_no_minute_with_more_requests_than_told() -> None:
    strict = Scenario(capacity=Rate(per_second=2.0, window=60.0, hints="none"), seed=6)
    result = score_batches([strict], samples=300, config=EngineConfig(rpm=120))[0]
    assert result.failures == 0
    assert result.reject_share <= 0.25  # its windows are fixed, ours slide: only the first one can meet
    starts = [event.at for event in result.events if isinstance(event, CallStarted)]
    assert all(sum(at <= other < at + 60.0 for other in starts) <= 120 for at in starts)
