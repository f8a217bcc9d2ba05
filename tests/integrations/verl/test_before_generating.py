"""What is wrong with a verl run ends it before the first generation, in the driver, on a real Ray."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from complaints import about
from verl_batches import configuration, save_tokenizer

from plaudit.errors import ConfigError

pytestmark = pytest.mark.trainers


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tokenizer(tmp_path_factory.mktemp("tokenizer"))


@pytest.fixture(scope="module", autouse=True)
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    import ray

    ray.shutdown()
    home = {"PLAUDIT_HOME": str(tmp_path_factory.mktemp("home")), "HF_HUB_OFFLINE": "1"}
    ray.init(
        "local", num_cpus=4, include_dashboard=False, log_to_driver=False, runtime_env={"env_vars": home}
    )
    yield
    ray.shutdown()


def test_a_misspelt_key_is_named(folder: Path) -> None:
    from verl.experimental.reward_loop.reward_loop import RewardLoopManager

    wrong = configuration(folder, plaudit={"base_url": "http://127.0.0.1:9/v1", "rubrik": "Is it right?"})
    with pytest.raises(ConfigError, check=about("rubrik")) as raised:
        RewardLoopManager(wrong)
    assert raised.value.setting == "rubrik"


def test_a_worker_that_cannot_be_built_is_waited_for(folder: Path) -> None:
    """The driver finds nothing wrong; the worker finds no server to ask."""
    from ray.exceptions import RayActorError
    from verl.experimental.reward_loop.reward_loop import RewardLoopManager

    with pytest.raises(RayActorError, match=r"reward\.plaudit\.base_url"):
        RewardLoopManager(configuration(folder, plaudit={"rubric": "Is it right?"}))
