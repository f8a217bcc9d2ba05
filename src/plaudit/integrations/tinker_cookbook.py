"""Tinker cookbook: groups of single-turn environments whose reward comes from a judge.

The group is judged together, when its last response is there. The cookbook's advantage is the reward less the
group's mean, so a row without a verdict gets exactly that: its advantage is 0, and the others' are as if it
had not been there. The metric `judge_valid` is the share that was judged.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import tinker
from tinker_cookbook.renderers import get_text_content
from tinker_cookbook.rl.types import Env, EnvGroupBuilder, StepResult

from plaudit.errors import ConfigError
from plaudit.integrations.scored import Scored, sample_of
from plaudit.value_check import check_number, check_value


class JudgedTinkerEnv(Env):  # type: ignore[misc, unused-ignore]
    """One question, one response. Its group builder has it judged."""

    def __init__(self, renderer: Any, messages: Sequence[dict[str, Any]]) -> None:
        self.renderer = renderer
        self.messages = list(messages)
        self.response = ""

    async def initial_observation(self) -> tuple[Any, Any]:
        return self.renderer.build_generation_prompt(self.messages), self.renderer.get_stop_sequences()

    async def step(self, action: Any, *, extra: Any = None) -> StepResult:  # noqa: ARG002 - passed by name
        message, _ = self.renderer.parse_response(action)
        self.response = get_text_content(message)
        return StepResult(
            reward=0.0,
            episode_done=True,
            next_observation=tinker.ModelInput.empty(),
            next_stop_condition=self.renderer.get_stop_sequences(),
        )


@dataclass(frozen=True)
class JudgedGroupBuilder(EnvGroupBuilder):  # type: ignore[misc, unused-ignore]
    """Environments with the same question, whose responses are judged together. It can be pickled."""

    renderer: Any
    messages: Sequence[dict[str, Any]]
    """The conversation up to the response."""
    group_size: int
    reference: Any = None
    scored: Scored = field(default_factory=Scored)
    """Who judges; by default what the settings name."""
    columns: Mapping[str, Any] = field(default_factory=dict)
    """The row's other columns, like the `rubric` by which a Checklist judges it."""

    def __post_init__(self) -> None:
        if not isinstance(self.messages, list | tuple) or isinstance(self.renderer, list | tuple):
            raise ConfigError(
                'should be a list like [{"role": "user", "content": "Why?"}], after the renderer',
                setting="messages",
            )
        check_number("group_size", self.group_size, low=1)
        check_value("scored", self.scored, Scored)
        check_value("columns", self.columns, Mapping[str, Any])

    async def make_envs(self) -> Sequence[JudgedTinkerEnv]:
        await asyncio.to_thread(self.scored.check)
        return [JudgedTinkerEnv(self.renderer, self.messages) for _ in range(self.group_size)]

    async def compute_group_rewards(
        self,
        trajectory_group: list[Any],  # noqa: ARG002 - the environments hold the text
        env_group: Sequence[Any],
    ) -> list[tuple[float, dict[str, float]]]:
        samples = [
            sample_of(env.messages, env.response, self.reference, extra=self.columns) for env in env_group
        ]
        scores = await self.scored.agroup(samples)
        return [(float(score), {"judge_valid": float(score.valid)}) for score in scores]
