"""The adapter for slime, against its documented signatures: `custom_rm(args, sample)` and `--group-rm`."""

from __future__ import annotations

import asyncio
import importlib
import inspect
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from choosy import JUDGE, Choosy
from complaints import about
from loopback import INSTANT, loopback

from plaudit import Group
from plaudit.errors import BatchFailed, ConfigError
from plaudit.integrations.slime import normalised, reward_model

ARGS = SimpleNamespace(reward_key=None)


@dataclass
class SlimeSample:
    """The fields of slime.utils.types.Sample that a reward model reads or writes."""

    response: str
    prompt: str | list[dict[str, str]] = "<|im_start|>user\nWhy?<|im_end|>\n<|im_start|>assistant\n"
    label: str | None = None
    group_index: int | None = 0
    metadata: dict[str, Any] = field(default_factory=dict)
    remove_sample: bool = False
    reward: float = 0.0

    def get_reward_value(self, args: Any) -> float:
        return self.reward


def test_one_sample_gives_a_plain_number() -> None:
    custom_rm = reward_model(JUDGE, **Choosy().options)
    reward = asyncio.run(custom_rm(ARGS, SlimeSample("worth 7<|im_end|>"), evaluation=False))
    assert reward == 0.7
    assert type(reward) is float


def test_a_group_gives_a_list_and_a_missing_verdict_leaves_the_loss() -> None:
    group = [SlimeSample(text, label="4") for text in ("worth 9", "lost", "worth 3")]
    rewards = asyncio.run(reward_model(JUDGE, **Choosy().options)(ARGS, group))
    assert rewards == pytest.approx([0.9, 0.6, 0.3])
    assert [sample.remove_sample for sample in group] == [False, True, False]


def test_alone_a_missing_verdict_gets_the_mean_of_its_group_so_far() -> None:
    custom_rm = reward_model(JUDGE, **Choosy().options)
    lost = SlimeSample("lost")

    async def main() -> list[float]:
        await asyncio.gather(*(custom_rm(ARGS, SlimeSample(f"worth {worth}")) for worth in (2, 4)))
        await custom_rm(ARGS, SlimeSample("worth 9", group_index=1))
        return [await custom_rm(ARGS, lost)]

    assert asyncio.run(main()) == pytest.approx([0.3])
    assert lost.remove_sample


def test_a_reward_key_makes_dictionaries() -> None:
    args = SimpleNamespace(reward_key="quality", eval_reward_key="quality")
    custom_rm = reward_model(JUDGE, **Choosy().options)
    assert asyncio.run(custom_rm(args, [SlimeSample("worth 7")])) == [{"quality": 0.7}]


def test_the_path_that_slime_is_given_is_a_coroutine_function() -> None:
    module, _, name = "plaudit.integrations.slime.custom_rm".rpartition(".")
    custom_rm = getattr(importlib.import_module(module), name)  # as slime loads it
    assert inspect.iscoroutinefunction(custom_rm)
    assert list(inspect.signature(custom_rm).parameters)[:2] == ["args", "sample"]


def test_the_path_for_normalised_rewards_leaves_a_missing_verdict_out_of_its_group() -> None:
    args = SimpleNamespace(
        advantage_estimator="grpo", rewards_normalization=True, grpo_std_normalization=True
    )
    group = [SlimeSample("", reward=reward) for reward in (0.9, 0.3, 0.6)]
    group.append(SlimeSample("", reward=0.6, remove_sample=True))
    other = [SlimeSample("", reward=reward, group_index=1) for reward in (0.1, 0.3)]
    raw, rewards = normalised(args, [*group, *other])
    assert raw == [0.9, 0.3, 0.6, 0.6, 0.1, 0.3]
    assert rewards == pytest.approx([1.0, -1.0, 0.0, 0.0, -(0.5**0.5), 0.5**0.5], abs=1e-4)
    args.grpo_std_normalization = False
    assert normalised(args, group)[1] == pytest.approx([0.3, -0.3, 0.0, 0.0])
    args.rewards_normalization = False
    assert normalised(args, group) == (raw[:4], raw[:4])


def test_a_judge_of_groups_needs_slimes_groups() -> None:
    compared = reward_model(Group("Which is best?"), url="http://localhost:8000/v1", model="m")
    with pytest.raises(ConfigError, check=about("judge", "--group-rm")):
        asyncio.run(compared(SimpleNamespace(), object()))


def test_a_judge_that_will_never_answer_ends_the_run_where_slime_loads_its_functions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module = importlib.import_module("plaudit.integrations.slime")
    assert getattr(module, "post_process") is normalised  # noqa: B009 - no server is named, and slime loads it so
    with loopback(INSTANT.replace(api_key="sk-right")) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-wrong")
        monkeypatch.setenv("PLAUDIT_MODEL", "m")
        with pytest.raises(BatchFailed, match=r"will never answer: .* 401"):
            getattr(module, "post_process")  # noqa: B009
