"""One environment, by Gymnasium's and stable-baselines3's own checkers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytestmark = pytest.mark.trainers

import warnings  # noqa: E402

import gymnasium  # noqa: E402
import numpy as np  # noqa: E402
from gymnasium.utils.env_checker import check_env  # noqa: E402
from simulated_mutation import Faults, SimulatedMutation  # noqa: E402
from stable_baselines3.common.env_checker import check_env as sb3_check_env  # noqa: E402

from plaudit.mutation.env import ID, QueryMutationEnv  # noqa: E402

KEEP, CLARIFY = 0, 1


@pytest.fixture
def practice() -> Iterator[SimulatedMutation]:
    with SimulatedMutation() as world:
        yield world


def test_it_passes_gymnasiums_checker_without_a_warning(practice: SimulatedMutation) -> None:
    env = gymnasium.make(f"plaudit.mutation.env:{ID}", task=practice.task)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped)
    env.close()


def test_it_passes_stable_baselines3s_checker(practice: SimulatedMutation) -> None:
    env = QueryMutationEnv(practice.task)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sb3_check_env(env)
    env.close()


def test_a_step_rewrites_the_query_and_says_what_came_of_it(practice: SimulatedMutation) -> None:
    env = QueryMutationEnv(practice.task, render_mode="ansi")
    _, before = env.reset(seed=3)
    observation, reward, is_over, is_cut, info = env.step(np.int64(CLARIFY))
    assert info["query"] == f"clarify: {before['query']}"
    assert reward == pytest.approx(info["gain"] - 0.1 * info["drift"] - info["cost"])
    assert observation in env.observation_space
    assert (is_over, is_cut) == (False, False)
    assert env.render() == f"step 1, quality {info['quality']:.2f}: {info['query']}"
    assert env.step(np.int64(KEEP))[2] is True
    env.close()
    env.close()


def test_a_failed_call_gives_no_reward_and_a_flag() -> None:
    with SimulatedMutation(faults=Faults()) as practice:
        env = QueryMutationEnv(practice.task)
        _, before = env.reset(seed=3)
        practice.break_down("answer")
        _, reward, _, _, info = env.step(np.int64(CLARIFY))
        assert reward == 0.0
        assert info["failed"] and info["failed_at"] == "answer"
        assert info["query"] == before["query"]
        env.close()
