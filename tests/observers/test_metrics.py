"""Metrics: their names, their arithmetic, and what is left out."""

from __future__ import annotations

import math

import pytest
from complaints import about

from plaudit.config import Endpoint
from plaudit.engine import Engine
from plaudit.errors import ConfigError
from plaudit.events import Summary
from plaudit.judges.rubric import Rubric
from plaudit.observers.metrics import metrics
from plaudit.rewards import Component, LengthPenalty, Reward
from plaudit.simulator import Fault, Latency, Scenario, SimulatedTransport
from plaudit.types import Sample, Status, Verdict

FAST = Latency(mean_tokens=10, seconds_per_token=0.0, first_token=0.0, round_trip=0.0)
VERDICTS = [
    Verdict(8.0, Status.OK, parts={"disagreement": 0.2}),
    Verdict(4.0, Status.OK, parts={"disagreement": 0.0}),
    Verdict(0.0, Status.EMPTY),
    Verdict(None, Status.REFUSED),
]
SAMPLES = [Sample("p", "r", group="g")] * 4


def test_verdicts_give_scores_and_outcomes() -> None:
    found = metrics(verdicts=VERDICTS, lengths=[30, 20, 10, 99])
    assert found["judge/score_mean"] == 4.0
    assert found["judge/score_std"] == pytest.approx(math.sqrt(32 / 3))
    assert found["judge/valid_rate"] == 0.75
    assert found["judge/failure_rate/refused"] == 0.25
    assert found["judge/failure_rate/flagged"] == 0.0
    assert found["judge/disagreement"] == pytest.approx(0.1)
    assert found["judge/length_correlation"] == pytest.approx(1.0)


def test_every_class_of_failure_has_its_name_though_nothing_failed() -> None:
    found = metrics(verdicts=VERDICTS[:1])
    classes = {name.rpartition("/")[2] for name in found if name.startswith("judge/failure_rate/")}
    assert classes == {"failed", "deadline", "unreadable", "refused", "flagged"}


def test_a_summary_alone_says_what_it_knows() -> None:
    summary = Summary(
        samples=10, seconds=2.0, by_status={"ok": 9, "failed": 1}, by_source={"call": 8, "cache": 2},
        calls=11, retries=1, rereads=2, latency_p50_s=0.5, latency_p95_s=1.5, prompt_tokens=900,
        completion_tokens=90, cost=0.01, score_mean=6.0, score_std=1.0,
    )  # fmt: skip
    found = metrics(summary=summary)
    assert found["judge/valid_rate"] == pytest.approx(0.9)
    assert found["judge/parse_retry_rate"] == 0.25
    assert found["judge/cache_rate"] == 0.2
    assert (found["judge/latency_p50_s"], found["judge/latency_p95_s"]) == (0.5, 1.5)
    assert (found["judge/prompt_tokens"], found["judge/completion_tokens"]) == (900, 90)
    assert found["judge/cost_usd"] == 0.01
    assert (found["judge/score_mean"], found["judge/score_std"]) == (6.0, 1.0)


def test_what_is_not_known_is_left_out() -> None:
    found = metrics(verdicts=[Verdict(1.0, Status.OK)] * 2, summary=Summary(0, 0.0), lengths=[5, 6])
    assert not {"judge/cost_usd", "judge/length_correlation", "judge/disagreement"} & set(found)
    assert "judge/parse_retry_rate" not in found
    assert all(math.isfinite(value) for value in found.values())
    assert metrics() == {}


def test_rewards_give_each_component_and_the_groups() -> None:
    reward = Reward(
        [Component("judge", weight=0.5), Component("length", LengthPenalty())], max_failure_rate=None
    )
    rewards = reward.combine(SAMPLES, verdicts={"judge": VERDICTS}, lengths=[10, 10, 10, 40])
    found = metrics(rewards=rewards)
    assert found["reward/mean"] == pytest.approx(2.0)
    assert found["reward/valid_rate"] == 0.75
    assert found["reward/judge/mean"] == pytest.approx(4.0)
    assert found["reward/judge/weighted_mean"] == pytest.approx(2.0)
    assert found["reward/judge/valid_rate"] == 0.75
    assert found["reward/length/mean"] == pytest.approx(-0.25)
    assert found["reward/groups_masked"] == 0
    assert found["reward/groups_zero_spread"] == 0
    assert found["reward/screened_rate"] == 0


def test_groups_that_teach_nothing_are_counted() -> None:
    samples = [Sample("p", "r", group=group) for group in "aabb"]
    verdicts = [Verdict(1.0, Status.OK)] * 2 + [Verdict(0.0, Status.OK), Verdict(None, Status.FAILED)]
    rewards = Reward([Component("judge")], max_failure_rate=None).combine(
        samples, verdicts={"judge": verdicts}
    )
    found = metrics(rewards=rewards)
    assert found["reward/groups_zero_spread"] == 1
    assert found["reward/groups_masked"] == 1


def test_replies_asked_for_again_are_counted_by_the_engine() -> None:
    scenario = Scenario(seed=2, latency=FAST, faults=(Fault("babble", 0.4),))
    engine = Engine(
        endpoints=[Endpoint("http://simulated/v1", model="m")],
        transport=lambda _: SimulatedTransport(scenario),
        cache=None,
    )
    with engine:
        pending = engine.submit([Sample("p", f"answer {n}") for n in range(100)], Rubric("Is it right?"))
        verdicts = pending.result()
        summary = pending.summary
    again = sum(verdict.attempts - 1 for verdict in verdicts)
    assert 20 < again < 80
    assert metrics(verdicts=verdicts, summary=summary)["judge/parse_retry_rate"] == again / 100


def test_lengths_must_fit() -> None:
    with pytest.raises(ConfigError, check=about("lengths")):
        metrics(verdicts=VERDICTS, lengths=[1])
