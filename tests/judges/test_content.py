"""What is there to judge: the answer without the reasoning, and whether it says anything."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from complaints import about
from growth import PROPORTIONAL, slowdown

from plaudit.errors import ConfigError
from plaudit.judges.content import has_content
from plaudit.judges.transcript import answer_of
from plaudit.reasoning import BOUND, without_reasoning
from plaudit.types import Sample

CONTENT = [
    *("42", "-1", "解", "π", "😀", "✓", "a", "½", "٤٢", "±", "x²", "∞", "€", "<", "+", "_a_", "e\u0301"),
    *("<s>42</s>", "<b>", "[1]", ":42", "👩\u200d👩\u200d👧", "Thought process:"),
    *("#", "[]", "{}", "*", "%", "()", "_", "?", "...", "「」", "```\n```", "\u200b-\u2060", "</s> []"),
    *("\u200b" * 2_000 + "#", "<s>" * 2_000 + "{}"),
]
NOTHING = [
    *("", " ", "\n\t ", "\u00a0\u3000"),
    *("\u200b", "\ufeff", "\U000e0041", "\u3164", "\u2800", "\ud800", "\x00\x1b", "\u0301", "\ufffd"),
    *("<|im_end|>", "</s>", " <|endoftext|> ", "[INST][/INST]", "\u200b" * 2_000, "<s>" * 2_000),
]


@pytest.mark.parametrize("text", CONTENT)
def test_whatever_can_be_seen_is_content(text: str) -> None:
    assert has_content(text)


@pytest.mark.parametrize("text", NOTHING, ids=ascii)
def test_white_space_invisible_characters_and_tokens_are_none(text: str) -> None:
    assert not has_content(text)


HOSTILE = [
    *("`</think>` a", "<think>", "</think>", "<think></think>", "</think><think>", "`<think>", "[THINK]"),
    *("<", "[", "<s>", "\u200b", "a"),
]


@pytest.mark.parametrize("unit", HOSTILE, ids=ascii)
@pytest.mark.parametrize("function", [without_reasoning, has_content])
def test_a_text_four_times_as_long_takes_about_four_times_as_long(
    function: Callable[[str], object], unit: str
) -> None:
    """Where it were quadratic, it would be sixteen times."""
    text = unit * (BOUND // len(unit))
    assert slowdown(lambda length: function("`</think>`" + text[:length]), BOUND - 20) < PROPORTIONAL


def test_reasoning_is_shown_on_request() -> None:
    sample = Sample("6 x 7?", "<think>hm</think>42")
    assert answer_of(sample) == "42"
    assert answer_of(sample, with_reasoning=True) == "<think>hm</think>42"


def test_a_response_that_is_not_text_is_named() -> None:
    with pytest.raises(ConfigError, check=about("response", "bytes")):
        answer_of(Sample("6 x 7?", b"42"))  # type: ignore[arg-type]
