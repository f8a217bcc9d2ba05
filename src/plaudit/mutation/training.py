"""How to train a query mutator, as plain data, checked before anything is loaded or asked."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from plaudit.errors import ConfigError
from plaudit.value_check import ABOVE_0, check_numbers

T = TypeVar("T")

Pace = Literal["one-by-one", "together", "free"]
"""One chain at a time; all at once, then wait for all; or each environment for itself within a rollout."""


def _option(default: T, text: str) -> T:
    """A field that is an option of the command, too."""
    found: T = field(default=default, metadata={"help": text, "section": "PPO"})
    return found


@dataclass(frozen=True, slots=True)
class Training:
    """How to train. The names are those of the command's flags."""

    num_processes: int = _option(16, "Environments")
    num_steps: int = _option(32, "Steps per environment in a rollout")
    num_env_steps: int = _option(10_000, "Total steps of all environments, rounded up to whole rollouts")
    ppo_epoch: int = _option(4, "Passes over a rollout")
    num_mini_batch: int = _option(4, "Number of mini-batches")
    seed: int = _option(0, "The same seed gives the same training")
    lr: float = _option(1e-3, "Learning rate")
    gamma: float = _option(0.99, "Discount factor for later rewards")
    gae_lambda: float = _option(0.95, "Lambda of the generalized advantage estimation")
    clip_param: float = _option(0.2, "Clipping range of the policy ratio in one update")
    entropy_coef: float = _option(0.01, "Weight of the entropy")
    value_loss_coef: float = _option(0.5, "Weight of the value loss")
    max_grad_norm: float = _option(0.5, "Maximum norm of the gradients")
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
