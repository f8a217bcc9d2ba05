"""PPO whose rollouts need not wait for the slowest environment, and are the same at every pace.

stable-baselines3 steps all environments together. Here each environment acts when it has finished, in one of
three paces, and fills its own column of the rollout. Its actions depend on the policy, on its own past and on
(seed, environment, step), never on the order in which replies came in: one by one, together, or each for
itself, the rollout is the same, and so is the curve.

`VectorAdapter` shows Gymnasium's vector environments as stable-baselines3 wants them:

    PPO("MlpPolicy", VectorAdapter(BatchedQueryMutationEnv(task, num_envs=16)))
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import torch
from gymnasium.vector import AutoresetMode, VectorEnv
from numpy.typing import NDArray
from stable_baselines3 import PPO
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.utils import set_random_seed
from stable_baselines3.common.vec_env import VecEnv

from plaudit.errors import ConfigError
from plaudit.mutation.env import Turn
from plaudit.mutation.episode import REJECTED, Info
from plaudit.mutation.training import Pace

log = logging.getLogger("plaudit")

Array = NDArray[Any]
Indices = None | int | Iterable[int]
TOO_MANY_FAILED = 0.5
"""The share of steps with a failed call past which a rollout counts as an outage."""


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
        for number in np.flatnonzero(ended | cut):
            rows[number] = {
                **rows[number].get("final_info", {}),
                "terminal_observation": rows[number]["final_obs"],
                "TimeLimit.truncated": bool(cut[number] and not ended[number]),
            }
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


class PacedPPO(PPO):  # type: ignore[misc]
    """stable-baselines3's PPO over a VectorAdapter of a BatchedQueryMutationEnv."""

    pace: Pace = "together"
    failed_share: float = 0.0
    """Of the last rollout's steps: those in which a call failed."""
    is_outage: bool = False
    """Whether the last rollout says more about the servers than about the policy."""
    are_servers_gone: Callable[[], bool] = staticmethod(lambda: False)
    """Whether calls fail at present and none succeeds."""
    on_turn: Callable[[Info, bool], None] | None = None
    """Called with the info of every step, and whether it ended an episode."""

    def collect_rollouts(
        self,
        env: VectorAdapter,
        callback: BaseCallback,
        rollout_buffer: RolloutBuffer,
        n_rollout_steps: int,
    ) -> bool:
        """Fill the buffer, each environment its own column. False where the callback wants to stop."""
        self.policy.set_training_mode(False)
        rollout_buffer.reset()
        callback.on_rollout_start()
        rollout = _Rollout(self, env, rollout_buffer, first=self.num_timesteps // env.num_envs)
        width = 1 if self.pace == "one-by-one" else env.num_envs
        waiting = deque(range(env.num_envs))
        flying = 0
        while waiting or flying:
            while waiting and flying < width:
                rollout.act(waiting.popleft())
                flying += 1
            for number in rollout.settle(flying if self.pace == "together" else 1):
                flying -= 1
                self.num_timesteps += 1
                if rollout.taken[number] < n_rollout_steps:
                    waiting.append(number)
            callback.update_locals(locals())
            if not callback.on_step():
                return False
        self.failed_share = rollout.outages / (n_rollout_steps * env.num_envs)
        self.is_outage = self.failed_share > TOO_MANY_FAILED or self.are_servers_gone()
        self._last_obs, self._last_episode_starts = rollout.observations, rollout.starts
        rollout.finish()
        callback.update_locals(locals())
        callback.on_rollout_end()
        return True

    def train(self) -> None:
        """Update the policy, unless the servers are gone: that would teach it about the outage."""
        if self.is_outage:
            log.warning(
                "the servers are down (%.0f%% of the steps up to %d failed): the policy is not updated",
                100 * self.failed_share,
                self.num_timesteps,
            )
            return
        # The mini-batches are drawn from numpy's global generator: the same for the same seed and step.
        set_random_seed((self.seed or 0) + self.num_timesteps)
        super().train()

    def choose(self, observation: NDArray[np.float32], key: tuple[int, int]) -> tuple[int, float, float]:
        """An action drawn by the policy, the value of the state, and the action's log-probability.

        One observation at a time: in a batch, its result would depend on its neighbours in the last digits.
        """
        with torch.no_grad():
            state = torch.as_tensor(observation, device=self.device).unsqueeze(0)
            for_action, for_value = self.policy.mlp_extractor(self.policy.extract_features(state))
            logits = self.policy.action_net(for_action)[0].cpu().numpy()
            value = float(self.policy.value_net(for_value)[0])
        noise = np.random.default_rng([self.seed or 0, *key]).gumbel(size=logits.shape)
        action = int(np.argmax(logits + noise))
        return action, value, float(logits[action] - np.logaddexp.reduce(logits))


class _Rollout:
    """One rollout being filled. Arrays are (steps, envs), as in stable-baselines3's buffer."""

    def __init__(self, model: PacedPPO, env: VectorAdapter, buffer: RolloutBuffer, *, first: int) -> None:
        self.taken = np.zeros(env.num_envs, dtype=np.int64)
        """Steps that each environment has taken."""
        self.outages = 0
        """Steps in which a call failed; rewrites that were rejected are what the policy is to learn from."""
        self.observations: NDArray[Any] = np.array(model._last_obs)  # (envs, size)
        self.starts: NDArray[np.bool_] = np.array(model._last_episode_starts, dtype=np.bool_)
        self._model = model
        self._vector = env.vector
        self._buffer = buffer
        self._first = first

    def act(self, number: int) -> None:
        """Choose an action for an environment, note it, and send it."""
        at, buffer = (self.taken[number], number), self._buffer
        observation = self.observations[number]
        action, value, log_prob = self._model.choose(observation, (number, self._first + int(at[0])))
        buffer.observations[at] = observation
        buffer.episode_starts[at] = self.starts[number]
        buffer.actions[at] = action
        buffer.values[at] = value
        buffer.log_probs[at] = log_prob
        self._vector.send([action], [number])

    def settle(self, at_least: int) -> list[int]:
        """Wait for so many environments, note what their steps brought, and tell which they were."""
        turns: dict[int, Turn] = self._vector.collect(at_least)
        for number, turn in sorted(turns.items()):
            info = turn.final_info or turn.info
            self.outages += info["failed"] and info["failed_at"] != REJECTED
            self._buffer.rewards[self.taken[number], number] = turn.reward
            self.observations[number] = turn.observation
            self.starts[number] = turn.is_over
            self.taken[number] += 1
            if self._model.on_turn is not None:
                self._model.on_turn(info, turn.is_over)
        return sorted(turns)

    def finish(self) -> None:
        """Complete the buffer: what is still to come, and the advantages."""
        values = torch.zeros(len(self.taken))
        with torch.no_grad():
            for number, observation in enumerate(self.observations):
                state = torch.as_tensor(observation, device=self._model.device).unsqueeze(0)
                values[number] = float(self._model.policy.predict_values(state)[0])
        self._buffer.pos, self._buffer.full = self._buffer.buffer_size, True
        self._buffer.compute_returns_and_advantage(last_values=values, dones=self.starts)
