"""RewardManager in one process: real verl batches, a real tokenizer, a simulated judge over HTTP."""

from __future__ import annotations

import asyncio
import logging
import math
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from complaints import about
from loopback import INSTANT, Loopback, loopback
from verl_batches import PROMPT, batch, configuration, save_tokenizer

from plaudit.errors import ConfigError
from plaudit.simulator import Fault

pytestmark = pytest.mark.trainers

SOURCES = "openai/gsm8k"


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Any:
    from verl.utils import hf_tokenizer

    return hf_tokenizer(str(save_tokenizer(tmp_path_factory.mktemp("tokenizer"))))


@pytest.fixture
def judge() -> Iterator[Loopback]:
    with loopback() as server:
        yield server


def manager(tokenizer: Any, url: str, *, n: int = 4, rule: Any = None, **plaudit: Any) -> Any:
    from plaudit.integrations.verl import RewardManager

    table = {"base_url": url, "model": "simulated", "cache": "off", **plaudit}
    config = configuration(Path(tokenizer.name_or_path), n=n, plaudit=table)
    _opened.append(RewardManager(config=config, tokenizer=tokenizer, compute_score=rule))
    return _opened[-1]


def scored(made: Any, data: Any) -> list[dict[str, Any]]:
    async def all_of() -> list[dict[str, Any]]:
        return list(await asyncio.gather(*(made.run_single(data[row : row + 1]) for row in range(len(data)))))

    return asyncio.run(all_of())


@pytest.fixture(autouse=True)
def closing() -> Iterator[None]:
    yield
    while _opened:
        _opened.pop().close()


_opened: list[Any] = []
GREETING = 1
"""Each manager asks its judge for a word when it is built."""


def rewards(outputs: Sequence[dict[str, Any]]) -> list[float]:
    return [output["reward_score"] for output in outputs]


def check_uniform(outputs: Sequence[dict[str, Any]]) -> None:
    """Same keys, same types, no NaN: verl takes the keys of the first row for all."""
    shapes = {
        tuple((key, type(value)) for key, value in output["reward_extra_info"].items()) for output in outputs
    }
    assert len(shapes) == 1
    for output in outputs:
        assert set(output) == {"reward_score", "reward_extra_info"}
        assert type(output["reward_score"]) is float
        numbers = [value for value in output["reward_extra_info"].values() if isinstance(value, float)]
        assert all(map(math.isfinite, [output["reward_score"], *numbers]))


def test_verls_own_rule_and_the_judge_add_up(tokenizer: Any, judge: Loopback) -> None:
    data = batch(tokenizer, ["#### 56", "answer 54"] * 2, data_source=[SOURCES] * 4)
    from verl.utils.reward_score import default_compute_score

    outputs = scored(manager(tokenizer, judge.url, rule=default_compute_score, coefficient=0.5), data)
    check_uniform(outputs)
    for output in outputs:
        extra = output["reward_extra_info"]
        assert extra["plaudit/rule_valid"] == 1.0
        assert output["reward_score"] == pytest.approx(extra["plaudit/rule"] + 0.5 * extra["plaudit/judge"])


def test_the_judge_is_asked_about_the_question_too(tokenizer: Any, judge: Loopback) -> None:
    """The same answer to two questions is two calls."""
    questions = [[{"role": "user", "content": text}] for text in ("What is 7 x 8?", "What is 8 x 8?")]
    scored(manager(tokenizer, judge.url, n=1), batch(tokenizer, ["answer 56"] * 2, raw_prompt=questions))
    assert judge.stats.unique == GREETING + 2


@pytest.mark.parametrize("share", [0.1, 1.0])
def test_failed_calls_cost_their_rows_the_advantage_and_nothing_else(tokenizer: Any, share: float) -> None:
    refusing = INSTANT.replace(faults=(Fault("error", status=400, probability=share),))
    with loopback(refusing) as server:
        made = manager(tokenizer, server.url, patience=0.0)
        outputs = scored(made, batch(tokenizer, [f"answer {number}" for number in range(40)]))
    check_uniform(outputs)
    failed = [output["reward_extra_info"]["plaudit/judge_valid"] == 0.0 for output in outputs]
    assert any(failed)
    for start in range(0, 40, 4):
        group = slice(start, start + 4)
        valid = [
            reward
            for reward, is_out in zip(rewards(outputs)[group], failed[group], strict=True)
            if not is_out
        ]
        for reward, is_out in zip(rewards(outputs)[group], failed[group], strict=True):
            if is_out and len(valid) >= 2:
                assert reward == pytest.approx(sum(valid) / len(valid))


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"uid": None}, 'non_tensor_batch["uid"]'),
        ({"raw_prompt": None}, "data.return_raw_chat=True"),
        ({"reward_model": None}, 'reward_model["ground_truth"]'),
        ({"data_source": ["no/such"] * 4}, "verl has no rule for 'no/such'"),
        ({"data_source": None}, "data_source: the row"),
        ({"extra_info": None}, ""),
    ],
)
def test_rows_with_something_missing_are_judged_and_the_remedy_is_told(
    tokenizer: Any, judge: Loopback, caplog: pytest.LogCaptureFixture, columns: dict[str, Any], said: str
) -> None:
    with caplog.at_level(logging.WARNING, logger="plaudit"):
        outputs = scored(
            manager(tokenizer, judge.url), batch(tokenizer, ["answer 1", "2", "3", "4"], **columns)
        )
    check_uniform(outputs)
    assert all(output["reward_extra_info"]["plaudit/judge_valid"] == 1.0 for output in outputs)
    assert said in caplog.text


def test_a_row_as_the_agent_loop_hands_it_over_is_read_right(tokenizer: Any, judge: Loopback) -> None:
    """Without padding, in sequences that are one trajectory, and with columns that numpy has typed."""
    import numpy as np
    import torch
    from tensordict import TensorDict
    from verl import DataProto

    answers = torch.tensor([tokenizer.encode("wrong 1 2"), tokenizer.encode("right 5 6")])
    prompts = torch.tensor([[3, 3]] * 2)
    columns = {
        "uid": "a-b-c",
        "data_source": "own",
        "index": 3,
        "raw_prompt": PROMPT,
        "extra_info": {"split": "test"},
        "reward_model": {"ground_truth": "56"},
    }
    data = DataProto(
        batch=TensorDict(
            {"prompts": prompts, "responses": answers, "attention_mask": torch.ones(2, 5, dtype=torch.long)},
            batch_size=2,
        ),
        non_tensor_batch={name: np.array([value] * 2) for name, value in columns.items()},
    )
    made = manager(tokenizer, judge.url)
    output = asyncio.run(made.run_single(data))
    check_uniform([output, *scored(made, batch(tokenizer, ["right 5 6"], validate=True))])
    assert output["reward_extra_info"]["plaudit/length"] == 3.0
    assert judge.stats.unique == GREETING + 2  # the trajectory is more than its last sequence


def test_an_empty_response_gets_the_lowest_score_without_a_call(tokenizer: Any, judge: Loopback) -> None:
    outputs = scored(manager(tokenizer, judge.url, n=2), batch(tokenizer, ["", "answer 56"]))
    check_uniform(outputs)
    assert outputs[0]["reward_extra_info"]["plaudit/judge"] == 0.0
    assert outputs[0]["reward_extra_info"]["plaudit/judge_valid"] == 1.0
    assert judge.stats.requests == GREETING + 1


def test_a_row_without_tensors_fails_as_data(tokenizer: Any, judge: Loopback) -> None:
    data = batch(tokenizer, ["answer 56", "57", "58", "59"])
    del data.batch["responses"]
    outputs = scored(manager(tokenizer, judge.url), data)
    check_uniform(outputs)
    assert "responses" in outputs[0]["reward_extra_info"]["plaudit/reason"]
    assert judge.stats.requests == GREETING + 0


def test_validation_does_not_wait_for_a_group(tokenizer: Any, judge: Loopback) -> None:
    made = manager(tokenizer, judge.url, n=8, group_timeout=60.0)
    for data in (
        batch(tokenizer, ["answer 56"], validate=True),
        batch(tokenizer, ["answer 57"], extra_info=[{"split": "test"}]),
    ):
        check_uniform(scored(made, data))


def test_a_length_penalty_goes_by_the_median_of_the_group(tokenizer: Any, judge: Loopback) -> None:
    data = batch(tokenizer, ["1 2", "3 4", "5 6", "7 8 9 10 11 12"])
    outputs = scored(manager(tokenizer, judge.url, penalty={"side": "over"}), data)
    penalties = [output["reward_extra_info"]["plaudit/penalty"] for output in outputs]
    assert penalties == [0.0, 0.0, 0.0, -1.0]


def test_one_call_judges_a_whole_group(tokenizer: Any, judge: Loopback) -> None:
    made = manager(tokenizer, judge.url, judge="group", rubric="Is it right?")
    check_uniform(scored(made, batch(tokenizer, ["answer 1", "2", "3", "4"])))
    assert judge.stats.unique == GREETING + 1


def test_a_misspelt_key_is_named_before_anything_is_sent(tokenizer: Any, judge: Loopback) -> None:
    with pytest.raises(
        ConfigError, check=about("rubrick", "reward.plaudit.rubrick", "reward.plaudit.rubric?")
    ):
        manager(tokenizer, judge.url, rubrick="Is it right?")
    assert judge.stats.requests == 0


def test_too_few_workers_for_the_groups_of_a_step_are_warned_of(
    tokenizer: Any, judge: Loopback, caplog: pytest.LogCaptureFixture
) -> None:
    """Rows that wait for their group fill the workers, and those they wait for stay outside."""
    from omegaconf import OmegaConf

    from plaudit.integrations.verl import RewardManager

    table = {"base_url": judge.url, "model": "simulated", "cache": "off"}
    config = configuration(Path(tokenizer.name_or_path), n=8, num_workers=2, plaudit=table)
    with caplog.at_level(logging.WARNING, logger="plaudit"):
        RewardManager(config=config, tokenizer=tokenizer)
        assert "num_workers" not in caplog.text
        large = OmegaConf.merge(config, {"data": {"train_batch_size": 1024}})
        RewardManager(config=large, tokenizer=tokenizer)
    assert "reward.num_workers=2 is little for data.train_batch_size=1024 x 8 rows" in caplog.text
    assert "set it to 10" in caplog.text


def test_a_group_size_that_is_not_the_rollouts_is_warned_of(
    tokenizer: Any, judge: Loopback, caplog: pytest.LogCaptureFixture
) -> None:
    manager(tokenizer, judge.url)
    assert "group_size" not in caplog.text
    manager(tokenizer, judge.url, group_size=3)
    assert "actor_rollout_ref.rollout.n=" in caplog.text


def test_a_configuration_of_an_older_verl_is_named_as_such() -> None:
    from omegaconf import OmegaConf

    from plaudit.integrations.verl.reward_settings import settings_from

    with pytest.raises(ConfigError, check=about("", "reward.plaudit", "0.7.1")):
        settings_from(OmegaConf.create({"reward_model": {"reward_manager": "batch"}}))


def test_a_verl_without_a_reward_loop_is_named_with_the_remedy() -> None:
    script = (
        "import sys\n"
        "sys.modules['verl.experimental.reward_loop.reward_manager.base'] = None\n"
        "from plaudit.integrations.verl import RewardManager\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert "needs the reward loop of verl 0.7.1 or later, and verl 0." in ended.stderr
    assert "docs/verl-legacy.md" in ended.stderr


def test_verl_finds_the_manager_by_name_and_by_path(tokenizer: Any) -> None:
    from verl.trainer.ppo.reward import resolve_reward_manager_cls

    from plaudit.integrations.verl import RewardManager

    by_path = configuration(Path(tokenizer.name_or_path))
    by_name = configuration(
        Path(tokenizer.name_or_path), reward_manager={"source": "register", "name": "plaudit"}
    )
    assert resolve_reward_manager_cls(by_path) is RewardManager
    assert resolve_reward_manager_cls(by_name) is RewardManager


@pytest.mark.parametrize("name", ["compute_score", "acompute_score"])
def test_plaudits_compute_score_runs_inside_verls_naive_manager(
    tokenizer: Any, judge: Loopback, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    from verl.trainer.ppo.reward import load_reward_manager

    monkeypatch.setenv("OPENAI_BASE_URL", judge.url)
    config = configuration(
        Path(tokenizer.name_or_path),
        reward_manager={"source": "register", "name": "naive"},
        custom_reward_function={"path": "pkg://plaudit.compute_score", "name": name},
    )
    infos = [{"question": "What is 7 times 8?", "uid": "q"}] * 4
    data = batch(tokenizer, [f"answer {number}" for number in range(4)], extra_info=infos)

    async def all_of() -> list[dict[str, Any]]:
        manager = load_reward_manager(config, tokenizer)  # which keeps the loop that it is made on
        return list(await asyncio.gather(*(manager.run_single(data[row : row + 1]) for row in range(4))))

    outputs = asyncio.run(all_of())
    assert all(0.0 <= reward <= 1.0 for reward in rewards(outputs))
    assert all(output["reward_extra_info"]["reward_valid"] == 1.0 for output in outputs)
    assert judge.stats.requests == 4
