"""How to train a query mutator, as plain data, checked before anything is loaded or asked."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from plaudit.errors import ConfigError
from plaudit.settings import option
from plaudit.value_check import ABOVE_0, check_numbers

Pace = Literal["one-by-one", "together", "free"]
"""One chain at a time; all at once, then wait for all; or each environment for itself within a rollout."""
PPO = "PPO"
"""The section of the command's help that shows these options."""


@dataclass(frozen=True, slots=True)
class Training:
    """How to train. The names are those of the command's flags."""

    num_processes: int = option(16, "Environments", PPO)
    num_steps: int = option(32, "Steps per environment in a rollout", PPO)
    num_env_steps: int = option(10_000, "Total steps of all environments, rounded up to whole rollouts", PPO)
    ppo_epoch: int = option(4, "Passes over a rollout", PPO)
    num_mini_batch: int = option(4, "Number of mini-batches", PPO)
    seed: int = option(0, "The same seed gives the same training", PPO)
    lr: float = option(1e-3, "Learning rate", PPO)
    gamma: float = option(0.99, "Discount factor for later rewards", PPO)
    gae_lambda: float = option(0.95, "Lambda of the generalized advantage estimation", PPO)
    clip_param: float = option(0.2, "Clipping range of the policy ratio in one update", PPO)
    entropy_coef: float = option(0.01, "Weight of the entropy", PPO)
    value_loss_coef: float = option(0.5, "Weight of the value loss", PPO)
    max_grad_norm: float = option(0.5, "Maximum norm of the gradients", PPO)
    pace: Pace = "together"
    """Changes how long it takes, and nothing else."""

    def __post_init__(self) -> None:
        counts = ("num_processes", "num_steps", "ppo_epoch", "num_mini_batch", "num_env_steps")
        check_numbers(self, *counts, low=1)
        check_numbers(self, "lr", "clip_param", "max_grad_norm", low=ABOVE_0)
        check_numbers(self, "gamma", "gae_lambda", low=0, high=1)
        check_numbers(self, "entropy_coef", "value_loss_coef", "seed", low=0)
        if self.num_mini_batch * 2 > self.rollout:
            raise ConfigError(
                f"is more than {self.rollout} samples can fill "
                f"(--num-processes {self.num_processes} x --num-steps {self.num_steps}), at two samples or "
                f"more each; use {self.rollout // 2} or fewer, or more steps",
                setting="num_mini_batch",
                value=self.num_mini_batch,
            )

    @property
    def rollout(self) -> int:
        """Samples between two updates of the policy."""
        return self.num_processes * self.num_steps

    @property
    def steps(self) -> int:
        """What there will be at the end: whole rollouts."""
        return math.ceil(self.num_env_steps / self.rollout) * self.rollout


def flag(name: str) -> str:
    """A setting as it is written on the command line."""
    return "--" + name.replace("_", "-")
