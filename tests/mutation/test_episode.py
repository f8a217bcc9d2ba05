"""One episode: what a step is worth, when it ends, what the policy sees."""

from __future__ import annotations

import numpy as np
import pytest
from complaints import about

from plaudit.errors import ConfigError
from plaudit.mutation.episode import (
    FACTS,
    Episode,
    Rules,
    ScoredQuery,
    StepResult,
    advance,
    bound,
    drift,
    facts,
    observation,
)
from plaudit.mutation.questions import Item

FREE = Rules(max_steps=3, drift_weight=0.0, cost_weight=0.0)
EAST = np.array([1.0, 0.0], dtype=np.float32)
NORTH = np.array([0.0, 1.0], dtype=np.float32)


def begun(quality: float | None = 0.4) -> Episode:
    start = ScoredQuery("why?", EAST, quality)
    return Episode(Item("why?"), start, start)


def better(quality: float = 0.7) -> StepResult:
    return StepResult(ScoredQuery("why exactly?", NORTH, quality), characters=2000)


def test_the_reward_is_the_quality_gained() -> None:
    moved = advance(begun(0.4), "clarify", better(0.7), FREE, is_last=False)
    assert moved.reward == pytest.approx(0.3)
    assert moved.episode.now.query == "why exactly?"
    assert moved.info["gain"] == pytest.approx(0.3)
    assert not moved.info["failed"]


def test_drift_and_cost_are_taken_off() -> None:
    rules = Rules(drift_weight=0.1, cost_weight=0.01)
    moved = advance(begun(0.4), "clarify", better(0.7), rules, is_last=False)
    assert moved.reward == pytest.approx(0.3 - 0.1 * 1.0 - 0.01 * 2.0)
    assert moved.info["cost"] == pytest.approx(0.02)


def test_the_rewards_of_an_episode_add_up_to_its_ends() -> None:
    rules = Rules(drift_weight=0.1, cost_weight=0.0)
    one = advance(begun(0.4), "clarify", better(0.7), rules, is_last=False)
    back = StepResult(ScoredQuery("why?", EAST, 0.5))
    two = advance(one.episode, "simplify", back, rules, is_last=False)
    assert one.reward + two.reward == pytest.approx(0.5 - 0.4)  # it is back where it was: no drift is left
    assert two.episode.total == pytest.approx(0.1)


def test_a_failed_call_earns_nothing_changes_nothing_and_says_so() -> None:
    failed = StepResult(None, failed_at="judge", error="no verdict")
    moved = advance(begun(0.4), "clarify", failed, Rules(), is_last=False)
    assert moved.reward == 0.0
    assert moved.episode.now.query == "why?"
    assert moved.episode.step == 1
    assert moved.info["failed"] and moved.info["failed_at"] == "judge" and moved.info["error"] == "no verdict"
    assert moved.info["cost"] == 0.0


def test_without_a_score_to_compare_with_nothing_is_earned() -> None:
    moved = advance(begun(None), "clarify", better(1.0), Rules(), is_last=False)
    assert moved.reward == 0.0
    assert moved.info["failed"]
    assert "gain" not in moved.info and "quality" not in moved.info


@pytest.mark.parametrize(
    ("step", "quality", "is_last", "is_over"),
    [(0, 0.7, False, False), (0, 0.7, True, True), (2, 0.7, False, True), (0, 1.0, False, True)],
)
def test_it_ends_after_so_many_steps_at_the_top_or_when_the_policy_says_so(
    step: int, quality: float, is_last: bool, is_over: bool
) -> None:
    start = begun().start
    episode = Episode(Item("why?"), start, start, step=step)
    assert advance(episode, "clarify", better(quality), FREE, is_last=is_last).is_over is is_over


def test_an_episode_whose_last_step_fails_ends_too() -> None:
    start = begun().start
    episode = Episode(Item("why?"), start, start, step=2)
    assert advance(episode, "clarify", StepResult(None), FREE, is_last=False).is_over


def test_drift_is_the_cosine_distance_within_0_and_1() -> None:
    def at(x: float, y: float) -> ScoredQuery:
        return ScoredQuery(f"{x} {y}", np.array([x, y], dtype=np.float32), 0.0)

    assert drift(at(1, 0), at(0, 1)) == 1.0
    assert drift(at(1, 0), at(-1, 0)) == 1.0
    assert drift(at(1, 0), at(0.6, 0.8)) == pytest.approx(0.4)
    assert drift(at(1, 0), at(1, 0)) == 0.0


def test_the_policy_sees_the_embedding_and_where_the_episode_stands() -> None:
    moved = advance(begun(0.4), "clarify", better(0.7), FREE, is_last=False)
    seen = observation(moved.episode, FREE)
    assert seen.dtype == np.float32
    assert seen.shape == (2 + FACTS,)
    np.testing.assert_allclose(seen, [0.0, 2**0.5, 1 / 3, 0.7, 0.3, 1.0, 1.0, 0.0], rtol=1e-6)
    assert np.abs(seen).max() <= np.float32(bound(2))


def test_the_policy_sees_that_a_score_is_missing() -> None:
    seen = observation(begun(None), FREE)
    np.testing.assert_allclose(seen[2:], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    assert facts(begun(None))["query"] == "why?"


@pytest.mark.parametrize("wrong", [{"max_steps": 0}, {"drift_weight": -0.1}, {"cost_weight": float("nan")}])
def test_rules_that_make_no_sense_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ConfigError, check=about(next(iter(wrong)))):
        Rules(**wrong)  # type: ignore[arg-type]
