"""Whether there is anything in a text: something to see, or words to read."""

from __future__ import annotations

import unicodedata

from plaudit.judges.clean import without_tokens
from plaudit.reasoning import BOUND

_FILLERS = "\u115f\u1160\u3164\uffa0\u2800\ufffc\ufffd"
"""Hangul fillers are letters and blank braille is a symbol, and yet there is nothing to see."""
_GLANCE = 1_000


def has_content(text: str) -> bool:
    """Whether there is anything to see: a letter, a digit, a sign, a picture; `[]` and `#` are answers.

    White space, invisible characters and chat-template tokens are nothing.
    """
    if text[:1].isalnum() and text.isascii():
        return True
    head = text[:_GLANCE]
    if len(text) > _GLANCE:
        head = head[: max(head.rfind("<"), head.rfind("["))]  # a token cut in two would look like words
    if any(map(_is_visible, set(without_tokens(head)))):
        return True
    return len(text) > BOUND or (len(text) > _GLANCE and any(map(_is_visible, set(without_tokens(text)))))


def _is_visible(character: str) -> bool:
    return unicodedata.category(character)[0] not in "ZCM" and character not in _FILLERS


def has_words(text: str) -> bool:
    """Whether there is a letter or a digit, as in anything that is meant to be read as a sentence."""
    return any(character.isalnum() and character not in _FILLERS for character in set(without_tokens(text)))
