"""Whose verdict it is: the author of the judged text may have written what looks like the judge's."""

from __future__ import annotations

import re
from functools import cached_property

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
        if self.key not in self.judged and not re.search(choice("score"), self.judged, re.I):
            return False
        if self._holds(raw):
            return True
        if not self._claims(self.key, found[self.key]):
            return False
        return all(_letters(text) in self._letters for text in found.values() if isinstance(text, str))

    def wrote_line(self, line: str, value: object) -> bool:
        """Whether the text holds this line, or gives the same value to what it names or to the score."""
        line = line.strip(" \t*_#•-.")
        label = re.split(r"[:=(\d]|[\s*_]+$", line, maxsplit=1)[0].strip(" *_")
        if not re.search(r"[^\W\d_]", line):
            return line in self._text
        names = f"{choice('score')}|{re.escape(label)}" if re.search(r"\w", label) else choice("score")
        return self._holds(line) or self._claims(names, value)

    def _claims(self, names: str, value: object) -> bool:
        """Whether the text gives this value to a name, in an object that may be broken, or in a line."""
        claim = rf"(?:{names})(?:\W|_|\\boxed|value){{1,12}}(-?\w[\w.,]{{0,30}})"
        return any(is_same(one, value) for one in set(re.findall(claim, self._text, re.I)))

    def _holds(self, words: str) -> bool:
        """Whether the text has these words and numbers, and no digit more."""
        return re.search(rf"{re.escape(_letters(words))}(?!\d|\.\d)", self._letters) is not None

    @cached_property
    def _text(self) -> str:
        text = unwrapped(narrow(self.judged))
        if self.key != "score":
            return text
        return re.sub(rf'"{choice("score")}"(?=\s*+:\s*+["\d])', '"score"', text, flags=re.I)

    @cached_property
    def _letters(self) -> str:
        return _letters(self._text)


def _letters(text: str) -> str:
    """The text without anything that makes no difference: words and numbers."""
    return re.sub(r"[^\w.-]+|_+|[.-](?!\d)", "", text.casefold())
