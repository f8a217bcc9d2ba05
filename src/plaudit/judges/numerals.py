"""A score as models write one: `8`, `8/10`, `7,5`, `eight`, `[[8]]`, `\\boxed{8}`, `8分(满分10分)`."""

from __future__ import annotations

import re
from typing import NamedTuple

_WORDS = {
    word: value
    for words in (
        "zero one two three four five six seven eight nine ten",
        "null eins zwei drei vier fünf sechs sieben acht neun zehn",
        "zéro un deux trois quatre cinq six sept huit neuf dix",
        "cero uno dos tres cuatro cinco seis siete ocho nueve diez",
        "零 一 二 三 四 五 六 七 八 九 十",
    )
    for value, word in enumerate(words.split())
    if word not in ("null", "un", "uno")
}
_DIGITS = r"(?:0|[1-9][0-9]{0,14})(?:\.[0-9]{1,15}|,[0-9]{1,2}(?!\d))?"
NUMBER = rf"(?:-?{_DIGITS}|(?:{'|'.join(sorted(_WORDS, key=len, reverse=True))})(?![a-zà-ÿ]))"
_UNIT = r"(?:\s?(?:points?|pts|marks?|分|点|점|punkten?|puntos?|punti|pontos?|балл[а-я]{0,3}))?"
_OF = r"\s?(?:/|out of|of|von|sur|de|su|из|över|op|uit)\s?(?:a (?:possible|total of|maximum of) )?"
_SAID = re.compile(
    rf"(?P<stars>[★⭐☆✩]{{1,20}}\s?\(?)?(?:(?P<of_first>{NUMBER})(?:点満点中|점 만점에|分制中?)\s?)?"
    rf"(?:(?P<mark>\[\[?|\\?[($]{{0,2}}\s?\\boxed\{{(?:\\text\{{)?)\s?)?(?P<value>{NUMBER})(?P<share>\s?%)?{_UNIT}"
    rf"(?:{_OF}(?P<of>{NUMBER})(?: stars)?{_UNIT})?"
    rf"(?(mark)\s?(?:\]\]?|\}}{{1,2}}\s?\\?[)$]{{0,2}})(?:{_OF}(?P<of_marked>{NUMBER}){_UNIT})?)"
    rf"(?:\s?\((?:(?P<percent>{NUMBER})\s?%"
    r"|(?:满分|max\.?|out of|of|on a scale of|/)\s?(?:0\s?(?:-|–|to)\s?)?"
    rf"(?P<of_last>{NUMBER}){_UNIT}|(?P<again>{NUMBER})(?:{_OF}(?P<of_again>{NUMBER}))?)\))?"
    rf"(?:\s?(?:on|in|over) (?:a|the) (?:scale|range) (?:of|from) "
    rf"(?P<low>{NUMBER})\s?(?:-|–|to)\s?(?P<high>{NUMBER}))?"
    r"(?(stars)\)?)",
    re.IGNORECASE,
)
_WIDE = (
    {wide: wide - 0xFEE0 for wide in range(0xFF01, 0xFF5F)}
    | dict.fromkeys((0x3000, 0xA0, 0x202F, 0x2009), 0x20)
    | {zero + digit: 0x30 + digit for zero in (0x660, 0x6F0, 0x966, 0x9E6, 0xE50) for digit in range(10)}
)


class Said(NamedTuple):
    """A number, and out of how many it is, where that is said."""

    value: float
    of: float | None = None
    low: float | None = None


def narrow(text: str) -> str:
    """The text with full-width signs, spaces and digits in their usual form, of the same length."""
    return text if text.isascii() else text.translate(_WIDE)


def said(text: str) -> Said | None:
    """What a text says the score is, where it says nothing else, and nothing different a second time."""
    found = _SAID.fullmatch(text.strip())
    return None if found is None else _read(found)


_COMMENTED = re.compile(r"(?:\s[-–—]\s|\s?\()(?!not |n/a)[^\W\d_][^\d/]{0,40}", re.IGNORECASE)


def said_first(text: str) -> Said | None:
    """What a text says the score is, with a word for it behind, as in `8 - good`."""
    found = said_at(text.strip(), 0)
    if found is None:
        return None
    rest = text.strip()[found[1] :]
    return found[0] if not rest or _COMMENTED.fullmatch(rest) else None


def said_at(text: str, place: int) -> tuple[Said, int] | None:
    """The score that a text states at this place, and where that ends."""
    found = _SAID.match(text, place)
    read = None if found is None else _read(found)
    return None if read is None or found is None else (read, found.end())


def _read(found: re.Match[str]) -> Said | None:
    names = ("value", "of_first", "of", "of_marked", "of_last", "of_again", "high")
    value, *rest = (_number(found[name]) for name in names)
    assert value is not None
    tops = {top for top in rest if top is not None} | ({100.0} if found["share"] else set())
    of = tops.pop() if tops else None
    percent, again = _number(found["percent"]), _number(found["again"])
    is_again = again in (None, value) and (
        percent is None or (of is not None and percent * of == value * 100)
    )
    has_stars = not found["stars"] or found["stars"].count("★") + found["stars"].count("⭐") == value
    if not is_again or not has_stars or tops:
        return None
    return Said(value, of, _number(found["low"]))


def _number(text: str | None) -> float | None:
    if text is None:
        return None
    word = _WORDS.get(text.lower())
    return float(text.replace(",", ".")) if word is None else float(word)
