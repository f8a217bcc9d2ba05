"""The adapter for the older environments of verifiers, which score with a Rubric."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from choosy import JUDGE, Choosy
from complaints import about

from plaudit.errors import ConfigError
from plaudit.integrations.verifiers import rubric

pytestmark = pytest.mark.environments


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
    assert [one["advantage"] for one in states] == pytest.approx([0.4, 0.0, -0.4, 0.0])
    assert [one["judge_valid"] for one in states] == [True, False, True, True]
    assert all(text in judge.asked[0] for text in ("Why is the sky blue?", "It scatters."))
    assert "Let me see." in judge.asked[0]  # the whole trajectory, turn by turn


def test_a_weight_that_is_no_number_is_named() -> None:
    with pytest.raises(ConfigError, check=about("weight")):
        rubric(JUDGE, weight="0.5", **Choosy().options)  # type: ignore[arg-type]
