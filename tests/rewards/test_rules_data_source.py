"""Which data sources have a rule."""

from __future__ import annotations

import pytest

from plaudit.rewards.rules import is_mathematical


@pytest.mark.parametrize(
    "name",
    [
        "openai/gsm8k", "lighteval/MATH", "DigitalLearningGmbH/MATH-lighteval", "HuggingFaceH4/MATH-500",
        "math_dapo", "math_dapo_reasoning", "aime2024", "AIME_2025", "numina_olympiads",
    ],
)  # fmt: skip
def test_mathematics_is_known(name: str) -> None:
    assert is_mathematical(name)


@pytest.mark.parametrize("name", ["", "my/essays", "codecontests", "mathematicians/biographies"])
def test_everything_else_is_for_a_judge(name: str) -> None:
    assert not is_mathematical(name)
