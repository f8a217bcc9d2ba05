"""What there is to judge in a response: its answer without the reasoning, and whether there is one.

Linear in the length of the text, whatever it holds; of a text beyond `BOUND` only operations that run at the
speed of memory touch all of it, so that no response can hold up the verdicts on others.
"""

from __future__ import annotations

import re
import unicodedata

from plaudit.errors import ConfigError
from plaudit.judges.clean import without_tokens
from plaudit.types import Sample

BOUND = 250_000
"""Characters of a text that are looked at one by one: more than a judge is shown by default."""


def answer_of(sample: Sample, *, with_reasoning: bool = False) -> str:
    """What a judge is to see of the sample's response. Raises ConfigError where it is not text."""
    response: object = sample.response
    if not isinstance(response, str):
        raise ConfigError(f"the response is {type(response).__name__}, not text; decode it first")
    return response if with_reasoning else without_reasoning(response)


# A quoted tag (`<think>` in backticks) is talk about reasoning, not reasoning.
_QUOTED = "(?<![`'\"])"
_OPEN = rf"{_QUOTED}(?:<think(?:ing)?>|\[THINK\])"
_CLOSE = rf"{_QUOTED}(?:</think(?:ing)?>|\[/THINK\])"
_CLOSED = re.compile(rf"{_OPEN}.*?{_CLOSE}", re.DOTALL)
_UP_TO_THE_LAST_CLOSE = re.compile(rf".*{_CLOSE}", re.DOTALL)  # for match(), which tries one start only
_UNCLOSED = re.compile(rf"\s*+{_OPEN}")
_CLOSERS = ("</think>", "</thinking>", "[/THINK]")


def without_reasoning(response: str) -> str:
    """The response as its reader gets it: without what stands between `<think>` and `</think>`.

    The tags may also be `<thinking>` or `[THINK]`. Without an opening tag (chat templates often write it into
    the prompt) everything before `</think>` is reasoning. A response that opens with reasoning and never ends
    it has no answer; a tag that is opened behind an answer and never closed hides nothing.
    """
    if "<think" not in response and "</think" not in response and "THINK]" not in response:
        return response
    is_long = len(response) > BOUND
    visible = response[_end_of_last_close(response) :] if is_long else _without_closed(response)
    if _UNCLOSED.match(visible):
        return ""
    return response if len(visible) == len(response) else visible.strip()


def _without_closed(response: str) -> str:
    """The text without closed blocks. Up to the last closing tag each opening one finds its end: linear."""
    found = _UP_TO_THE_LAST_CLOSE.match(response)
    if found is None:
        return response
    before = _CLOSED.sub("", found[0])
    unopened = _UP_TO_THE_LAST_CLOSE.match(before)
    return before[unopened.end() if unopened else 0 :] + response[found.end() :]


def _end_of_last_close(response: str) -> int:
    """Where the last closing tag ends that is not quoted; 0 where none of the last few is."""
    end = len(response)
    for _ in range(16):
        place, tag = max((response.rfind(tag, 0, end), tag) for tag in _CLOSERS)
        if place < 0:
            break
        if not response.endswith(("`", "'", '"'), 0, place):
            return place + len(tag)
        end = place
    return 0


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
