"""Gymnasium's vector environments as stable-baselines3 wants them.

PPO("MlpPolicy", VectorAdapter(BatchedQueryMutationEnv(game, num_envs=16)))
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv

from plaudit.errors import ConfigError
from plaudit.mutation.episode import Info

Array = NDArray[Any]
Indices = None | int | Iterable[int]


class VectorAdapter(VecEnv):  # type: ignore[misc]  # has no types where stable-baselines3 is missing
    """A vector environment that resets within the step, seen through stable-baselines3's interface."""

    def __init__(self, vector: VectorEnv[Array, Array, Array]) -> None:
        if vector.metadata.get("autoreset_mode") is not AutoresetMode.SAME_STEP:
            raise ConfigError(
                f"{vector} does not reset within the step, as stable-baselines3 expects; "
                "make it with autoreset_mode=AutoresetMode.SAME_STEP"
            )
        self.vector = vector
        self._actions: Array | None = None
        super().__init__(vector.num_envs, vector.single_observation_space, vector.single_action_space)

    def reset(self) -> Array:
        """Begin an episode in every environment, with the seeds that `seed` has set."""
        seeds = None if all(seed is None for seed in self._seeds) else list(self._seeds)
        observations, infos = self.vector.reset(seed=seeds)
        self.reset_infos = rows_of(infos, self.num_envs)
        self._reset_seeds()
        self._reset_options()
        result: Array = observations
        return result

    def step_async(self, actions: Array) -> None:
        """Note what is to be done; `step_wait` does it."""
        self._actions = actions

    def step_wait(self) -> tuple[Array, Array, Array, list[Info]]:
        """One step of every environment. The last info of an episode carries its last observation."""
        observations, rewards, ended, cut, infos = self.vector.step(self._actions)
        rows = rows_of(infos, self.num_envs)
        for number, is_over in enumerate(ended | cut):
            if is_over:
                rows[number] = last_row(rows[number], is_cut=bool(cut[number] and not ended[number]))
        return observations, rewards.astype(np.float32), ended | cut, rows

    def close(self) -> None:
        self.vector.close()

    def get_attr(self, attr_name: str, indices: Indices = None) -> list[Any]:
        """The attribute of the vector environment, which its environments share."""
        return [getattr(self.vector, attr_name) for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Indices = None) -> None:  # noqa: ARG002
        raise ConfigError(f"{attr_name} cannot be set: these environments share what they are made of")

    def env_method(self, method_name: str, *args: Any, **kwargs: Any) -> list[Any]:  # noqa: ARG002
        raise ConfigError(f"{method_name}() cannot be called on single environments of {self.vector}")

    def env_is_wrapped(self, wrapper_class: type[Any], indices: Indices = None) -> list[bool]:  # noqa: ARG002
        """None of them is."""
        return [False for _ in self._get_indices(indices)]


def rows_of(infos: Info, count: int) -> list[Info]:
    """Gymnasium's arrays with masks as one dictionary for each row."""
    rows: list[Info] = [{} for _ in range(count)]
    for key, value in infos.items():
        mask: Sequence[bool] | None = infos.get(f"_{key}")
        if mask is None:
            continue  # itself a mask, or about the batch as a whole
        parts: Any = rows_of(value, count) if isinstance(value, dict) else value
        for number in range(count):
            if mask[number]:
                rows[number][key] = parts[number]
    return rows


def last_row(row: Info, *, is_cut: bool) -> Info:
    """The info of an episode's last step, out of that of the step and of the reset after it."""
    return {
        **row.get("final_info", {}),
        "terminal_observation": row["final_obs"],
        "TimeLimit.truncated": is_cut,
    }
