"""The adapter for ms-swift, and what ms-swift makes of it."""

from __future__ import annotations

import asyncio
import gc
import inspect
from collections.abc import Iterator
from typing import Any

import pytest
from choosy import JUDGE, Choosy
from complaints import about
from refusing import refused_before_generating
from swift.rewards import orms

from plaudit.errors import ConfigError
from plaudit.integrations.swift import SwiftReward, register

pytestmark = pytest.mark.environments


@pytest.fixture(autouse=True)
def unregistered() -> Iterator[None]:
    """What a test registers ends with it, and the engine behind it."""
    yield
    if orms.pop("brief", None) is not None:
        gc.collect()


def columns(completions: list[str], **more: Any) -> dict[str, Any]:
    """What ms-swift passes beside the completions: columns of the data set, and its own."""
    messages = [
        [{"role": "user", "content": f"Why {row // 2}?"}, {"role": "assistant", "content": completion}]
        for row, completion in enumerate(completions)
    ]
    return {
        "trainer_state": None,
        "messages": messages,
        "prompt_id": [f"prompt {row // 2}" for row in range(len(completions))],
        "request_id": [str(row) for row in range(len(completions))],
        "is_truncated": [False] * len(completions),
        **more,
    }


def test_it_is_registered_under_its_name() -> None:
    assert issubclass(orms["plaudit"], SwiftReward)


def test_it_is_asynchronous_in_the_eyes_of_ms_swift() -> None:
    made = orms["plaudit"](args=None)
    assert inspect.iscoroutinefunction(made.__call__)


def test_every_step_is_a_new_event_loop() -> None:
    judge = Choosy()
    reward = register("brief", JUDGE, **judge.options)(args=None)
    for worth in (3, 7):
        completions = [f"worth {worth}", "worth 5"]
        rewards = asyncio.run(reward(completions, **columns(completions)))
        assert rewards == [worth / 10, 0.5]
    assert "Why 0?" in judge.asked[0]
    assert judge.asked[0].count("worth 3") == 1, "the completion is no part of the task"


def test_a_missing_verdict_is_the_mean_of_its_group_not_the_zero_that_nansum_makes_of_none() -> None:
    reward = register("brief", JUDGE, **Choosy().options)(args=None)
    completions = ["worth 8", "worth 4", "lost", "worth 2", "worth 2", "worth 2"]
    more = {"prompt_id": ["a"] * 3 + ["b"] * 3}
    assert asyncio.run(reward(completions, **columns(completions, **more))) == pytest.approx(
        [0.8, 0.4, 0.6, 0.2, 0.2, 0.2]
    )


def test_the_solution_reaches_the_judge() -> None:
    judge = Choosy()
    reward = register("brief", JUDGE, **judge.options)(args=None)
    asyncio.run(reward(["worth 8"], **columns(["worth 8"], solution=["It scatters."])))
    assert "It scatters." in judge.asked[0]


def test_a_key_that_is_refused_ends_the_run_before_the_first_generation() -> None:
    with refused_before_generating() as options:
        register("brief", JUDGE, **options)(args=None)


def test_a_judge_in_the_place_of_the_name_is_told_apart() -> None:
    with pytest.raises(ConfigError, check=about("name")):
        register(JUDGE, **Choosy().options)  # type: ignore[arg-type]
