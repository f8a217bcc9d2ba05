"""The adapter for AReaL: its own workflow, with a judge for the reward."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from choosy import JUDGE, Choosy
from complaints import about
from refusing import refused_before_generating

from plaudit.errors import ConfigError
from plaudit.integrations.areal import workflow

pytestmark = pytest.mark.environments


class Gconfig:
    """Settings of generation, as far as a workflow touches them."""

    def new_with_stop_and_pad_token_ids(self, _tokenizer: Any) -> Gconfig:
        return self

    def new(self, **_: Any) -> Gconfig:
        return self


class Tokenizer:
    """One token for each character."""

    def decode(self, tokens: list[int]) -> str:
        return "".join(map(chr, tokens))


class Policy:
    """Answers what it is told to."""

    def __init__(self, answer: str) -> None:
        self.answer = list(map(ord, answer))

    async def agenerate(self, _request: Any) -> Any:
        count = len(self.answer)
        return SimpleNamespace(
            input_tokens=[ord("?")], input_len=1, output_tokens=self.answer, output_len=count,
            output_logprobs=[0.0] * count, output_versions=[0] * count, routed_experts=None,
        )  # fmt: skip


def episode(judged: Any, answer: str) -> Any:
    made = judged(
        gconfig=Gconfig(), tokenizer=Tokenizer(), get_input_ids_fn=lambda *_: [ord("?")]
    )  # AReaL makes one for each
    data = {"messages": [{"role": "user", "content": "Why?"}], "answer": "It scatters."}
    return asyncio.run(made.arun_episode(Policy(answer), data))


def test_the_reward_of_an_episode_comes_from_the_judge() -> None:
    judge = Choosy()
    found = episode(workflow(JUDGE, **judge.options), "worth 7<|im_end|>")
    assert float(found["rewards"][0]) == pytest.approx(0.7)
    assert "Why?" in judge.asked[0]
    assert "It scatters." in judge.asked[0]
    assert "im_end" not in judge.asked[0]


def test_an_episode_without_a_verdict_is_out_of_the_loss_and_its_group_keeps_its_size() -> None:
    made = workflow(JUDGE, **Choosy().options)(
        gconfig=Gconfig(), tokenizer=Tokenizer(), get_input_ids_fn=lambda *_: [ord("?")]
    )
    data = {"messages": [{"role": "user", "content": "Why?"}]}

    async def group() -> Any:
        return await asyncio.gather(
            *(made.arun_episode(Policy(answer), dict(data)) for answer in ("worth 2", "worth 4", "lost"))
        )

    episodes = asyncio.run(group())
    assert [bool(one["loss_mask"].any()) for one in episodes] == [True, True, False]
    rewards = [float(one["rewards"][0]) for one in episodes]
    assert rewards[:2] == pytest.approx([0.2, 0.4])
    assert 0.2 <= rewards[2] <= 0.4


def test_the_workflows_of_a_process_share_one_engine() -> None:
    judge = Choosy()
    judged = workflow(JUDGE, **judge.options)
    for _ in range(3):
        episode(judged, "worth 7")
    assert len(judge.asked) == 1


def test_a_reward_fn_beside_the_judge_is_refused() -> None:
    with pytest.raises(ConfigError, check=about("reward_fn")):
        workflow(JUDGE, **Choosy().options)(reward_fn=len, gconfig=Gconfig(), tokenizer=Tokenizer())


def test_a_key_that_is_refused_ends_the_run_before_the_first_generation() -> None:
    with refused_before_generating() as options:
        workflow(JUDGE, **options)(gconfig=Gconfig(), tokenizer=Tokenizer())
