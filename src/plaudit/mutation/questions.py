"""Questions with reference answers: the packaged ones, and users' own from a file of JSON lines.

{"id": "capital-kenya", "question": "What is the capital of Kenya?", "reference": "Nairobi"}
"""

from __future__ import annotations

import os
from functools import cache
from importlib.resources import files

import msgspec

from plaudit.errors import ConfigError
from plaudit.files import read_text
from plaudit.judges.content import has_words

PACKAGED = "questions.jsonl"


class Item(msgspec.Struct, frozen=True):
    """A question, and what a right answer to it says. Further fields of a line are passed over."""

    question: str
    reference: str | None = None
    id: str = ""
    kind: str = ""
    """What it tests: `fact`, `arithmetic`, `definition` or `reasoning` in the packaged file."""


@cache
def builtin_questions() -> tuple[Item, ...]:
    """The packaged questions: 200, short, with references, of four kinds."""
    text = (files("plaudit.mutation") / "data" / PACKAGED).read_text(encoding="utf-8")
    return _items(PACKAGED, text)


def load_questions(path: str | os.PathLike[str]) -> tuple[Item, ...]:
    """The questions of a file. ConfigError names the line and the remedy."""
    return _items(str(path), read_text(path, setting="questions"))


def _items(path: str, text: str) -> tuple[Item, ...]:
    items = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            item = _decode(line)
        except (msgspec.DecodeError, RecursionError) as error:
            raise ConfigError(f"{path}:{number}: {error}; write {_EXAMPLE}") from None
        if not has_words(item.question):
            raise ConfigError(f"{path}:{number}: the question is empty; write {_EXAMPLE}")
        items.append(item)
    if not items:
        raise ConfigError(
            f"contains no question; write one JSON object per line, like {_EXAMPLE}",
            setting="questions",
            value=str(path),
        )
    return tuple(items)


_EXAMPLE = '{"question": "What is 2 + 2?", "reference": "4"}'
_decode = msgspec.json.Decoder(Item).decode
