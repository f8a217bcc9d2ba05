"""The adapter for ART: groups of trajectories scored as RULER's are, without one that has no verdict."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

import art
import pytest
from art.rewards import ruler_score_group as ruler
from art.trajectories import History
from choosy import JUDGE, Choosy
from complaints import about
from loopback import INSTANT, loopback
from openai.types.chat.chat_completion import Choice
from refusing import refused_before_generating

from plaudit import Checklist
from plaudit.errors import BatchFailed, ConfigError
from plaudit.integrations.art import group_scorer, ruler_score_group

pytestmark = pytest.mark.environments

TURNS = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Why is the sky blue?"}]


def choice(text: str, **message: Any) -> Any:
    """A turn of the agent, as ART records what its model answered."""
    turn = {"role": "assistant", "content": text, **message}
    return Choice.model_validate({"finish_reason": "stop", "index": 0, "message": turn})


def trajectory(answer: str, **fields: Any) -> Any:
    return art.Trajectory(messages_and_choices=[*TURNS, choice(answer)], reward=0.25, **fields)


def group_of(*answers: str, **fields: Any) -> Any:
    return art.TrajectoryGroup(
        [trajectory(answer, **fields) for answer in answers], metadata={"scenario": "sky"}
    )


def scored(group: Any, judge: Choosy | None = None) -> Any:
    return asyncio.run(group_scorer(JUDGE, **(judge or Choosy()).options)(group))


def test_rewards_and_metrics_are_where_ruler_puts_them() -> None:
    group = group_of("worth 9", "worth 3")
    result = scored(group)
    assert [one.reward for one in result.trajectories] == [0.9, 0.3]
    assert [one.metrics["ruler_score"] for one in result.trajectories] == [0.9, 0.3]
    assert [one.metrics["independent_reward"] for one in result.trajectories] == [0.25, 0.25]
    assert result.metadata == {"scenario": "sky"}
    assert [one.reward for one in group.trajectories] == [0.25, 0.25]  # the group itself is not changed
    assert [one.metrics for one in group.trajectories] == [{}, {}]


def test_rollouts_are_scored_as_art_gathers_them_and_lost_ones_leave_their_groups() -> None:
    async def rollout(answer: str) -> Any:
        if answer == "broken":
            raise RuntimeError("the rollout failed")
        return trajectory(answer)

    answers = [["worth 9", "lost", "worth 3", "broken"], ["worth 1", "worth 2"], ["lost", "lost", "worth 4"]]

    async def main() -> Any:
        return await art.gather_trajectory_groups(
            [art.TrajectoryGroup([rollout(one) for one in group]) for group in answers],
            after_each=group_scorer(JUDGE, **Choosy().options, max_failure_rate=1.0),
            max_exceptions=1,
        )

    groups = asyncio.run(main())
    assert [sorted(one.reward for one in group) for group in groups] == [[0.3, 0.9], [0.1, 0.2]]
    assert [sorted(one.type for one in group.exceptions) for group in groups] == [
        ["<class 'RuntimeError'>", "<class 'plaudit.errors.NoVerdict'>"],
        [],
    ]


class Agreeing(Choosy):
    """A judge for which every response meets the one criterion."""

    def verdict(self, worth: int) -> str:
        return '{"c1": true}'


def test_a_trajectory_brings_its_rubric_and_its_tools_along() -> None:
    judge = Agreeing()
    group = group_of(
        "worth 9",
        "worth 3",
        metadata={"rubric": '[{"criterion": "It names scattering.", "points": 5}]'},
        tools=[{"type": "function", "function": {"name": "look_up_the_sky", "parameters": {}}}],
    )
    result = asyncio.run(group_scorer(Checklist(), **judge.options)(group))
    assert [one.reward for one in result.trajectories] == [1.0, 1.0]
    assert all("look_up_the_sky" in asked for asked in judge.asked)


def test_tool_calls_and_later_histories_are_judged_too() -> None:
    judge, group = Choosy(), group_of("worth 9", "worth 3")
    call = {"id": "1", "type": "function", "function": {"name": "look_up", "arguments": '{"of": "sky"}'}}
    first = group.trajectories[0]
    first.messages_and_choices[-1:] = [
        choice("", tool_calls=[call]),
        {"role": "tool", "tool_call_id": "1", "content": "It scatters."},
        choice("worth 9"),
    ]
    summary = {"role": "user", "content": "So far it looked up the sky."}
    first.additional_histories = [History(messages_and_choices=[*TURNS, summary, choice("In short: blue.")])]
    assert [one.reward for one in scored(group, judge).trajectories] == [0.9, 0.3]
    asked = next(text for text in judge.asked if "look_up" in text)
    for part in ('"of": "sky"', "It scatters.", "worth 9", summary["content"], "In short: blue."):
        assert part in asked
    assert asked.count("Be kind.") == 1  # a history repeats what came before it


def test_a_group_in_which_nothing_can_be_compared_is_dropped() -> None:
    assert scored(group_of("worth 9", "lost", "lost")) is None


def test_the_drop_in_compares_the_group_in_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    with loopback(INSTANT) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        result = asyncio.run(ruler_score_group(group_of("One.", "Two.", "Three."), "openai/m"))
        assert server.stats.requests == 1
    assert result is not None
    assert len(result.trajectories) == 3
    assert all(0.0 <= one.reward <= 1.0 for one in result.trajectories)


def test_the_drop_in_is_called_as_ruler_is() -> None:
    theirs, ours = (inspect.signature(one).parameters.values() for one in (ruler, ruler_score_group))
    assert [(one.name, one.kind) for one in ours] == [(one.name, one.kind) for one in theirs]


def test_options_of_litellm_that_the_engine_has_are_taken_from_the_call() -> None:
    with loopback(INSTANT.replace(api_key="sk-right")) as server:
        result = asyncio.run(
            ruler_score_group(
                group_of("One.", "Two."),
                "openai/m",
                {"api_base": server.url, "api_key": "sk-right", "temperature": 0.2},
                swallow_exceptions=True,
            )
        )
        assert result is not None
        assert len(result.trajectories) == 2
        assert server.stats.requests == 1


def test_an_option_that_only_litellm_has_is_named() -> None:
    with pytest.raises(ConfigError, check=about("num_retries")):
        asyncio.run(ruler_score_group(group_of("One.", "Two."), "m", {"num_retries": 3}))


def test_a_rubric_in_the_place_of_options_and_a_trajectory_in_that_of_a_group_are_named() -> None:
    with pytest.raises(ConfigError, check=about("extra_litellm_params")):
        asyncio.run(ruler_score_group(group_of("One.", "Two."), "m", "Is it kind?"))  # type: ignore[arg-type]
    with pytest.raises(ConfigError, check=about("group", "TrajectoryGroup")):
        scored(trajectory("One."))


def test_a_judge_that_will_never_answer_ends_the_gathering() -> None:
    with refused_before_generating() as options:
        group_scorer(JUDGE, **options)

    async def rollout() -> Any:
        return trajectory("One.")

    async def main(server: Any) -> None:
        params = {"api_base": server.url, "api_key": "sk-wrong"}
        await art.gather_trajectory_groups(
            [art.TrajectoryGroup([rollout(), rollout()])],
            after_each=lambda group: ruler_score_group(group, "m", params, swallow_exceptions=True),
        )

    with (
        loopback(INSTANT.replace(api_key="sk-right")) as server,
        pytest.raises(BatchFailed, match=r"will never answer: .* 401"),
    ):
        asyncio.run(main(server))
