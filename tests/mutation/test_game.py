"""One player's turns: drawing questions, stepping, starting over, and going on from a snapshot."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Iterator

import msgspec
import numpy as np
import pytest

from plaudit.errors import ConfigError
from plaudit.mutation.episode import Rules, Transition
from plaudit.mutation.game import Game, Player, generator
from plaudit.mutation.practice import Practice, Trouble

KEEP, CLARIFY = 0, 1


@pytest.fixture
def practice() -> Iterator[Practice]:
    with Practice() as world:
        yield world


def play(player: Player, actions: list[int]) -> list[tuple[str, float]]:
    """The query and the reward after each action; over means reset."""

    async def go() -> list[tuple[str, float]]:
        if player.episode is None:
            await player.reset()
        seen = []
        for action in actions:
            moved = await player.step(action)
            seen.append((moved.info["query"], moved.reward))
            if moved.is_over:
                await player.reset()
        return seen

    return asyncio.run(go())


ACTIONS = [1, 2, 3, 0, 4, 5, 1, 0, 0, 3, 2, 1, 4, 4, 4, 2]


def test_the_same_seed_gives_the_same_turns(practice: Practice) -> None:
    one, two = (play(Player(practice.game, generator(7)), ACTIONS) for _ in range(2))
    other = play(Player(practice.game, generator(8)), ACTIONS)
    assert one == two
    assert one != other


def test_to_look_ahead_changes_nothing_but_the_time(practice: Practice) -> None:
    plain = play(Player(practice.game, generator(3)), ACTIONS)
    assert play(Player(practice.game, generator(3), looks_ahead=True), ACTIONS) == plain


def test_a_snapshot_is_plain_data_from_which_the_game_goes_on(practice: Practice) -> None:
    player = Player(practice.game, generator(5))
    play(player, ACTIONS[:5])
    saved = msgspec.json.decode(msgspec.json.encode(player.snapshot()))
    rest = play(player, ACTIONS[5:])
    again = Player(practice.game, generator(0))
    again.restore(saved)
    assert play(again, ACTIONS[5:]) == rest


def test_a_step_before_the_first_reset_is_refused(practice: Practice) -> None:
    with pytest.raises(ConfigError, match="reset"):
        asyncio.run(Player(practice.game, generator(0)).step(KEEP))


def test_an_action_that_is_none_is_refused(practice: Practice) -> None:
    with pytest.raises(ConfigError, match="no action 6; use 0 to 5"):
        play(Player(practice.game, generator(0)), [6])


def test_an_episode_that_began_without_a_score_gets_one_with_its_next_step() -> None:
    trouble = Trouble(refused=1.0)
    with Practice(trouble=trouble) as practice:
        player = Player(practice.game, generator(0))

        async def go() -> tuple[dict[str, object], Transition, Transition]:
            _, info = await player.reset()
            still = await player.step(CLARIFY)
            trouble.refused = 0.0
            return info, still, await player.step(CLARIFY)

        info, still, then = asyncio.run(go())
    assert info["failed"] and "quality" not in info
    assert still.info["failed"] and still.reward == 0.0
    assert not then.info["failed"] and then.info["gain"] == pytest.approx(-0.1)


def test_a_game_without_questions_is_refused(practice: Practice) -> None:
    with pytest.raises(ConfigError, match="no question"):
        Game(practice.game.models, questions=())


def test_gymnasium_may_copy_the_game_it_is_given(practice: Practice) -> None:
    assert copy.deepcopy(practice.game) is practice.game


def test_observations_stay_within_their_bounds(practice: Practice) -> None:
    player = Player(practice.game, generator(1))
    play(player, [CLARIFY])
    seen = player.observe()
    assert seen.shape == (practice.game.size,)
    assert np.abs(seen).max() <= np.float32(practice.game.bound)


def test_an_episode_ends_after_so_many_steps() -> None:
    with Practice(rules=Rules(max_steps=2)) as practice:
        player = Player(practice.game, generator(0))

        async def go() -> list[bool]:
            await player.reset()
            return [(await player.step(CLARIFY)).is_over for _ in range(2)]

        assert asyncio.run(go()) == [False, True]
