"""A real RewardLoopManager with worker processes of its own, on Ray, against a simulated judge."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from loopback import INSTANT, JUDGE, LOSING_A_TENTH, Loopback, loopback
from until import until
from verl_batches import batch, configuration, save_tokenizer

from plaudit import Sample

pytestmark = pytest.mark.trainers


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tokenizer(tmp_path_factory.mktemp("tokenizer"))


@pytest.fixture(scope="module")
def tokenizer(folder: Path) -> Any:
    from verl.utils import hf_tokenizer

    return hf_tokenizer(str(folder))


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loopback]:
    """A judge, and a Ray to judge on."""
    import ray

    with loopback() as server:
        ray.shutdown()
        ray.init(
            "local",  # not one that others may have running here
            num_cpus=4,
            include_dashboard=False,
            log_to_driver=False,
            runtime_env={
                "env_vars": {"PLAUDIT_HOME": str(tmp_path_factory.mktemp("home")), "HF_HUB_OFFLINE": "1"}
            },
        )
        yield server
        ray.shutdown()


@pytest.fixture(scope="module")
def judged(folder: Path, judge: Loopback) -> Any:
    from verl.experimental.reward_loop.reward_loop import RewardLoopManager

    table = {"base_url": judge.url, "cache": "memory", "penalty": {"side": "over"}}
    return RewardLoopManager(configuration(folder, plaudit=table))


@pytest.fixture
def calls(judge: Loopback) -> Loopback:
    judge.server.stats = judge.server.stats.reset()
    return judge


def last_tokens(result: Any, data: Any) -> Any:
    """The reward of each row: it stands on the last token of the response, and nowhere else."""
    scores = result.batch["rm_scores"]
    lengths = data.batch["attention_mask"][:, -scores.shape[1] :].sum(dim=1)
    found = scores[range(len(scores)), lengths - 1]
    assert np.allclose(scores.sum(dim=1), found)
    return found.numpy()


def test_groups_meet_across_worker_processes_and_failures_cost_no_advantage(
    judged: Any, tokenizer: Any, calls: Loopback
) -> None:
    """Rows of one group are in both workers' halves of the batch; one verdict in ten is lost."""
    calls.server.become(INSTANT.replace(faults=LOSING_A_TENTH), now=0.0)
    uids = [f"group {row % 20}" for row in range(80)]
    data = batch(tokenizer, [f"answer {row}" for row in range(80)], uid=uids)
    result = judged.compute_rm_score(data)
    calls.server.become(INSTANT, now=0.0)

    rewards = last_tokens(result, data)
    columns = result.non_tensor_batch
    assert set(columns) == set(result.meta_info["reward_extra_keys"])
    assert np.isfinite(rewards).all()
    failed = columns["plaudit/judge_valid"] == 0.0
    assert 0 < failed.sum() < 40
    assert (columns["plaudit/members"] == 4.0).all()
    for group in range(20):
        rows = [row for row in range(80) if row % 20 == group]
        valid = [rewards[row] for row in rows if not failed[row]]
        if len(valid) >= 2:
            assert all(rewards[row] == pytest.approx(np.mean(valid), abs=1e-6) for row in rows if failed[row])
    assert calls.stats.unique == 80


def test_a_length_penalty_goes_by_the_whole_group_wherever_its_rows_are(judged: Any, tokenizer: Any) -> None:
    responses = ["1 2"] * 4 + ["3 4", "5 6 7 8 9 10", "11 12", "13 14"]
    data = batch(tokenizer, responses, uid=["a", "b"] * 4)
    penalties = judged.compute_rm_score(data).non_tensor_batch["plaudit/penalty"]
    assert penalties.tolist() == [0.0] * 5 + [-1.0] + [0.0] * 2


def test_eight_identical_samples_are_one_call(judged: Any, tokenizer: Any, calls: Loopback) -> None:
    result = judged.compute_rm_score(batch(tokenizer, ["answer 156"] * 8, uid=["a", "b"] * 4))
    assert calls.stats.requests == 1
    assert len(set(result.batch["rm_scores"].sum(dim=1).tolist())) == 1


def test_a_single_bad_row_is_scored_like_any_other(judged: Any, tokenizer: Any, calls: Loopback) -> None:
    """As the agent loop asks for it: one row to one worker, of a group that has no others."""
    import ray

    bad = [
        batch(tokenizer, ["answer 1"], uid=None),
        batch(tokenizer, [""], uid=None),
        batch(tokenizer, ["answer 2"], validate=True, raw_prompt=None),
        batch(tokenizer, ["answer 3"], validate=True, reward_model=None),
        batch(tokenizer, ["answer 4"], validate=True, data_source=None),
    ]
    worker = judged.reward_loop_workers[0]
    outputs = ray.get([worker.compute_score.remote(data) for data in bad])
    assert len({tuple(output["reward_extra_info"]) for output in outputs}) == 1
    assert all(output["reward_extra_info"]["plaudit/judge_valid"] == 1.0 for output in outputs)


def test_the_engine_outlives_every_worker(judged: Any) -> None:
    import ray

    engine = judged.plaudit_engine
    actor = ray.get_actor(engine.name, namespace="plaudit")
    process = ray.get(actor.__ray_call__.remote(lambda _: os.getpid()))
    for worker in judged.reward_loop_workers:
        ray.kill(worker)
    until(lambda: all(_is_dead(worker) for worker in judged.reward_loop_workers))
    assert engine.score([Sample("Why?", "Because.")], JUDGE)[0].is_valid
    assert ray.get(actor.__ray_call__.remote(lambda _: os.getpid())) == process


def _is_dead(worker: Any) -> bool:
    import ray

    try:
        ray.get(worker.__ray_ready__.remote(), timeout=60.0)
    except ray.exceptions.RayActorError:
        return True
    return False
