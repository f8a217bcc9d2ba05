"""What is there to judge: the answer without the reasoning, and whether it says anything."""

from __future__ import annotations

import pytest

from plaudit.errors import ConfigError
from plaudit.judges.content import answer_of, has_content, without_reasoning
from plaudit.types import Sample

CONTENT = [
    *("42", "-1", "解", "π", "😀", "✓", "a", "½", "٤٢", "±", "x²", "∞", "€", "<", "+", "_a_", "e\u0301"),
    *("<s>42</s>", "<b>", "[1]", ":42", "👩\u200d👩\u200d👧", "Thought process:"),
]
NOTHING = [
    *(
        "",
        " ",
        "\n\t ",
        "\u00a0\u3000",
        ":",
        ".",
        ",",
        "...",
        "---",
        "***",
        "`",
        "```\n```",
        "「」",
        "。",
        "!?",
        "_",
    ),
    *("\u200b", "\u200b:\u2060", "\ufeff", "\U000e0041", "\u3164", "\u2800", "\ud800", "\x00\x1b", "\u0301"),
    *("<|im_end|>", "</s>", " <|endoftext|> .", "[INST][/INST]", "\ufffd"),
]


@pytest.mark.parametrize("text", CONTENT)
def test_a_letter_a_number_a_sign_or_a_picture_is_content(text: str) -> None:
    assert has_content(text)


@pytest.mark.parametrize("text", NOTHING, ids=ascii)
def test_white_space_punctuation_invisible_characters_and_tokens_are_none(text: str) -> None:
    assert not has_content(text)


@pytest.mark.parametrize(
    ("response", "answer"),
    [
        ("42", "42"),
        ("<think>hm</think>42", "42"),
        ("<think>\nhm\n</think>\n\n42\n", "42"),
        ("hm, so\n</think>\n42", "42"),
        ("<think>hm", ""),
        ("42 <think>hm", "42"),
        ("a<think>b</think>c<think>d</think>e", "ace"),
        ("<think>a<think>b</think>c</think>d", "d"),
        ("<thinking>hm</thinking>42", "42"),
        ("a<think>b</think>c</think>d<think>e", "d"),
        ("  42, I think <b>surely</b>  ", "  42, I think <b>surely</b>  "),
        ("<think></think>", ""),
        ("I think a < b", "I think a < b"),
        (
            "Write `<think>` before and `</think>` after it.",
            "Write `<think>` before and `</think>` after it.",
        ),
    ],
)
def test_reasoning_is_hidden(response: str, answer: str) -> None:
    assert without_reasoning(response) == answer


def test_reasoning_is_shown_on_request() -> None:
    sample = Sample("6 x 7?", "<think>hm</think>42")
    assert answer_of(sample) == "42"
    assert answer_of(sample, with_reasoning=True) == "<think>hm</think>42"


def test_a_response_that_is_not_text_is_named() -> None:
    with pytest.raises(ConfigError, match="response is bytes, not text"):
        answer_of(Sample("6 x 7?", b"42"))  # type: ignore[arg-type]
