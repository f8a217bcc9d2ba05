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
_REASONING = re.compile(r"<(?<![`'\"]<)think(?:ing)?>(?:.*?</think(?:ing)?>|.*)", re.DOTALL)
_UP_TO_ITS_END = re.compile(r".*<(?<![`'\"]<)/think(?:ing)?>", re.DOTALL)


def without_reasoning(response: str) -> str:
    """The response as its reader gets it: nothing between `<think>` and `</think>`.

    Without a closing tag nothing follows the reasoning. Without an opening one (chat templates often write
    it into the prompt) everything before `</think>` is reasoning.
    """
    if "<" not in response or "think" not in response:
        return response
    visible = _REASONING.sub("", response)
    if "</think" in visible:
        visible = _UP_TO_ITS_END.sub("", visible)
    return response if visible == response else visible.strip()


# Hangul fillers are letters that nobody can see.
_FILLERS = "\u115f\u1160\u3164\uffa0"
_LETTER_OR_DIGIT = re.compile(rf"[^\W_{_FILLERS}]")
_TOKEN_STARTS = {"<", "[", "|", "｜", "/"}
_BLANK_SYMBOLS = {"\u2800", "\ufffc", "\ufffd"}
_GLANCE = 1_000


def has_content(text: str) -> bool:
    """Whether anything is said: a letter, a digit, an ideograph, a mathematical sign or a picture.

    White space, punctuation, invisible characters and chat-template tokens say nothing: a lone ":" has
    passed for a correct answer with strong judges.
    """
    if text[:1].isalnum() and text.isascii():
        return True
    found = _LETTER_OR_DIGIT.search(text, 0, _GLANCE)
    if found and text[found.start() - 1 : found.start()] not in _TOKEN_STARTS:
        return True
    head = text[:_GLANCE]
    if len(text) > _GLANCE:
        head = head[: max(head.rfind("<"), head.rfind("["))]  # a token cut in two would look like words
    return any(map(_says_something, set(without_tokens(head)))) or (
        len(text) > _GLANCE and any(map(_says_something, set(without_tokens(text))))
    )


def _says_something(character: str) -> bool:
    if character.isalnum():
        return character not in _FILLERS
    return unicodedata.category(character) in {"Sm", "Sc", "So"} and character not in _BLANK_SYMBOLS
