"""The adapter for the older environments of verifiers, which score with a Rubric.

Run with verifiers 0.1.14 where that is installed, else with what its documentation shows of it.
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Sequence
from typing import Any

import pytest
from choosy import JUDGE, Choosy
from stand_in import documented

from plaudit.integrations.verifiers import rubric


class Rubric:
    """Calls a function with plural parameters once for a group; an exception becomes 0.0 for all."""

    def __init__(self, funcs: Sequence[Any], weights: Sequence[float]) -> None:
        self.funcs, self.weights = funcs, weights

    async def score_group(self, states: list[dict[str, Any]]) -> None:
        columns = {
            f"{name}s": [state[name] for state in states] for name in ("prompt", "completion", "answer")
        }
        for func, weight in zip(self.funcs, self.weights, strict=True):
            for state, score in zip(states, await func(**columns, states=states), strict=True):
                state["reward"] = score * weight


documented("verifiers", Rubric=Rubric)
if not hasattr(importlib.import_module("verifiers"), "Rubric"):
    pytest.skip("this verifiers has no Rubric", allow_module_level=True)


def state(answer: str) -> dict[str, Any]:
    completion = [{"role": "assistant", "content": "Let me see."}, {"role": "assistant", "content": answer}]
    prompt = [{"role": "user", "content": "Why is the sky blue?"}]
    return {
        "prompt": prompt,
        "completion": completion,
        "answer": "It scatters.",
        "trajectory": [],
        "task": "",
    }


def test_a_group_is_scored_together_and_a_missing_verdict_is_its_mean() -> None:
    judge = Choosy()
    states = [state(answer) for answer in ("worth 8", "lost", "worth 4", "worth 6")]
    asyncio.run(rubric(JUDGE, weight=2.0, **judge.options).score_group(states))
    assert [one["reward"] for one in states] == pytest.approx([1.6, 1.2, 0.8, 1.2])
    assert [one["judge_valid"] for one in states] == [True, False, True, True]
    assert all(text in judge.asked[0] for text in ("Why is the sky blue?", "It scatters."))
    assert "Let me see." in judge.asked[0]  # the whole trajectory, turn by turn
