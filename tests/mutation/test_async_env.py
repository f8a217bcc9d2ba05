"""One env's turns: drawing questions, stepping, starting over, and going on from a snapshot."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Iterator

import msgspec
import numpy as np
import pytest
from complaints import about
from simulated_mutation import Faults, SimulatedMutation

from plaudit.errors import ConfigError
from plaudit.mutation.async_env import AsyncEnv, generator
from plaudit.mutation.episode import Rules, Transition
from plaudit.mutation.task import MutationTask

KEEP, CLARIFY = 0, 1


@pytest.fixture
def practice() -> Iterator[SimulatedMutation]:
    with SimulatedMutation() as world:
        yield world


def play(env: AsyncEnv, actions: list[int]) -> list[tuple[str, float]]:
    """The query and the reward after each action; over means reset."""

    async def go() -> list[tuple[str, float]]:
        if env.episode is None:
            await env.reset()
        seen = []
        for action in actions:
            moved = await env.step(action)
            seen.append((moved.info["query"], moved.reward))
            if moved.is_over:
                await env.reset()
        return seen

    return asyncio.run(go())


ACTIONS = [1, 2, 3, 0, 4, 5, 1, 0, 0, 3, 2, 1, 4, 4, 4, 2]


def test_the_same_seed_gives_the_same_turns(practice: SimulatedMutation) -> None:
    one, two = (play(AsyncEnv(practice.task, generator(7)), ACTIONS) for _ in range(2))
    other = play(AsyncEnv(practice.task, generator(8)), ACTIONS)
    assert one == two
    assert one != other


def test_to_look_ahead_changes_nothing_but_the_time(practice: SimulatedMutation) -> None:
    plain = play(AsyncEnv(practice.task, generator(3)), ACTIONS)
    assert play(AsyncEnv(practice.task, generator(3), looks_ahead=True), ACTIONS) == plain


def test_a_snapshot_is_plain_data_from_which_the_game_goes_on(practice: SimulatedMutation) -> None:
    env = AsyncEnv(practice.task, generator(5))
    play(env, ACTIONS[:5])
    saved = msgspec.json.decode(msgspec.json.encode(env.snapshot()))
    rest = play(env, ACTIONS[5:])
    again = AsyncEnv(practice.task, generator(0))
    again.restore(saved)
    assert play(again, ACTIONS[5:]) == rest


def test_a_step_before_the_first_reset_is_refused(practice: SimulatedMutation) -> None:
    with pytest.raises(ConfigError, check=about("", "reset()")):
        asyncio.run(AsyncEnv(practice.task, generator(0)).step(KEEP))


def test_an_action_that_is_none_is_refused(practice: SimulatedMutation) -> None:
    with pytest.raises(ConfigError, check=about("action")):
        play(AsyncEnv(practice.task, generator(0)), [6])


def test_an_episode_that_began_without_a_score_gets_one_with_its_next_step() -> None:
    faults = Faults(refused=1.0)
    with SimulatedMutation(faults=faults) as practice:
        env = AsyncEnv(practice.task, generator(0))

        async def go() -> tuple[dict[str, object], Transition, Transition]:
            _, info = await env.reset()
            still = await env.step(CLARIFY)
            faults.refused = 0.0
            return info, still, await env.step(CLARIFY)

        info, still, then = asyncio.run(go())
    assert info["failed"] and "quality" not in info
    assert still.info["failed"] and still.reward == 0.0
    assert not then.info["failed"] and then.info["gain"] == pytest.approx(-0.1)


def test_a_game_without_questions_is_refused(practice: SimulatedMutation) -> None:
    with pytest.raises(ConfigError, check=about("questions")):
        MutationTask(practice.task.models, questions=())


def test_gymnasium_may_copy_the_game_it_is_given(practice: SimulatedMutation) -> None:
    assert copy.deepcopy(practice.task) is practice.task


def test_observations_stay_within_their_bounds(practice: SimulatedMutation) -> None:
    env = AsyncEnv(practice.task, generator(1))
    play(env, [CLARIFY])
    seen = env.observe()
    assert seen.shape == (practice.task.size,)
    assert np.abs(seen).max() <= np.float32(practice.task.bound)


def test_an_episode_ends_after_so_many_steps() -> None:
    with SimulatedMutation(rules=Rules(max_steps=2)) as practice:
        env = AsyncEnv(practice.task, generator(0))

        async def go() -> list[bool]:
            await env.reset()
            return [(await env.step(CLARIFY)).is_over for _ in range(2)]

        assert asyncio.run(go()) == [False, True]
