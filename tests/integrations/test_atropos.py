"""The adapter for Atropos: the fields of its ScoredDataGroup."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from choosy import JUDGE, Choosy
from complaints import about

from plaudit.errors import ConfigError
from plaudit.integrations.atropos import group_scorer


def group_of(*answers: str) -> dict[str, Any]:
    prompt = {"role": "user", "content": "Why is the sky blue?"}
    return {
        "tokens": [[1, 2]] * len(answers),
        "masks": [[-100, 2]] * len(answers),
        "messages": [[prompt, {"role": "assistant", "content": answer}] for answer in answers],
    }


def scored(group: dict[str, Any], judge: Choosy | None = None) -> Any:
    return asyncio.run(group_scorer(JUDGE, **(judge or Choosy()).options)(group, reference="It scatters."))


def test_a_group_gets_its_scores() -> None:
    judge = Choosy()
    result = scored(group_of("worth 9", "worth 3"), judge)
    assert result["scores"] == [0.9, 0.3]
    assert result["overrides"] == [{}, {}]
    assert result["tokens"] == [[1, 2], [1, 2]]
    assert all(text in judge.asked[0] for text in ("Why is the sky blue?", "It scatters."))


def test_a_row_without_a_verdict_has_no_advantage_and_the_mean_of_its_group() -> None:
    result = scored({**group_of("worth 9", "lost", "worth 3"), "overrides": [{}, {"kept": 1}, {}]})
    assert result["scores"] == pytest.approx([0.9, 0.6, 0.3])
    assert result["overrides"] == [{}, {"kept": 1, "set_advantage_to_zero": True}, {}]


def test_a_group_in_which_nothing_can_be_compared_is_none() -> None:
    assert scored(group_of("worth 9", "lost", "lost")) is None


def test_what_the_environment_told_the_last_turn_is_shown_and_is_not_the_response() -> None:
    judge, group = Choosy(), group_of("worth 9", "worth 3")
    group["messages"][0].append({"role": "user", "content": "The tests pass."})
    assert scored(group, judge)["scores"] == [0.9, 0.3]
    assert any("worth 9" in asked and "The tests pass." in asked for asked in judge.asked)


@pytest.mark.parametrize(
    ("setting", "group"),
    [
        ("messages", {"tokens": [[1], [2]], "masks": [[1], [2]]}),
        ("messages", {"messages": group_of("worth 1")["messages"]}),
        ("messages", {"tokens": [[1]], "messages": ["Why?"]}),
        ("messages", {"tokens": [[1]], "messages": [[{"role": "user", "content": "Why?"}]]}),
        ("group", [group_of("worth 1")]),
        ("overrides", {**group_of("worth 1", "worth 2"), "overrides": [{}]}),
    ],
)
def test_a_group_that_cannot_be_judged_is_named(setting: str, group: Any) -> None:
    with pytest.raises(ConfigError, check=about(setting)):
        scored(group)
