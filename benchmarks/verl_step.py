"""What judging rows as they are generated saves of a step of verl's V1 trainer.

    .venv-trainers/bin/python benchmarks/verl_step.py [--steps 12] [--judge 0.6]

verl's own V1 task with its synchronous trainer: agent loops, TransferQueue, reward loop with plaudit's
RewardManager, FSDP, GRPO with reference log-probs. Only the rollout is not verl's: transformers takes the
place of vLLM (verl_rollout.py). In every other step all rows wait until the last one is generated and are
judged then, as a batch; in the others each row is judged as it is generated. Both are in one and the same
run, so that other load on the machine falls on both alike. The GPU waits from the last token of a step until
verl's trainer has the batch, most of that for verdicts. The first two steps are left out. It needs a GPU;
with a policy of some size:

    benchmarks/verl_step.py --hidden 2048 --layers 24 --prompts 16 --tokens 256
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import table
from datasets import Dataset
from simulated import simulators
from tiny_policy import save_tiny_policy

from plaudit.simulator import Latency, Queue, Scenario

HERE = Path(__file__).parent
GENERATIONS = 8


def overrides(folder: str, url: str, options: argparse.Namespace) -> list[str]:
    """The command line of this training."""
    rows = options.prompts * GENERATIONS
    return [
        "algorithm.adv_estimator=grpo",
        f"data.train_files={folder}/train.parquet",
        f"data.val_files={folder}/train.parquet",
        f"data.train_batch_size={options.prompts}",
        "data.max_prompt_length=128",
        f"data.max_response_length={options.tokens}",
        "data.dataloader_num_workers=0",
        f"actor_rollout_ref.model.path={folder}/policy",
        "actor_rollout_ref.model.use_remove_padding=False",
        "+actor_rollout_ref.model.override_config.attn_implementation=sdpa",
        f"actor_rollout_ref.model.enable_gradient_checkpointing={options.hidden > 512}",
        f"actor_rollout_ref.actor.ppo_mini_batch_size={options.prompts}",
        f"actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu={min(rows, 16)}",
        "actor_rollout_ref.actor.strategy=fsdp2",
        "actor_rollout_ref.ref.strategy=fsdp2",
        "actor_rollout_ref.actor.use_kl_loss=True",
        "actor_rollout_ref.actor.use_torch_compile=False",
        "actor_rollout_ref.actor.optim.lr=1e-6",
        f"actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu={min(rows, 32)}",
        "actor_rollout_ref.rollout.name=transformers",
        "actor_rollout_ref.rollout.tensor_model_parallel_size=1",
        f"actor_rollout_ref.rollout.n={GENERATIONS}",
        f"actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu={min(rows, 32)}",
        "actor_rollout_ref.rollout.calculate_log_probs=False",
        "actor_rollout_ref.rollout.free_cache_engine=False",
        "actor_rollout_ref.rollout.load_format=safetensors",
        "actor_rollout_ref.rollout.agent.num_workers=2",
        "reward.num_workers=2",
        "reward.reward_manager.source=importlib",
        "reward.reward_manager.name=Switched",
        "reward.reward_manager.module.path=pkg://verl_switched",
        f"+reward.plaudit.base_url={url}",
        "+reward.plaudit.model=simulated",
        "+reward.plaudit.cache=off",
        "+reward.plaudit.rule=off",
        "transfer_queue.backend.SimpleStorage.num_data_storage_units=1",
        "trainer.n_gpus_per_node=1",
        "trainer.nnodes=1",
        "trainer.val_before_train=False",
        "trainer.test_freq=-1",
        "trainer.save_freq=-1",
        f"trainer.default_local_dir={folder}/checkpoints",
        f"trainer.total_training_steps={options.steps}",
        "trainer.logger=[file]",
    ]


def train(url: str, folder: str, options: argparse.Namespace) -> list[dict[str, float]]:
    """One training; what each step took."""
    variables = {
        "VERL_USE_EXTERNAL_MODULES": ",".join(
            ["verl_rollout", *filter(None, [os.environ.get("VERL_USE_EXTERNAL_MODULES")])]
        ),
        "VERL_STEP_NOTES": f"{folder}/notes.jsonl",
        "VERL_STEP_ROWS": str(options.prompts * GENERATIONS),
        "VERL_FILE_LOGGER_PATH": f"{folder}/metrics.jsonl",
        "PLAUDIT_HOME": f"{folder}/home",
        "HF_HUB_OFFLINE": "1",
        "PYTHONPATH": os.pathsep.join([str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])]),
    }
    os.environ.update(variables)  # before verl is imported, here and elsewhere
    import hydra
    import ray
    import verl
    from verl.trainer.main_ppo import TaskRunnerV1, run_ppo
    from verl.trainer.ppo.utils import need_critic, need_reference_policy
    from verl.utils.config import validate_config

    with hydra.initialize_config_dir(
        str(Path(verl.__file__).parent / "trainer" / "config"), version_base=None
    ):
        config = hydra.compose(
            "ppo_trainer", overrides=[*overrides(folder, url, options), *options.overrides]
        )
    validate_config(
        config=config, use_reference_policy=need_reference_policy(config), use_critic=need_critic(config)
    )
    ray.init(
        "local",
        num_cpus=16,
        num_gpus=1,
        include_dashboard=False,
        log_to_driver=options.verbose,
        runtime_env={"env_vars": variables},
    )
    try:
        run_ppo(config, task_runner_class=TaskRunnerV1)
    finally:
        ray.shutdown()
    return steps_in(folder)


def steps_in(folder: str) -> list[dict[str, float]]:
    """What verl's trainer and the rollout noted, by step."""
    notes: dict[int, dict[str, float]] = {}
    for row in lines(f"{folder}/notes.jsonl"):
        notes[row["step"]] = notes.get(row["step"], {}) | row  # the last verdict of a step holds
    found = []
    for row in lines(f"{folder}/metrics.jsonl"):
        times, note = row["data"], notes[row["step"]]
        found.append(
            {
                "number": row["step"],
                "generation": note["generated"] - note["begun"],
                "wait": note["trained"] - note["generated"],
                "for verdicts": max(note["judged"] - note["generated"], 0.0),
                "log-probs": times["timing_s/old_log_prob"] + times["timing_s/ref"],
                "update": times["timing_s/update_actor"],
                "step": times["timing_s/step"],
            }
        )
    return found


def lines(path: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--judge", type=float, default=0.6, help="seconds of an average call")
    parser.add_argument("--slots", type=int, default=16, help="calls that the judge works on at once")
    parser.add_argument("--hidden", type=int, default=256, help="width of the policy")
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--prompts", type=int, default=4, help=f"groups of {GENERATIONS} a step")
    parser.add_argument("--tokens", type=int, default=64, help="the longest response")
    parser.add_argument("--verbose", action="store_true", help="show what verl's processes say")
    parser.add_argument("overrides", nargs="*", help="more of verl's configuration, as key=value")
    options = parser.parse_args()
    server = Scenario(latency=Latency().scaled_to(options.judge), capacity=Queue(slots=options.slots))
    with tempfile.TemporaryDirectory() as folder, simulators([server]) as (judge,):
        save_tiny_policy(f"{folder}/policy", hidden=options.hidden, layers=options.layers)
        questions = options.prompts * options.steps
        Dataset.from_list([row(number) for number in range(questions)]).to_parquet(f"{folder}/train.parquet")
        steps = train(judge.url, folder, options)[2:]
    import verl
    from verl_switched import is_overlapped

    parts = ("generation", "wait", "for verdicts", "log-probs", "update", "step")
    rows, waits = [], []
    for words, kind in (("after the last row", False), ("as rows are generated", True)):
        of_kind = [step for step in steps if is_overlapped(int(step["number"])) is kind]
        medians = {part: statistics.median(step[part] for step in of_kind) for part in parts}
        waits.append(medians["wait"])
        rows.append(
            (words, *(f"{medians[part]:.2f} s" for part in parts), f"{medians['wait'] / medians['step']:.1%}")
        )
    table.show(
        f"verl {verl.__version__}, {options.prompts * GENERATIONS} responses of up to {options.tokens} "
        f"tokens, a judge of {options.judge:g} s a call and {options.slots} at once, medians of "
        f"{len(steps) // 2} steps each",
        ("judged", "generation", "GPU waits", *parts[2:], "share waited"),
        rows,
    )
    return 0 if waits[1] < waits[0] else 1


def row(number: int) -> dict[str, Any]:
    return {
        "data_source": "own/questions",
        "prompt": [{"role": "user", "content": f"Tell me what you know about the number {number}."}],
        "reward_model": {"style": "judge", "ground_truth": ""},
        "extra_info": {"index": number, "split": "train"},
    }


if __name__ == "__main__":
    sys.exit(main())
