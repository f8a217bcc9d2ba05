"""What there is to judge in a response: its answer without the reasoning, and whether it says anything."""

from __future__ import annotations

import re
import unicodedata

from plaudit.errors import ConfigError
from plaudit.judges.clean import without_tokens
from plaudit.types import Sample


def answer_of(sample: Sample, *, with_reasoning: bool = False) -> str:
    """What a judge is to see of the sample's response. Raises ConfigError where it is not text."""
    response: object = sample.response
    if not isinstance(response, str):
        raise ConfigError(f"the response is {type(response).__name__}, not text; decode it first")
    return response if with_reasoning else without_reasoning(response)


# A quoted tag (`<think>` in backticks) is talk about reasoning, not reasoning.
_REASONING_TAG = re.compile(r"(?<![`'\"])(?:<(/?)think(?:ing)?>|\[(/?)THINK\])")


def without_reasoning(response: str) -> str:
    """The response as its reader gets it: nothing between `<think>` and `</think>`.

    Without a closing tag nothing follows the reasoning. Without an opening one (chat templates often write
    it into the prompt) everything before `</think>` is reasoning.
    """
    if "<" not in response and "[" not in response:
        return response
    visible: list[str] = []
    start = 0
    is_open = False
    for tag in _REASONING_TAG.finditer(response):
        is_closing = bool(tag[1] or tag[2])
        if not is_open:
            if is_closing:
                visible.clear()
            else:
                visible.append(response[start : tag.start()])
        is_open = not is_closing
        start = tag.end()
    if not is_open:
        visible.append(response[start:])
    return "".join(visible).strip() if start else response


# Hangul fillers are letters that nobody can see.
_LETTER_OR_DIGIT = re.compile(r"[^\W_\u115f\u1160\u3164\uffa0]")
_BLANK_SYMBOLS = {"\u2800", "\ufffc", "\ufffd"}


def has_content(text: str) -> bool:
    """Whether anything is said: a letter, a digit, an ideograph, a mathematical sign or a picture.

    White space, punctuation, invisible characters and chat-template tokens say nothing: a lone ":" has
    passed for a correct answer with strong judges.
    """
    if text[:1].isalnum() and text.isascii():
        return True
    found = _LETTER_OR_DIGIT.search(text)
    if found and text[found.start() - 1 : found.start()] in _TOKEN_STARTS:
        text = without_tokens(text)
        found = _LETTER_OR_DIGIT.search(text)
    return found is not None or any(map(_is_symbol, set(text)))


_TOKEN_STARTS = {"<", "[", "|", "｜", "/"}


def _is_symbol(character: str) -> bool:
    return unicodedata.category(character) in {"Sm", "Sc", "So"} and character not in _BLANK_SYMBOLS
