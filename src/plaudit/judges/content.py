"""What there is to judge in a response: its answer without the reasoning, and whether there is one."""

from __future__ import annotations

import unicodedata
from typing import Literal

from plaudit.judges.clean import without_tokens
from plaudit.judges.transcript import (
    Transcript,
    assistant_turns,
    check_turns,
    last_answer,
    only_answer,
    says_something,
    transcript,
)
from plaudit.reasoning import BOUND, without_reasoning
from plaudit.rows import text_of
from plaudit.types import Sample

View = Literal["full", "last"]
"""What is shown of a trajectory: all of it, or what the assistant says in its last turn."""


def answer_of(sample: Sample, *, with_reasoning: bool = False, view: View = "full") -> str:
    """What a judge is to see of the response: text, or the Transcript of a trajectory.

    Raises:
        ConfigError: It is neither text nor a conversation, or a tool's result that no call asked for.
    """
    response: object = sample.response
    if not isinstance(response, str):
        only = last_answer(response) if view == "last" else only_answer(response)
        if only is None and not says_something(response, has_content):
            return ""
        if only is None:
            return transcript("response", response, before=sample.prompt, show_thinking=with_reasoning)
        response = only
    return response if with_reasoning or isinstance(response, Transcript) else without_reasoning(response)


def check_turns_of(sample: Sample, view: View = "full") -> None:
    """Check the conversations of a sample before anything is asked about it.

    Raises:
        ConfigError: One has a message that is none, or a tool's result that no call asked for; the error
            names the field. What is neither text nor a conversation fails alone, when it is its turn.
    """
    if isinstance(sample.prompt, (list, tuple)):
        check_turns("prompt", sample.prompt)
    if isinstance(sample.response, (list, tuple)) and view == "full":
        check_turns("response", sample.response, before=sample.prompt)


def hides_reasoning(sample: Sample, answer: str) -> bool:
    """Whether the response has reasoning that the answer, as `answer_of` gave it, does not show."""
    if isinstance(sample.response, str):
        return answer != sample.response
    texts = [text_of(turn.get("content")) for _, turn in assistant_turns(sample.response)]
    return any(without_reasoning(text) != text and text not in answer for text in texts)


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
