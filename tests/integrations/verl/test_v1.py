"""verl's V1 with its own agent-loop worker, reward workers and TransferQueue, on a real Ray."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from loopback import INSTANT, LOSING_A_TENTH, Loopback, loopback
from until import until
from verl_batches import save_tokenizer

from plaudit.simulator import Fault

pytestmark = pytest.mark.trainers

pytest.importorskip("hydra")
pytest.importorskip("transfer_queue")

HERE = Path(__file__).parent
MODEL = {
    "architectures": ["Qwen2ForCausalLM"],
    "model_type": "qwen2",
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_attention_heads": 2,
    "num_hidden_layers": 1,
    "num_key_value_heads": 2,
    "vocab_size": 300,
}
N = 8


@pytest.fixture(scope="module")
def judge() -> Iterator[Loopback]:
    with loopback() as server:
        yield server


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory, judge: Loopback) -> Any:
    import hydra  # type: ignore[import-not-found, unused-ignore]
    import verl

    folder = save_tokenizer(tmp_path_factory.mktemp("model"))
    (folder / "config.json").write_text(json.dumps(MODEL), encoding="utf-8")
    loops = folder / "loops.yaml"
    loops.write_text("- {name: saying, _target_: v1_agent_loop.SayingLoop}\n", encoding="utf-8")
    overrides = [
        f"actor_rollout_ref.model.path={folder}",
        "actor_rollout_ref.rollout.name=vllm",
        f"actor_rollout_ref.rollout.n={N}",
        f"actor_rollout_ref.rollout.agent.agent_loop_config_path={loops}",
        "actor_rollout_ref.rollout.agent.default_agent_loop=saying",
        "reward.num_workers=2",
        "reward.reward_manager.name=plaudit",
        f"+reward.plaudit.base_url={judge.url}",
        "+reward.plaudit.cache=off",
        "+reward.plaudit.rule=off",
        "+reward.plaudit.group_timeout=1800",
        "transfer_queue.backend.SimpleStorage.num_data_storage_units=1",
    ]
    with hydra.initialize_config_dir(
        str(Path(verl.__file__).parent / "trainer" / "config"), version_base=None
    ):
        return hydra.compose("ppo_trainer", overrides=overrides)


@pytest.fixture(scope="module")
def worker(config: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A worker of agent loops, whose rows go to two reward workers."""
    import ray
    import transfer_queue as tq  # type: ignore[import-not-found, unused-ignore]
    from verl.experimental.reward_loop import RewardLoopManager
    from verl.trainer.ppo.v1.agent_loop_tq import AgentLoopWorkerTQ

    ray.shutdown()
    variables = {
        "PLAUDIT_HOME": str(tmp_path_factory.mktemp("home")),
        "HF_HUB_OFFLINE": "1",
        "PYTHONPATH": f"{HERE}:{HERE.parents[2] / 'src'}",
    }
    ray.init(
        "local", num_cpus=8, include_dashboard=False, log_to_driver=False, runtime_env={"env_vars": variables}
    )
    tq.init(config.transfer_queue)
    manager = RewardLoopManager(config)
    yield AgentLoopWorkerTQ.remote(config, None, None, manager.reward_loop_worker_handles)
    tq.close()
    ray.shutdown()


def trained(worker: Any, groups: int, *, step: int, lost: tuple[int, ...] = ()) -> dict[str, list[float]]:
    """The rewards of a step by prompt, as verl stores them for the trainer."""
    import transfer_queue as tq

    uids = [f"{step}-{group}" for group in range(groups)]
    found = generated(worker, uids, step=step, lost=lost)
    rewards: dict[str, list[float]] = {uid: [] for uid in uids}
    for key in sorted(found):
        fields = tq.kv_batch_get(keys=[key], partition_id="train", select_fields=["rm_scores"])
        rewards[key.split("_")[0]].append(float(fields["rm_scores"][0][-1]))
    tq.kv_clear(keys=[*uids, *found], partition_id="train")
    return rewards


def generated(worker: Any, uids: list[str], *, step: int, lost: tuple[int, ...] = ()) -> list[str]:
    """The keys under which verl keeps what was generated for these prompts, and rewarded."""
    import numpy as np
    import ray
    import transfer_queue as tq
    from verl.utils import tensordict_utils as tu

    groups = len(uids)
    columns = {
        "raw_prompt": [
            [{"role": "user", "content": f"Question {group} of {step}?"}] for group in range(groups)
        ],
        "uid": uids,
        "data_source": ["own/questions"] * groups,
        "reward_model": [{"ground_truth": "56"}] * groups,
        "extra_info": [
            {"index": group + 10 * step, "split": "train", "lost": lost} for group in range(groups)
        ],
        "index": list(range(groups)),
    }
    arrays = {}
    for name, values in columns.items():
        arrays[name] = np.empty(groups, dtype=object)
        arrays[name][:] = values
    batch = tu.get_tensordict(arrays)
    tu.assign_non_tensor_data(batch, "global_steps", step)
    tags = [{"is_prompt": True, "status": "pending", "global_steps": step}] * groups
    tq.kv_batch_put(keys=uids, partition_id="train", tags=tags)
    ray.get(worker.generate_sequences.remote(batch))
    return _settled(uids)


def _settled(uids: list[str]) -> list[str]:
    """The keys of the last sequence of every trajectory, once all groups have ended."""
    import transfer_queue as tq

    def items() -> dict[str, Any]:
        found: dict[str, Any] = tq.kv_list("train")["train"]
        return found

    until(lambda: all(items()[uid]["status"] in ("finished", "failure") for uid in uids))
    return [key for key in items() if key.endswith("_1")]


def test_every_row_of_every_group_is_rewarded(worker: Any) -> None:
    rewards = trained(worker, 4, step=1)
    assert [len(group) for group in rewards.values()] == [N] * 4
    assert len({reward for group in rewards.values() for reward in group}) > 1


def test_rows_without_a_verdict_are_left_out_and_their_siblings_keep_what_they_earned(
    worker: Any, judge: Loopback
) -> None:
    before = trained(worker, 4, step=2)
    judge.server.become(INSTANT.replace(faults=LOSING_A_TENTH), now=0.0)
    after = trained(worker, 4, step=2)
    judge.server.become(INSTANT, now=0.0)
    assert sum(map(len, after.values())) < 4 * N
    for uid, rewards in after.items():
        assert set(rewards) <= set(before[uid])


def test_a_lost_rollout_holds_up_nobody(worker: Any) -> None:
    started = time.monotonic()
    rewards = trained(worker, 4, step=3, lost=(0, 5))
    assert [len(group) for group in rewards.values()] == [N - 2] * 4
    assert time.monotonic() - started < 1500  # group_timeout is half an hour


def sampled(refill: Callable[[int], None] | None) -> Any:
    """What verl's synchronous trainer takes for a step of two prompts."""
    from verl.trainer.ppo.v1.replay_buffer import ReplayBuffer

    buffer = ReplayBuffer(
        "sync", {}, None, "drop", {},
        poll_interval=0.01, refill_fn=refill, train_batch_size=2, gen_batch_size=1,
        sync_refill_failed_groups=refill is not None,
    )  # fmt: skip
    batch, _ = buffer.sample(global_steps=4, partition_id="train", batch_size=2)
    return batch


def test_groups_without_verdicts_are_replaced_by_other_prompts_where_verl_is_told_to(
    worker: Any, judge: Loopback
) -> None:
    """trainer.v1.sampler.sync_refill_failed_groups=True; without it, such a step ends the run."""
    import transfer_queue as tq

    refilled: list[str] = []

    def refill(count: int) -> None:
        new = [f"5-{len(refilled) + number}" for number in range(count)]
        refilled.extend(new)
        generated(worker, new, step=5)

    judge.server.become(INSTANT.replace(faults=(Fault("refusal"),)), now=0.0)
    assert generated(worker, ["4-0", "4-1"], step=4) == []
    judge.server.become(INSTANT, now=0.0)
    with pytest.raises(RuntimeError, match="sync_refill_failed_groups"):
        sampled(None)
    batch = sampled(refill)
    assert {key.split("_")[0] for key in batch.keys} == set(refilled) == {"5-0", "5-1"}
    tq.kv_clear(keys=batch.keys, partition_id="train")
