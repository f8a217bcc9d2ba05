"""The adapter for OpenEnv: a rubric among others, which raises where the judge gave no verdict."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import json
from types import SimpleNamespace
from typing import Any

import pytest
from choosy import JUDGE, Choosy
from refusing import refused_before_generating
from stand_in import documented

from plaudit.errors import NoVerdict
from plaudit.integrations.scored import sample_of


class Rubric:
    """What the documentation shows of it: `forward` may be a coroutine, and `last_score` remembers."""

    def __init__(self) -> None:
        self.last_score: float | None = None

    def __call__(self, action: Any, observation: Any) -> Any:
        assert inspect.iscoroutinefunction(self.forward)  # type: ignore[attr-defined]
        return self._call_async(action, observation)

    async def _call_async(self, action: Any, observation: Any) -> float:
        self.last_score = await self.forward(action, observation)  # type: ignore[attr-defined]
        return self.last_score


documented("openenv.core.rubrics", Rubric=Rubric)


class Action(SimpleNamespace):
    """As pydantic makes them."""

    def model_dump(self, **_: Any) -> dict[str, Any]:
        return vars(self)

    def model_dump_json(self, **_: Any) -> str:
        return json.dumps(vars(self))


OBSERVATION = SimpleNamespace(
    metadata={"prompt": "Why is the sky blue?", "reference": "It scatters.", "level": "school"}
)


def rubric(judge: Choosy, **options: Any) -> Any:
    adapter = importlib.import_module("plaudit.integrations.openenv")
    return adapter.JudgedRubric(JUDGE, **judge.options, **options)


def test_a_step_is_scored_with_what_its_observation_says_of_the_task() -> None:
    judge = Choosy()
    made = rubric(judge)
    assert asyncio.run(made(Action(message="worth 7"), OBSERVATION)) == 0.7
    assert made.last_score == 0.7
    assert all(text in judge.asked[0] for text in ("Why is the sky blue?", "It scatters.", "worth 7"))


def test_an_action_of_several_fields_is_shown_whole() -> None:
    judge = Choosy()
    asyncio.run(rubric(judge)(Action(tool="search", query="worth 4"), OBSERVATION))
    assert all(text in judge.asked[0] for text in ("search", "worth 4"))


def test_what_the_judge_sees_can_be_chosen() -> None:
    judge = Choosy()
    made = rubric(judge, read=lambda action, _: sample_of("Pick a colour.", action.message.upper()))
    asyncio.run(made(Action(message="worth 4, blue"), OBSERVATION))
    assert "WORTH 4, BLUE" in judge.asked[0]


def test_a_missing_verdict_raises_and_is_no_score() -> None:
    made = rubric(Choosy())
    with pytest.raises(NoVerdict):
        asyncio.run(made(Action(message="lost"), OBSERVATION))
    assert made.last_score is None


def test_a_key_that_is_refused_ends_the_environment_before_the_first_generation() -> None:
    adapter = importlib.import_module("plaudit.integrations.openenv")
    with refused_before_generating() as options:
        adapter.JudgedRubric(JUDGE, **options)
