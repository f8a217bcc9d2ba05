"""How close batches come to the best possible on servers nobody tuned for, cold and from the second on."""

from __future__ import annotations

import pytest
from simulation import score_batches, seeded

from plaudit.config import EngineConfig
from plaudit.policy.limit import LimitConfig
from plaudit.simulator import PRESETS, Latency, Queue, Reject, Scenario

SLOW = Latency(seconds_per_token=0.04)
UNEQUAL = [Scenario(capacity=Reject(slots=64)), Scenario(capacity=Reject(slots=16), latency=SLOW)]


@pytest.mark.parametrize(
    ("name", "cold", "warm"),
    [
        ("rejecting", 1.15, 1.15),
        ("queue", 1.10, 1.10),
        ("rate-headers", 1.15, 1.15),
        ("rate-bare", 1.15, 1.15),
        ("knee", 1.60, 1.35),
        ("vllm", 1.25, 1.25),
    ],
)
def test_a_batch_takes_little_longer_than_the_best_possible(name: str, cold: float, warm: float) -> None:
    first, second = score_batches([seeded(PRESETS[name], 11)], batches=2)
    assert first.failures == second.failures == 0
    assert first.over_ideal <= cold
    assert second.over_ideal <= warm
    assert first.reject_share <= 0.15
    assert second.reject_share <= 0.15


def test_capacity_that_falls_in_mid_batch_is_followed() -> None:
    result = score_batches([seeded(PRESETS["falling"], 5)])[0]
    assert result.failures == 0
    assert result.over_ideal <= 1.20
    assert result.reject_share <= 0.35
    assert 40 <= result.limits[0] <= 60  # 48 slots are left


def test_two_unequal_servers_are_filled_by_what_each_bears() -> None:
    result = score_batches([seeded(scenario, 3) for scenario in UNEQUAL])[0]
    assert result.failures == 0
    assert result.over_ideal <= 1.25
    assert result.reject_share <= 0.20


def test_capacity_that_grows_in_mid_batch_is_found() -> None:
    growing = Scenario(capacity=Reject(slots=16), schedule=((20.0, 128.0),), seed=2)
    result = score_batches([growing])[0]
    assert result.failures == 0
    assert result.over_ideal <= 1.5
    assert result.limits[0] >= 64


def test_a_rate_is_not_mistaken_for_a_capacity() -> None:
    """A limiter of 20 a second with calls of four seconds needs eighty at once: no cut may hide that."""
    for name in ("rate-headers", "rate-bare"):
        result = score_batches([seeded(PRESETS[name], 1)], batches=2)[1]
        assert result.limits[0] >= 80


def test_a_neighbour_who_comes_and_goes_costs_no_sample() -> None:
    result = score_batches([seeded(PRESETS["shared"], 1)])[0]
    assert result.failures == 0
    assert result.reject_share <= 0.25


def test_an_outage_in_mid_batch_costs_its_own_length_and_no_sample() -> None:
    calm = PRESETS["outage"].replace(faults=())
    without = score_batches([calm])[0]
    result = score_batches([PRESETS["outage"]])[0]
    assert result.failures == 0
    assert result.seconds <= without.seconds + 3 * 5.0


def test_a_server_of_one_slot_is_served_in_a_tolerable_time() -> None:
    result = score_batches([PRESETS["ollama"]], samples=100)[0]
    assert result.failures == 0
    assert result.over_ideal <= 1.06


def test_a_limit_known_from_before_saves_the_search() -> None:
    server = seeded(Scenario(capacity=Reject(slots=300)), 4)
    cold = score_batches([server])[0]
    known = LimitConfig(start=cold.limits[0], is_known=True, refuses=True)
    warm = score_batches([server], start=known)[0]
    assert warm.seconds <= cold.seconds
    assert warm.peak[0] >= 200


def test_hangs_at_a_crowded_server_lower_the_limit() -> None:
    """Far more calls than the server can answer in time: they time out, and fewer are sent."""
    crowded = Scenario(capacity=Queue(slots=2), latency=Latency(sigma=0.0), seed=1)
    config = EngineConfig(timeout=30.0, hedge=False)
    result = score_batches([crowded], samples=120, config=config)[0]
    assert result.limits[0] <= 16
    assert [len(outcomes) for outcomes in result.outcomes] == [1] * 120
