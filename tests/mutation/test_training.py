"""What a training may be told, and what it says of the rest before anything starts."""

from __future__ import annotations

import pytest
from complaints import about

from plaudit.errors import ConfigError
from plaudit.mutation.training import Training


def test_the_defaults_are_those_of_the_command() -> None:
    training = Training()
    assert (training.num_processes, training.num_steps) == (16, 32)
    assert (training.ppo_epoch, training.num_mini_batch) == (4, 4)
    assert training.rollout == 512


def test_steps_are_rounded_up_to_whole_rollouts() -> None:
    assert Training(num_env_steps=1000).steps == 1024


def test_more_mini_batches_than_samples_are_refused_with_the_sum() -> None:
    with pytest.raises(ConfigError, check=about("num_mini_batch")):
        Training(num_processes=2, num_steps=4, num_mini_batch=64)


@pytest.mark.parametrize(
    "wrong",
    [
        {"num_processes": 0},
        {"num_env_steps": -1},
        {"lr": 0.0},
        {"gamma": 1.5},
        {"clip_param": float("nan")},
        {"seed": -1},
        {"entropy_coef": -0.1},
    ],
)
def test_a_number_that_makes_no_sense_is_named_by_its_setting(wrong: dict[str, float]) -> None:
    [(name, value)] = wrong.items()
    with pytest.raises(ConfigError, check=about(name, str(value))):
        Training(**wrong)  # type: ignore[arg-type]
