"""`QueryMutationEnv`: one environment, as Gymnasium has it. An action is an operator.

Importing this module registers it as `plaudit/QueryMutation-v0`, with the batched one for many at once:

    gymnasium.make("plaudit.mutation.env:plaudit/QueryMutation-v0", game=game)
    gymnasium.make_vec("plaudit.mutation.env:plaudit/QueryMutation-v0", num_envs=16, game=game)
"""

from __future__ import annotations

from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium.envs.registration import register

from plaudit.mutation.conductor import Conductor, ThreadConductor
from plaudit.mutation.episode import Info, Transition, Vector
from plaudit.mutation.game import Game, Player, generator

ID = "plaudit/QueryMutation-v0"


def observation_space(game: Game) -> gymnasium.spaces.Box:
    """An embedding and some facts."""
    return gymnasium.spaces.Box(-game.bound, game.bound, (game.size,), np.float32)


class QueryMutationEnv(gymnasium.Env[Vector, np.int64]):  # type: ignore[misc]
    """Rewrite a question, step by step, so that the target answers it better.

    `info` says: question, query, operator, quality (0 to 1), gain, drift, cost, total, and, where a call
    failed, `failed` with `failed_at` and `error`; the reward is then 0.0.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi"], "render_fps": 1}

    def __init__(
        self, game: Game, *, conductor: Conductor | None = None, render_mode: str | None = None
    ) -> None:
        """`conductor` runs the calls; several environments that step one after another may share one."""
        self.game = game
        self.render_mode = render_mode
        self.observation_space = observation_space(game)
        self.action_space = gymnasium.spaces.Discrete(len(game.operators))
        self._conductor = conductor or ThreadConductor()
        self._player = Player(game, generator(None))

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Vector, Info]:
        """Draw a question, and have it answered and judged as it stands."""
        super().reset(seed=seed, options=options)
        if self._player.random is not self.np_random:
            self._player.reseed(self.np_random)
        self._conductor.start(0, self._player.reset())
        _, (observation, info) = self._conductor.finished()
        return observation, info

    def step(self, action: np.int64 | int) -> tuple[Vector, float, bool, bool, Info]:
        """Apply an operator to the query. Episodes end, they are never truncated."""
        self._conductor.start(0, self._player.step(int(action)))
        moved: Transition
        _, moved = self._conductor.finished()
        return self._player.observe(), moved.reward, moved.is_over, False, moved.info

    def render(self) -> str | None:
        """The query as it stands, in words."""
        episode = self._player.episode
        if self.render_mode != "ansi" or episode is None:
            return None
        quality = "?" if episode.now.quality is None else f"{episode.now.quality:.2f}"
        return f"step {episode.step}, quality {quality}: {episode.now.query}"

    def close(self) -> None:
        """End the thread behind it. The engines stay open: they belong to whoever opened them."""
        self._conductor.close()


register(
    id=ID,
    entry_point="plaudit.mutation.env:QueryMutationEnv",
    vector_entry_point="plaudit.mutation.vector_env:BatchedQueryMutationEnv",
)
