"""The format reward: tags and patterns, in linear time."""

from __future__ import annotations

import re
from typing import Any

import pytest
from growth import PROPORTIONAL, slowdown
from hypothesis import given
from hypothesis import strategies as st

from plaudit.errors import ConfigError
from plaudit.rewards import FormatReward, Rows
from plaudit.types import Sample

TAGS = FormatReward(tags=("think", "answer"))


@pytest.mark.parametrize(
    ("response", "fits"),
    [
        ("<think>why</think><answer>4</answer>", True),
        ("\n<think>why</think>\n\n<answer>4</answer>\n", True),
        ("<think>why</think>", False),
        ("<answer>4</answer><think>why</think>", False),
        ("<think></think><answer>4</answer>", False),
        ("<think>why</think> so <answer>4</answer>", False),
        ("<think>why</think><answer>4</answer> bye", False),
        ("<think>a</think><answer>4</answer><answer>5</answer>", False),
        ("<think>a <answer>x</answer></think><answer>4</answer>", False),
        ("<think>why<answer>4</answer>", False),
        ("", False),
    ],
)
def test_tags_come_in_order_once_each_and_alone(response: str, fits: bool) -> None:
    assert TAGS.fits(response) is fits


@given(st.text("ab{}*", max_size=8), st.text("ab{}", max_size=12))
def test_a_pattern_fits_what_its_regular_expression_would(pattern: str, text: str) -> None:
    if not pattern.strip("*"):
        return
    expected = re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), text, re.DOTALL)
    assert FormatReward(pattern).fits(text) is (expected is not None)


@pytest.mark.parametrize("form", [TAGS, FormatReward("*<think>*<think>*</think>*")], ids=str)
def test_a_text_made_to_blow_up_takes_four_times_as_long_where_it_is_four_times_as_long(
    form: FormatReward,
) -> None:
    def is_no_fit(tags: int) -> None:
        assert not form.fits("<think>" * tags)

    assert slowdown(is_no_fit, 160_000) < PROPORTIONAL


def test_as_a_source_it_gives_one_or_zero() -> None:
    samples = [Sample("p", r"so \boxed{4}"), Sample("p", "so 4")]
    assert FormatReward(r"*\boxed{*}*").values(Rows(samples, [None, None])) == [1.0, 0.0]


@pytest.mark.parametrize(
    "settings",
    [
        {}, {"pattern": "a", "tags": ("b",)}, {"pattern": "**"}, {"tags": ("<think>",)}, {"tags": ("a", "a")},
        {"tags": "think"}, {"tags": ("",)},
    ],
)  # fmt: skip
def test_bad_settings_are_refused_by_name(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, check=lambda error: error.setting in ("pattern", "tags")):
        FormatReward(**settings)
