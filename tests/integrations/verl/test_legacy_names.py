"""The legacy managers under verl's own names, as its trainers before 0.7.1 look them up and call them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import ray.cloudpickle
import torch
from legacy_data import RESPONSE_WIDTH, Letters, batch
from loopback import INSTANT, Loopback, loopback
from omegaconf import OmegaConf
from verl.utils.import_utils import import_external_libs
from verl.workers.reward_manager import get_reward_manager_cls
from verl.workers.reward_manager.registry import REWARD_MANAGER_REGISTRY

import plaudit
from plaudit.errors import BatchFailed
from plaudit.integrations.verl import BatchRewardManager, LengthPenaltyRewardManager
from plaudit.simulator import Fault

pytestmark = pytest.mark.trainers

RESPONSES = [f"It is {number}." for number in range(8)]


@pytest.fixture(autouse=True)
def loaded() -> None:
    """What verl does with VERL_USE_EXTERNAL_MODULES; from 0.9 on the plug-in has done it already."""
    import_external_libs(["plaudit.integrations.verl.legacy_names"])


@pytest.fixture
def server() -> Iterator[Loopback]:
    with loopback() as found:
        yield found


def load_reward_manager(config: Any, tokenizer: Any, num_examine: int, compute_score: Any = None) -> Any:
    """What verl's main_ppo did with its configuration up to 0.7.0."""
    cls = get_reward_manager_cls(config.reward_model.reward_manager)
    return cls(
        tokenizer=tokenizer,
        num_examine=num_examine,
        compute_score=compute_score,
        reward_fn_key=config.data.reward_fn_key,
        **config.reward_model.get("reward_kwargs", {}),
    )


def config_of(name: str, **reward_kwargs: Any) -> Any:
    return OmegaConf.create(
        {
            "data": {"reward_fn_key": "data_source"},
            "reward_model": {"reward_manager": name, "reward_kwargs": reward_kwargs},
        }
    )


def test_verl_finds_them_by_name() -> None:
    assert get_reward_manager_cls("length_penalty") is LengthPenaltyRewardManager
    assert get_reward_manager_cls("plaudit_batch") is BatchRewardManager


def test_scripts_find_them_where_verl_keeps_its_own() -> None:
    from verl.utils.config import LengthPenaltyConfig
    from verl.workers.reward_manager import AsyncOpenAIManager, AsyncOpenAIWorker
    from verl.workers.reward_manager import LengthPenaltyRewardManager as Found

    assert Found is LengthPenaltyRewardManager
    assert LengthPenaltyConfig is plaudit.integrations.verl.LengthPenaltyConfig
    assert (AsyncOpenAIManager, AsyncOpenAIWorker) == (plaudit.AsyncOpenAIManager, plaudit.AsyncOpenAIWorker)


def test_a_table_of_verls_configuration_configures_the_manager(server: Loopback) -> None:
    table = {
        "api_endpoint": server.url,
        "model_name": "m",
        "reward_coefficient": 0.5,
        "rubric": "Is it kind?",
    }
    config = config_of("length_penalty", length_penalty_config=table)
    manager = load_reward_manager(config, Letters(), 0, compute_score=lambda **_: 1.0)
    assert manager.config.reward_coefficient == 0.5
    result = manager(batch(RESPONSES), return_dict=True)
    assert result["reward_tensor"].shape == (8, RESPONSE_WIDTH)
    assert server.stats.answered == 8


def test_the_second_call_after_an_exception_pays_for_what_is_missing_only() -> None:
    """Up to 0.7.0 verl calls `reward_fn(data)` once more when `reward_fn(data, return_dict=True)` raises."""
    with loopback(INSTANT.replace(faults=(Fault("refusal", requests=(4, 8)),))) as server:
        table = {"api_endpoint": server.url, "model_name": "m", "use_async_io": False}
        manager = load_reward_manager(
            config_of("length_penalty", length_penalty_config=table), Letters(), 0, lambda **_: 1.0
        )
        data = batch(RESPONSES)
        try:
            tensor = manager(data, return_dict=True)["reward_tensor"]
        except BatchFailed:
            assert server.stats.requests == 8
            tensor = manager(data)
        assert not torch.isnan(tensor).any()
        assert server.stats.requests == 12  # the four that were declined


def test_a_manager_travels_to_a_ray_task_with_its_rule_and_its_key() -> None:
    """As `launch_reward_fn_async` sends it, or what it is made of, to a task for every step."""
    weight = 0.5

    def wrapped(*, solution_str: str, **_: Any) -> float:  # a closure, as verl makes of a custom function
        return weight * ("4" in solution_str)

    with loopback(INSTANT.replace(api_key="sk-right")) as server:
        table = {"api_endpoint": server.url, "model_name": "m", "api_key": "sk-right"}
        config = config_of("length_penalty", length_penalty_config=table)
        manager = load_reward_manager(config, Letters(), 0, wrapped)
        data = batch(RESPONSES)
        tensor = manager(data)
        for _ in range(2):
            other = ray.cloudpickle.loads(ray.cloudpickle.dumps(manager))
            assert torch.equal(other(data), tensor)
            assert "sk-right" not in repr(vars(other))
        assert server.stats.requests == 8  # the verdict file is shared


def test_reward_manager_batch_may_mean_plaudits_own() -> None:
    verls_own = REWARD_MANAGER_REGISTRY["batch"]
    try:
        import_external_libs(["plaudit.integrations.verl.as_batch"])
        config = config_of("batch")
        manager = load_reward_manager(config, Letters(), 0, compute_score=lambda **_: [1.0] * 8)
        assert isinstance(manager, BatchRewardManager)
        assert manager(batch(RESPONSES)).sum() == 8.0
    finally:
        REWARD_MANAGER_REGISTRY["batch"] = verls_own
