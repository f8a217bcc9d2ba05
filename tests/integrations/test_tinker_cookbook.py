"""The adapter for Tinker's cookbook: a group is judged together, and a missing verdict gets its mean."""

from __future__ import annotations

import asyncio
import importlib
import pickle
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from choosy import JUDGE, Choosy
from refusing import refused_before_generating
from stand_in import documented

from plaudit import Checklist
from plaudit.integrations.scored import Scored


@dataclass
class StepResult:
    reward: float
    episode_done: bool
    next_observation: Any
    next_stop_condition: Any
    metrics: dict[str, float] = field(default_factory=dict)


documented("tinker", ModelInput=SimpleNamespace(empty=list))
documented("tinker_cookbook.renderers", get_text_content=lambda message: message["content"])
documented("tinker_cookbook.rl.types", Env=object, EnvGroupBuilder=object, StepResult=StepResult)

MESSAGES = [{"role": "user", "content": "Why is the sky blue?"}]


class Letters:
    """A renderer whose tokens are letters."""

    def build_generation_prompt(self, messages: Any) -> str:
        return "\n".join(message["content"] for message in messages)

    def get_stop_sequences(self) -> list[str]:
        return ["<|end|>"]

    def parse_response(self, action: list[int]) -> tuple[dict[str, str], bool]:
        return {"role": "assistant", "content": "".join(map(chr, action))}, True


def rewards_of(judge: Choosy, *answers: str) -> Any:
    """What the cookbook does with a group."""
    adapter = importlib.import_module("plaudit.integrations.tinker_cookbook")
    scored = Scored(JUDGE, **judge.options)
    builder = adapter.JudgedGroupBuilder(
        Letters(), MESSAGES, len(answers), reference="It scatters.", scored=scored
    )

    async def main() -> Any:
        envs = await builder.make_envs()
        for env, answer in zip(envs, answers, strict=True):
            observation, stop = await env.initial_observation()
            assert (observation, stop) == ("Why is the sky blue?", ["<|end|>"])
            result = await env.step([ord(letter) for letter in answer], extra={"stop_reason": "stop"})
            assert (result.reward, result.episode_done) == (0.0, True)
        return await builder.compute_group_rewards([], envs)

    return asyncio.run(main())


def test_a_group_gets_its_rewards() -> None:
    judge = Choosy()
    assert rewards_of(judge, "worth 9", "worth 3") == [
        (0.9, {"judge_valid": 1.0}),
        (0.3, {"judge_valid": 1.0}),
    ]
    assert all(text in judge.asked[0] for text in ("Why is the sky blue?", "It scatters."))


def test_a_missing_verdict_gets_the_mean_of_its_group_and_is_marked() -> None:
    rewards = rewards_of(Choosy(), "worth 9", "lost", "worth 3")
    assert [reward for reward, _ in rewards] == pytest.approx([0.9, 0.6, 0.3])
    assert [metrics["judge_valid"] for _, metrics in rewards] == [1.0, 0.0, 1.0]


def test_a_row_brings_its_rubric_along() -> None:
    adapter = importlib.import_module("plaudit.integrations.tinker_cookbook")

    class Agreeing(Choosy):
        def verdict(self, worth: int) -> str:
            return '{"c1": true}'

    scored = Scored(Checklist(), **Agreeing().options)
    builder = adapter.JudgedGroupBuilder(
        Letters(), MESSAGES, 2, scored=scored, columns={"rubric": ["It names scattering."]}
    )

    async def main() -> Any:
        envs = await builder.make_envs()
        for env in envs:
            await env.step([ord(letter) for letter in "It scatters."])
        return await builder.compute_group_rewards([], envs)

    assert [reward for reward, _ in asyncio.run(main())] == [1.0, 1.0]


def test_a_builder_can_be_pickled() -> None:
    adapter = importlib.import_module("plaudit.integrations.tinker_cookbook")
    made = adapter.JudgedGroupBuilder("renderer", MESSAGES, 8)
    assert pickle.loads(pickle.dumps(made)).group_size == 8


def test_a_key_that_is_refused_ends_the_run_before_the_first_generation() -> None:
    adapter = importlib.import_module("plaudit.integrations.tinker_cookbook")
    with refused_before_generating() as options:
        builder = adapter.JudgedGroupBuilder(Letters(), MESSAGES, 2, scored=Scored(JUDGE, **options))
        asyncio.run(builder.make_envs())
