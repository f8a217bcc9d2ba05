"""Real TRL trainers, GRPO and RLOO, on a tiny policy, with a simulated judge on a real socket."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from loopback import INSTANT, Loopback, loopback, taking
from until import until

from plaudit import Rubric
from plaudit.errors import BatchFailed
from plaudit.integrations.trl import overlap, reward_function
from plaudit.rewards import LengthPenalty
from plaudit.simulator import Fault

pytestmark = pytest.mark.trainers
pytestmark = [pytestmark, pytest.mark.filterwarnings("ignore")]  # type: ignore[assignment]  # not ours

JUDGE = Rubric("Is it correct and brief?", scale=(0, 10))
GENERATIONS = 4


@pytest.fixture(scope="session")
def policy(tmp_path_factory: pytest.TempPathFactory) -> str:
    import torch
    from tiny_policy import save_tiny_policy

    torch.set_num_threads(1)  # on something so small, several only wait for each other
    return save_tiny_policy(tmp_path_factory.mktemp("policy"))


@pytest.fixture
def judge() -> Iterator[Loopback]:
    with loopback(INSTANT) as server:
        yield server


def questions(count: int = 16, *, is_chat: bool = False) -> Any:
    from datasets import Dataset

    texts = [f"What is {number} + 2?" for number in range(count)]
    return Dataset.from_dict({
        "prompt": [[{"role": "user", "content": text}] for text in texts] if is_chat else texts,
        "solution": [str(number + 2) for number in range(count)],
    })  # fmt: skip


def train(
    trainer_class: Any,
    policy: str,
    folder: Path,
    reward_funcs: Any,
    *,
    dataset: Any = None,
    evaluate: bool = False,
    **options: Any,
) -> Any:
    """Train to the end; the trainer."""
    import trl

    config = trl.RLOOConfig if "RLOO" in trainer_class.__name__ else trl.GRPOConfig
    settings = {
        "max_steps": 3,
        "per_device_train_batch_size": 8,
        "num_generations": GENERATIONS,
        "max_completion_length": 8,
        "learning_rate": 1e-3,
        "beta": 0.04,
        "logging_steps": 1,
        "save_strategy": "no",
        "report_to": [],
        "use_cpu": True,
        "bf16": False,
        "disable_tqdm": True,
        "seed": 1,
        **options,
    }
    trainer = trainer_class(
        model=policy,
        reward_funcs=reward_funcs,
        args=config(output_dir=str(folder), **settings),
        train_dataset=dataset or questions(),
        eval_dataset=questions(4) if evaluate else None,
    )
    trainer.train()
    return trainer


def logged(trainer: Any, name: str) -> list[float]:
    return [entry[name] for entry in trainer.state.log_history if name in entry]


def seen(trainer_class: Any) -> Any:
    """The trainer class, keeping the rewards of the first function and the advantages of every batch."""

    class Keeping(trainer_class):  # type: ignore[misc]
        def _calculate_rewards(self, *args: Any) -> Any:
            rewards = super()._calculate_rewards(*args)
            self.rewards_now = rewards[:, 0].tolist()
            return rewards

        def _generate_and_score_completions(self, inputs: Any) -> Any:
            output = super()._generate_and_score_completions(inputs)
            self.kept = [*getattr(self, "kept", []), (self.rewards_now, output["advantages"].tolist())]
            return output

    Keeping.__name__ = trainer_class.__name__
    return Keeping


# -- the run that must be shown ---------------------------------------------------------------------------


def test_twenty_steps_with_a_tenth_of_the_verdicts_missing(policy: str, tmp_path: Path) -> None:
    from trl import GRPOTrainer

    faults = (Fault("refusal", probability=0.1),)
    with loopback(INSTANT.replace(seed=3, faults=faults)) as judge:
        reward = reward_function(JUDGE, penalty=LengthPenalty(), url=judge.url, model="m", cache=None)
        trainer = train(
            overlap(seen(GRPOTrainer)), policy, tmp_path, reward,
            max_steps=20, log_completions=True,
        )  # fmt: skip
    assert trainer.state.global_step == 20
    rows = [pair for rewards, gains in trainer.kept for pair in zip(rewards, gains, strict=True)]
    missing = [gain for value, gain in rows if math.isnan(value)]
    assert len(rows) == 160
    assert 8 <= len(missing) <= 32
    assert set(missing) == {0.0}
    assert sum(abs(gain) > 0 for value, gain in rows if not math.isnan(value)) > 100
    rates = logged(trainer, "judge/failure_rate/refused")
    assert len(rates) == 20
    assert 0.02 < sum(rates) / 20 < 0.25
    for name in (
        "judge/score_mean",
        "judge/calls",
        "judge/wait_s",
        "reward/length/mean",
        "reward/valid_rate",
    ):
        assert len(logged(trainer, name)) == 20
    table = _table(tmp_path)
    assert {"judge_status", "judge_reason", "judge_record", "judged_reward"} <= set(table.column_names)
    assert set(table["judge_status"].to_pylist()) <= {"ok", "refused", "empty"}


def _table(folder: Path) -> Any:
    import pyarrow.parquet

    return pyarrow.parquet.read_table(sorted((folder / "completions").glob("*.parquet"))[-1])


# -- overlap ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "is_chat"), [("GRPOTrainer", True), ("RLOOTrainer", False)])
def test_overlapped_or_not_the_rewards_are_the_same_and_asked_for_once(
    name: str, is_chat: bool, policy: str, tmp_path: Path, judge: Loopback, caplog: pytest.LogCaptureFixture
) -> None:
    import trl

    plain = seen(getattr(trl, name))
    found = []
    for trainer_class in (plain, overlap(plain)):
        reward = reward_function(JUDGE, url=judge.url, model="m", cache=None)
        trainer = train(
            trainer_class,
            policy,
            tmp_path,
            reward,
            dataset=questions(is_chat=is_chat),
            max_steps=2,
            evaluate=True,
        )
        trainer.evaluate()
        found.append((trainer.kept, logged(trainer, "judge/calls"), logged(trainer, "eval_judge/calls")))
    assert found[0] == found[1]
    assert len(found[0][0]) == 2 + 2  # two steps, two batches of evaluation
    assert "judged anew" not in caplog.text


def test_generations_that_serve_several_steps_are_judged_once(
    policy: str, tmp_path: Path, judge: Loopback
) -> None:
    from trl import GRPOTrainer

    reward = reward_function(JUDGE, url=judge.url, model="m", cache=None)
    trainer = train(
        overlap(seen(GRPOTrainer)), policy, tmp_path, reward,
        max_steps=8, steps_per_generation=2, num_iterations=2, gradient_accumulation_steps=1,
    )  # fmt: skip
    assert len(trainer.kept) == 2
    assert all(len(rewards) == 16 for rewards, _ in trainer.kept)
    assert judge.stats.requests <= 32


def test_the_judge_is_hidden_behind_log_probs(policy: str, tmp_path: Path) -> None:
    from trl import GRPOTrainer

    class LongLogProbs(GRPOTrainer):  # type: ignore[misc]
        """Works at log-probs until the judge answers, where it was asked before them."""

        def _get_per_token_logps_and_entropies(self, *args: Any, **options: Any) -> Any:
            if is_overlapped and getattr(self, "is_scoring", False):
                until(lambda: judge.stats.answered > self.answered)
            return super()._get_per_token_logps_and_entropies(*args, **options)

        def _generate(self, *args: Any, **options: Any) -> Any:
            generated = super()._generate(*args, **options)
            self.answered = judge.stats.answered
            return generated

        def _generate_and_score_completions(self, inputs: Any) -> Any:
            self.is_scoring = True
            try:
                return super()._generate_and_score_completions(inputs)
            finally:
                self.is_scoring = False

    waits = []
    with loopback(INSTANT.replace(latency=taking(1.0))) as judge:
        for is_overlapped in (False, True):
            trainer_class = overlap(LongLogProbs) if is_overlapped else LongLogProbs
            reward = reward_function(JUDGE, url=judge.url, model="m", cache=None)
            trainer = train(trainer_class, policy, tmp_path, reward, max_steps=2, num_iterations=2)
            waits.append(logged(trainer, "judge/wait_s")[-1])
    assert waits[0] >= 1.0 > waits[1]


def test_trl_with_other_insides_trains_on_without_overlap(
    policy: str, tmp_path: Path, judge: Loopback, caplog: pytest.LogCaptureFixture
) -> None:
    from trl import GRPOTrainer

    class Changed(GRPOTrainer):  # type: ignore[misc]
        def _generate(self, prompts: Any) -> Any:
            return [*super()._generate(prompts)]

    reward = reward_function(JUDGE, url=judge.url, model="m", cache=None)
    trainer = train(overlap(Changed), policy, tmp_path, reward)
    assert len(logged(trainer, "judge/calls")) == 3
    assert caplog.text.count("knows TRL 1.6 to 1.16") == 1
    assert "Changed._generate gives other things" in caplog.text


def test_an_overlap_that_hides_nothing_says_so(
    policy: str, tmp_path: Path, judge: Loopback, caplog: pytest.LogCaptureFixture
) -> None:
    from trl import GRPOTrainer

    reward = reward_function(JUDGE, url=judge.url, model="m", cache=None)
    train(overlap(GRPOTrainer), policy, tmp_path, reward, max_steps=1, beta=0.0)
    assert "nothing to overlap with" in caplog.text


# -- failures ---------------------------------------------------------------------------------------------


def test_other_reward_functions_punish_a_failed_verdict_and_rules_do_not(
    policy: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    from trl import GRPOTrainer

    def constant(completions: list[str], **_: Any) -> list[float]:
        return [1.0] * len(completions)

    with loopback(INSTANT.replace(seed=3, faults=(Fault("refusal", probability=0.3),))) as judge:
        options: Any = {"url": judge.url, "model": "m", "cache": None, "max_failure_rate": None}
        beside = train(
            seen(GRPOTrainer), policy, tmp_path, [reward_function(JUDGE, **options), constant],
        )  # fmt: skip
        within = train(
            seen(GRPOTrainer), policy, tmp_path, reward_function(JUDGE, rules=[constant], **options)
        )
    assert "TRL adds this judge to constant" in caplog.text
    failed = [
        [
            gain
            for rewards, gains in trainer.kept
            for value, gain in zip(rewards, gains, strict=True)
            if math.isnan(value)
        ]
        for trainer in (beside, within)
    ]
    assert any(failed[0])
    assert failed[1]
    assert not any(failed[1])


def test_the_arithmetic_of_the_warning_is_trls(policy: str, tmp_path: Path) -> None:
    from trl import GRPOTrainer

    def one(completions: list[str], **_: Any) -> list[float]:
        return [1.0] * len(completions)

    def judged(completions: list[str], **_: Any) -> list[float | None]:
        return [1.0, 1.0, 1.0, None] * (len(completions) // 4)

    trainer = train(seen(GRPOTrainer), policy, tmp_path, [judged, one], max_steps=1)
    assert trainer.kept[0][1][:4] == pytest.approx([0.5, 0.5, 0.5, -1.5], abs=1e-3)


def test_a_judge_that_is_down_ends_the_run_with_its_error(policy: str, tmp_path: Path) -> None:
    from trl import GRPOTrainer

    with loopback(INSTANT.replace(faults=(Fault("refusal"),))) as judge:
        reward = reward_function(JUDGE, url=judge.url, model="m", cache=None)
        with pytest.raises(BatchFailed, match=r"no verdict at all.*declined"):
            train(GRPOTrainer, policy, tmp_path, reward)


# -- the guide --------------------------------------------------------------------------------------------
