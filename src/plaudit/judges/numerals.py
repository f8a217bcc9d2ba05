"""A score as models write one: `8`, `8/10`, `7,5`, `eight`, `[[8]]`, `\\boxed{8}`, `8分(满分10分)`."""

from __future__ import annotations

import re
from typing import NamedTuple

_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
NUMBER = rf"(?:-?(?:0|[1-9][0-9]{{0,14}})(?:\.[0-9]{{1,15}}|,[0-9]{{1,2}})?|(?:{'|'.join(_WORDS)})\b)"
_UNIT = r"(?:\s?(?:points?|pts|分|点|점|punkte?|puntos?|punti|pontos?|балл[а-я]{0,3}))?"
_OF = r"\s?(?:/|out of|von|sur|de|su|из)\s?"
_SAID = re.compile(
    rf"(?P<stars>[★⭐☆✩]{{1,20}}\s?\(?)?(?:(?P<of_first>{NUMBER})点満点中\s?)?"
    rf"(?:(?P<mark>\[\[|\$?\\boxed\{{)\s?)?(?P<value>{NUMBER}){_UNIT}(?:{_OF}(?P<of>{NUMBER}){_UNIT})?"
    rf"(?(mark)\s?(?:\]\]|\}}\$?)(?:{_OF}(?P<of_marked>{NUMBER}){_UNIT})?)"
    rf"(?:\s?\((?:(?P<percent>{NUMBER})\s?%|(?:满分|max\.?|out of|of)\s?(?P<of_last>{NUMBER}){_UNIT}"
    rf"|(?P<again>{NUMBER})(?:{_OF}(?P<of_again>{NUMBER}))?)\))?(?(stars)\)?)",
    re.IGNORECASE,
)
_WIDE = {wide: wide - 0xFEE0 for wide in range(0xFF01, 0xFF5F)} | dict.fromkeys((0x3000, 0xA0, 0x202F), 0x20)


class Said(NamedTuple):
    """A number, and out of how many it is, where that is said."""

    value: float
    of: float | None = None
    is_marked: bool = False
    """Whether it stands in brackets that nothing but a result has."""


def narrow(text: str) -> str:
    """The text with full-width signs and spaces in their usual form, of the same length."""
    return text if text.isascii() else text.translate(_WIDE)


def said(text: str) -> Said | None:
    """What a text says the score is, where it says nothing else, and nothing different a second time."""
    found = _SAID.fullmatch(text.strip())
    if found is None:
        return None
    value, *rest = (_number(found[name]) for name in ("value", "of_first", "of", "of_marked", "of_last"))
    assert value is not None
    tops = {top for top in (*rest, _number(found["of_again"])) if top is not None}
    of = tops.pop() if tops else None
    percent, again = _number(found["percent"]), _number(found["again"])
    is_again = again in (None, value) and (
        percent is None or (of is not None and percent * of == value * 100)
    )
    has_stars = not found["stars"] or found["stars"].count("★") + found["stars"].count("⭐") == value
    return Said(value, of, found["mark"] is not None) if is_again and has_stars and not tops else None


def _number(text: str | None) -> float | None:
    if text is None:
        return None
    return float(_WORDS.index(text.lower()) if text.isalpha() else text.replace(",", "."))
