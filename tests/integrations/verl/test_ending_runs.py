"""What ends a verl run: before the first generation, or later in V1, in its driver, on a real Ray."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest
from complaints import about
from loopback import INSTANT, loopback
from until import until
from verl_batches import batch, configuration, save_tokenizer

from plaudit.errors import BatchFailed, ConfigError
from plaudit.simulator import Fault

pytestmark = pytest.mark.trainers


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tokenizer(tmp_path_factory.mktemp("tokenizer"))


@pytest.fixture(autouse=True)  # a new one each time: names of workers are taken for a while
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


def test_a_judge_without_a_server_is_named(folder: Path) -> None:
    from verl.experimental.reward_loop.reward_loop import RewardLoopManager

    with pytest.raises(ConfigError, check=about("base_url", "reward.plaudit.base_url")):
        RewardLoopManager(configuration(folder, plaudit={"rubric": "Is it right?"}))


def test_a_worker_that_cannot_be_built_is_waited_for(folder: Path) -> None:
    """The driver finds nothing wrong; the worker is refused its key."""
    from ray.exceptions import RayActorError
    from verl.experimental.reward_loop.reward_loop import RewardLoopManager

    with (
        loopback(INSTANT.replace(faults=(Fault("error", status=401),))) as judge,
        pytest.raises(RayActorError, match="BatchFailed"),
    ):
        RewardLoopManager(configuration(folder, plaudit={"base_url": judge.url, "model": "m"}))


def test_a_worker_ends_a_run_of_v1_which_only_drops_rows_that_raise(folder: Path) -> None:
    import ray
    from omegaconf import open_dict
    from ray.exceptions import RayError
    from verl.experimental.reward_loop.reward_loop import RewardLoopManager
    from verl.utils import hf_tokenizer

    refusing = INSTANT.replace(faults=(Fault("error", status=400),))
    with loopback(refusing) as judge:
        table = {"base_url": judge.url, "cache": "off", "too_many": "stop", "max_failure_rate": 0.0}
        config = configuration(folder, plaudit={**table, "patience": 0})
        with open_dict(config):
            config.trainer = {"use_v1": True}
        workers = RewardLoopManager(config).reward_loop_workers
        rows = batch(hf_tokenizer(str(folder)), ["answer 1"], uid=None)
        with pytest.raises(BatchFailed, match="too_many") as ended:  # at any moment from the first row on
            with pytest.raises(RayError):  # which V1 catches
                ray.get(workers[0].compute_score.remote(rows))
            until(lambda: False)  # V1's driver waits as well, between two looks at its queue
    told = pickle.loads(
        ray.cloudpickle.dumps(ended.value)
    )  # the driver is an actor, and the user is not there
    assert (type(told), str(told)) == (BatchFailed, str(ended.value))
