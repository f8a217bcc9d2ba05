"""The adapter for ART: groups of trajectories scored as RULER's are, without one that has no verdict."""

from __future__ import annotations

import asyncio
import copy
import importlib
from dataclasses import dataclass, field
from typing import Any

import pytest
from choosy import JUDGE, Choosy
from loopback import INSTANT, loopback
from stand_in import documented

from plaudit import Checklist


@dataclass
class Trajectory:
    messages_and_choices: list[Any]
    reward: float = 0.0
    metrics: dict[str, Any] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)
    tools: list[Any] | None = None

    def messages(self) -> list[Any]:
        return self.messages_and_choices

    def model_copy(self, *, deep: bool) -> Trajectory:
        return copy.deepcopy(self)


class TrajectoryGroup:
    def __init__(
        self, trajectories: Any, *, metadata: Any = None, metrics: Any = None, logs: Any = None
    ) -> None:
        given = list(trajectories)
        self.trajectories = [one for one in given if not isinstance(one, BaseException)]
        self.exceptions = [one for one in given if isinstance(one, BaseException)]
        self.metadata, self.metrics, self.logs = metadata or {}, metrics or {}, logs or []


documented("art", Trajectory=Trajectory, TrajectoryGroup=TrajectoryGroup)


def group_of(*answers: str) -> Any:
    made = importlib.import_module("art")
    turns = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Why is the sky blue?"}]
    return made.TrajectoryGroup(
        [
            made.Trajectory(
                messages_and_choices=[*turns, {"role": "assistant", "content": answer}], reward=0.25
            )
            for answer in answers
        ],
        metadata={"scenario": "sky"},
    )


def scored(group: Any) -> Any:
    adapter = importlib.import_module("plaudit.integrations.art")
    return asyncio.run(adapter.group_scorer(JUDGE, **Choosy().options)(group))


def test_rewards_and_metrics_are_where_ruler_puts_them() -> None:
    group = group_of("worth 9", "worth 3")
    result = scored(group)
    assert [one.reward for one in result.trajectories] == [0.9, 0.3]
    assert [one.metrics["ruler_score"] for one in result.trajectories] == [0.9, 0.3]
    assert [one.metrics["independent_reward"] for one in result.trajectories] == [0.25, 0.25]
    assert result.metadata == {"scenario": "sky"}
    assert [one.reward for one in group.trajectories] == [0.25, 0.25]  # the group itself is not changed


class Agreeing(Choosy):
    """A judge for which every response meets the one criterion."""

    def verdict(self, worth: int) -> str:
        return '{"c1": true}'


def test_a_trajectory_brings_its_rubric_and_its_tools_along() -> None:
    adapter = importlib.import_module("plaudit.integrations.art")
    judge, group = Agreeing(), group_of("worth 9", "worth 3")
    for one in group.trajectories:
        one.metadata = {"rubric": '[{"criterion": "It names scattering.", "points": 5}]'}
        one.tools = [{"type": "function", "function": {"name": "look_up_the_sky", "parameters": {}}}]
    result = asyncio.run(adapter.group_scorer(Checklist(), **judge.options)(group))
    assert [one.reward for one in result.trajectories] == [1.0, 1.0]
    assert all("look_up_the_sky" in asked for asked in judge.asked)


def test_a_trajectory_without_a_verdict_leaves_its_group() -> None:
    result = scored(group_of("worth 9", "lost", "worth 3"))
    assert [one.reward for one in result.trajectories] == [0.9, 0.3]
    assert len(result.exceptions) == 1


def test_a_group_in_which_nothing_can_be_compared_is_dropped() -> None:
    assert scored(group_of("worth 9", "lost", "lost")) is None


def test_the_drop_in_compares_the_group_in_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    adapter = importlib.import_module("plaudit.integrations.art")
    with loopback(INSTANT) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        result = asyncio.run(adapter.ruler_score_group(group_of("One.", "Two.", "Three."), "openai/m"))
        assert server.stats.requests == 1
    assert len(result.trajectories) == 3
    assert all(0.0 <= one.reward <= 1.0 for one in result.trajectories)
