"""The Gymnasium environments: `QueryMutationEnv`, and `BatchedQueryMutationEnv` for many at once.

An action is an operator. Importing this module registers both as `plaudit/QueryMutation-v0`:

    gymnasium.make("plaudit.mutation.env:plaudit/QueryMutation-v0", task=task)
    gymnasium.make_vec("plaudit.mutation.env:plaudit/QueryMutation-v0", num_envs=16, task=task)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium.envs.registration import register
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from plaudit.errors import ConfigError
from plaudit.mutation.async_env import AsyncEnv, ChainRunner, Outcome, ThreadRunner, generator
from plaudit.mutation.episode import Info, Transition, Vector
from plaudit.mutation.task import MutationTask
from plaudit.value_check import check_length, check_number

ID = "plaudit/QueryMutation-v0"
Array = NDArray[Any]
Result = tuple[Array, Array, Array, Array, Info]


def observation_space(task: MutationTask) -> gymnasium.spaces.Box:
    return gymnasium.spaces.Box(-task.bound, task.bound, (task.size,), np.float32)


class QueryMutationEnv(gymnasium.Env[Vector, np.int64]):  # type: ignore[misc]
    """Rewrite a question, step by step, so that the target answers it better.

    `info` says: question, query, operator, quality (0 to 1), gain, drift, cost, total, and, where a call
    failed, `failed` with `failed_at` and `error`; the reward is then 0.0.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi"], "render_fps": 1}

    def __init__(
        self, task: MutationTask, *, runner: ChainRunner | None = None, render_mode: str | None = None
    ) -> None:
        """`runner` runs the calls; several environments that step one after another may share one."""
        self.task = task
        self.render_mode = render_mode
        self.observation_space = observation_space(task)
        self.action_space = gymnasium.spaces.Discrete(len(task.operators))
        self._runner = runner or ThreadRunner()
        self._env = AsyncEnv(task, generator(None))

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Vector, Info]:
        """Draw a question, and have it answered and judged as it stands."""
        super().reset(seed=seed, options=options)
        if self._env.random is not self.np_random:
            self._env.reseed(self.np_random)
        self._runner.start(0, self._env.reset())
        observation: Vector
        observation, info = self._runner.finished()[1].result()
        return observation, info

    def step(self, action: np.int64 | int) -> tuple[Vector, float, bool, bool, Info]:
        """Apply an operator to the query. Episodes end, they are never truncated."""
        self._runner.start(0, self._env.step(self._env.checked(int(action))))
        moved: Transition = self._runner.finished()[1].result()
        return self._env.observe(), moved.reward, moved.is_over, False, moved.info

    def render(self) -> str | None:
        """The query as it stands, in words."""
        episode = self._env.episode
        if self.render_mode != "ansi" or episode is None:
            return None
        quality = "?" if episode.now.quality is None else f"{episode.now.quality:.2f}"
        return f"step {episode.step}, quality {quality}: {episode.now.query}"

    def close(self) -> None:
        """End the thread behind it. The engines stay open: they belong to their owner."""
        self._runner.close()


@dataclass(frozen=True, slots=True, eq=False)
class Turn:
    """What one environment has come to: a step, or only the beginning of an episode."""

    observation: Vector
    info: Info
    reward: float = 0.0
    is_over: bool = False
    final_observation: Vector | None = None
    final_info: Info | None = None


class BatchedQueryMutationEnv(VectorEnv[Array, Array, Array]):  # type: ignore[misc]
    """Many `QueryMutationEnv`s that take as long as the servers need, not as long as their sum.

    The same seed and the same actions give the same trajectories as the environments one by one: environment
    i is seeded with seed + i.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": [], "autoreset_mode": AutoresetMode.SAME_STEP}

    def __init__(
        self,
        task: MutationTask,
        num_envs: int = 16,
        *,
        runner: ChainRunner | None = None,
        one_by_one: bool = False,
        render_mode: str | None = None,
    ) -> None:
        """`one_by_one`: begin episodes in turn, and never ask about the next question ahead of time."""
        check_number("num_envs", num_envs, low=1)
        self.task = task
        self.num_envs = num_envs
        self.render_mode = render_mode
        self.single_observation_space = observation_space(task)
        self.single_action_space = gymnasium.spaces.Discrete(len(task.operators))
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._runner = runner or ThreadRunner()
        self._envs = [AsyncEnv(task, generator(None), looks_ahead=not one_by_one) for _ in range(num_envs)]
        self._in_flight: set[int] = set()
        self._one_by_one = one_by_one

    # -- all together ---------------------------------------------------------------------------------------

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, Info]:
        """Begin an episode in every environment, or in those of `options["reset_mask"]`."""
        chosen = self._chosen(options)
        seeds = self._seeds(seed)
        while self._in_flight:  # what was sent and never received
            _, outcome = self._next_finished()
            outcome.cancelled() or outcome.exception()  # looked at, so that asyncio does not log it
        turns: dict[int, Turn] = {}
        for number in chosen:
            if seeds[number] is not None:
                self._envs[number].reseed(generator(seeds[number]))
            self._begin(number, self._open(self._envs[number]))
            if self._one_by_one:
                turns |= self.collect(1)
        turns |= self.collect(len(self._in_flight))
        infos = self._infos(turns)
        return np.stack([env.observe() for env in self._envs]), infos  # (envs, size)

    def step(self, actions: Array | Sequence[int]) -> Result:
        """One step of every environment; returns when the slowest is done."""
        if self._in_flight:
            raise ConfigError(
                f"{len(self._in_flight)} environments are in flight; collect them with recv() before step()"
            )
        self.send(actions)
        result = self.recv(self.num_envs)
        result[4].pop("env_id")
        return result

    batch_reset = reset
    batch_step = step

    # -- each at its own pace -------------------------------------------------------------------------------

    def send(self, actions: Array | Sequence[int], env_id: Iterable[int] | None = None) -> None:
        """Start a step in these environments (default: all), and return at once."""
        numbers = list(range(self.num_envs)) if env_id is None else [int(number) for number in env_id]
        check_length("actions", actions, len(numbers), "environments")
        checked = []
        for number, action in zip(numbers, actions, strict=True):  # all of them, before any begins
            if not 0 <= number < self.num_envs:
                raise ConfigError(f"there is no environment {number}; use 0 to {self.num_envs - 1}")
            if number in self._in_flight:
                raise ConfigError(
                    f"environment {number} is still in flight; send again after recv() has returned it"
                )
            checked.append(self._envs[number].checked(int(action)))
        for number, action in zip(numbers, checked, strict=True):
            self._begin(number, self._turn(self._envs[number], action))

    def recv(self, at_least: int = 1) -> Result:
        """Wait for so many environments to finish; their rows, in the order of `infos["env_id"]`."""
        if not 1 <= at_least <= len(self._in_flight):
            raise ConfigError(
                f"recv({at_least}) would wait forever: {len(self._in_flight)} environments are in flight"
            )
        turns = self.collect(at_least)
        ids = np.array(sorted(turns), dtype=np.int64)
        rows = [turns[number] for number in ids]
        over = np.array([turn.is_over for turn in rows], dtype=np.bool_)
        infos = _rows(self._infos(turns), ids) | {"env_id": ids}
        return (
            np.stack([turn.observation for turn in rows]),  # (ids, size)
            np.array([turn.reward for turn in rows], dtype=np.float64),
            over,
            np.zeros_like(over),
            infos,
        )

    def collect(self, count: int) -> dict[int, Turn]:
        """The same as they come. Raises what the first of them raised; the others stay under way."""
        turns: dict[int, Turn] = {}
        while len(turns) < count:
            number, outcome = self._next_finished()
            turns[number] = outcome.result()
        return turns

    # -- what a checkpoint needs ----------------------------------------------------------------------------

    def snapshot(self) -> list[dict[str, Any]]:
        """Every environment's state as plain data, when none is under way."""
        if self._in_flight:
            raise ConfigError("environments are in flight; collect them with recv() before a snapshot")
        return [env.snapshot() for env in self._envs]

    def restore(self, saved: Sequence[dict[str, Any]]) -> Array:
        """Go on where a snapshot was taken, and give the observations. (envs, size)"""
        for env, state in zip(self._envs, saved, strict=True):
            env.restore(state)
        return np.stack([env.observe() for env in self._envs])

    def close_extras(self, **kwargs: Any) -> None:  # noqa: ARG002 - Gymnasium's signature
        """End the thread behind it. The engines stay open: they belong to their owner."""
        self._runner.close()

    # -- inside ---------------------------------------------------------------------------------------------

    async def _open(self, env: AsyncEnv) -> Turn:
        return Turn(*await env.reset())

    async def _turn(self, env: AsyncEnv, action: int) -> Turn:
        moved = await env.step(action)
        if not moved.is_over:
            return Turn(env.observe(), moved.info, moved.reward)
        final = env.observe()
        observation, info = await env.reset()
        return Turn(observation, info, moved.reward, True, final, moved.info)

    def _begin(self, number: int, work: Any) -> None:
        self._in_flight.add(number)
        self._runner.start(number, work)

    def _next_finished(self) -> tuple[int, Outcome]:
        number, outcome = self._runner.finished()
        self._in_flight.discard(number)
        return number, outcome

    def _infos(self, turns: dict[int, Turn]) -> Info:
        """Arrays over all environments, each with a mask `_key`: Gymnasium's form."""
        infos: Info = {}
        for number in sorted(turns):
            turn = turns[number]
            if turn.is_over:
                final = {"final_obs": turn.final_observation, "final_info": turn.final_info}
                infos = self._add_info(infos, final, number)
            infos = self._add_info(infos, turn.info, number)
        return infos

    def _seeds(self, seed: int | Sequence[int | None] | None) -> list[int | None]:
        if seed is None or isinstance(seed, int | np.integer):
            return [None if seed is None else int(seed) + number for number in range(self.num_envs)]
        check_length("seed", seed, self.num_envs, "environments")
        return list(seed)

    def _chosen(self, options: dict[str, Any] | None) -> list[int]:
        if not options or "reset_mask" not in options:
            return list(range(self.num_envs))
        mask = np.asarray(options["reset_mask"])
        if mask.shape != (self.num_envs,) or mask.dtype != np.bool_ or not mask.any():
            raise ConfigError(
                f"should be {self.num_envs} booleans, at least one of them true, not {mask!r}",
                setting="reset_mask",
            )
        return [int(number) for number in np.flatnonzero(mask)]


def _rows(infos: Info, ids: Array) -> Info:
    """The same infos for these environments only."""
    return {key: _rows(value, ids) if isinstance(value, dict) else value[ids] for key, value in infos.items()}


register(
    id=ID,
    entry_point="plaudit.mutation.env:QueryMutationEnv",
    vector_entry_point="plaudit.mutation.env:BatchedQueryMutationEnv",
)
