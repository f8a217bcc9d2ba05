"""Whose verdict it is: the author of the judged text may have written what looks like the judge's."""

from __future__ import annotations

import json
import re
from functools import cache, cached_property, lru_cache

from plaudit.errors import UnreadableVerdict
from plaudit.judges.numerals import narrow
from plaudit.judges.reply_objects import Found
from plaudit.judges.reply_prose import choice, is_same
from plaudit.judges.reply_text import unwrapped
from plaudit.reasoning import BOUND


class CopiedVerdict(UnreadableVerdict):
    """What looks like the verdict was written by the author of the judged text."""

    def __init__(self) -> None:
        super().__init__("the verdict is a copy of what the judged text claims")


class Author:
    """The author of the judged text, who may have written what looks like the judge's verdict.

    A verdict is a copy where the text holds it word for word, or claims the same value in the same words. One
    that quotes the author's words with another value is the judge's own, and so is one that has the claimed
    value for reasons of its own. Good and bad claims are treated alike.
    """

    def __init__(self, judged: str, key: str) -> None:
        self.key = key
        if len(judged) > BOUND:  # a judge is shown its head and its tail
            judged = judged[: BOUND // 2] + judged[-BOUND // 2 :]
        self.judged = judged

    def wrote(self, found: Found, raw: str) -> bool:
        """Whether the object is a copy; `raw` is what it was read from."""
        if not self._speaks_of_it:
            return False
        if self._holds(raw):
            return True
        value = found[self.key]
        if not any(is_same(claim, value) for claim in set(_claims(self.key).findall(self._text))):
            return False
        return all(_letters(text) in self._letters for text in found.values() if isinstance(text, str))

    def wrote_line(self, line: str, value: object) -> bool:
        """Whether the text holds this line, or gives the same value to what it names or to the score."""
        line = line.strip(" \t*_#•-.")
        label = re.split(r"[:=(\d]|[\s*_]+$", line, maxsplit=1)[0].strip(" *_")
        if not re.search(r"[^\W\d_]", line):
            return line in self._text
        names = f"{choice('score')}|{re.escape(label)}" if re.search(r"\w", label) else choice("score")
        claims = set(_claims(names).findall(self._text))
        return self._holds(line) or any(is_same(claim, value) for claim in claims)

    def _holds(self, words: str) -> bool:
        """Whether the text has these words and numbers, and no digit more."""
        return re.search(rf"{re.escape(_letters(words))}(?!\d|\.\d)", self._letters) is not None

    @property
    def _speaks_of_it(self) -> bool:
        return self.key in self.judged or _named_score().search(self.judged) is not None

    @cached_property
    def _text(self) -> str:
        text = unwrapped(narrow(self.judged))
        return _other_name().sub('"score"', text) if self.key == "score" else text

    @cached_property
    def _letters(self) -> str:
        return _letters(self._text)


@cache
def _named_score() -> re.Pattern[str]:
    return re.compile(choice("score"), re.IGNORECASE)


@cache
def _other_name() -> re.Pattern[str]:
    return re.compile(rf'"{choice("score")}"(?=\s*+:\s*+["\d])', re.IGNORECASE)


@lru_cache(maxsize=256)
def _claims(names: str) -> re.Pattern[str]:
    """What a text says a value is, in an object that may be broken or escaped, or in a line."""
    return re.compile(rf"(?:{names})(?:\W|_|\\boxed|value){{1,12}}(-?\w[\w.,]{{0,30}})", re.IGNORECASE)


def check_origin(found: Found, key: str, judged: str) -> None:
    """Raises CopiedVerdict where the verdict is a copy of a claim in the judged text."""
    if Author(judged, key).wrote(found, json.dumps(found, ensure_ascii=False)):
        raise CopiedVerdict


def _letters(text: str) -> str:
    """The text without anything that makes no difference: words and numbers."""
    return re.sub(r"[^\w.-]+|_+|[.-](?!\d)", "", text.casefold())
