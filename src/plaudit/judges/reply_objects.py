"""The objects in a reply, read as JSON and as what models write in its place, by one tolerant reader.

Quotes of any kind, bare quotes inside a text, keys and texts without quotes, literals of Python, comments,
commas too many or too few, other separators, a missing end: whatever can be read in one way only is read.
Whatever is read, a key with two values and a second verdict inside a verdict are none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple

import msgspec

from plaudit.errors import UnreadableVerdict
from plaudit.judges.numerals import said_first
from plaudit.judges.reply_prose import choice

Found = dict[str, Any]
"""A verdict object: its values by key."""

MANY_KEYS = 32
"""From here on repeated keys are found by reading the object in pairs, which takes longer for a few."""
DEPTH = 8
"""How deep objects and lists may be nested."""
MAX_STRICT = 16
"""Objects that are first tried as plain JSON; each attempt may read the whole text."""
MAX_FAILED = 1_000
"""Objects that turn out to be none."""
MAX_BARE = 1_000
"""Characters of a text without quotes."""
MAX_OPEN = 4_000
"""Characters in which the end of an object is looked for that a text quotes."""
MAX_COMMAS = 12
"""Commas and line breaks in it."""


class FoundAt(NamedTuple):
    """A verdict, and where it stands in the text."""

    found: Found
    start: int
    end: int


# --- the usual case: the reply is the object ----------------------------------------------------------------

_flat = msgspec.json.Decoder(dict[str, str | int | float | bool | None])


def whole_object(text: str, key: str) -> Found | None:
    """The text as one flat object without repeated keys; None where it may be anything else."""
    try:
        found = _flat.decode(text)
    except (ValueError, RecursionError):  # no JSON, nested, or not encodable
        return None
    if key not in found or "\\u00" in text:  # a key in escapes would not be counted
        return None
    if len(found) > MANY_KEYS:  # counting each would be quadratic
        return None
    for name in found:
        is_other = name != key and (is_key(name, key) or (key == "score" and name.startswith(key)))
        if is_other or text.count(f'"{name}"') != 1:
            return None
    return found


# --- any object ---------------------------------------------------------------------------------------------


class Pairs(list[tuple[str, Any]]):
    """The pairs of an object, repeated keys and all."""


class Bare(str):
    """A value without quotes that JSON has no word for."""


class LocatedObject(NamedTuple):
    """An object or a list, and where it stands; `is_closed` where its end is there."""

    value: Any
    start: int
    end: int
    is_closed: bool
    is_exact: bool
    """Whether every text in it was quoted as it should be."""


class _NoObject(Exception):
    """What looked like an object is none; `place` is how far it could be read."""

    def __init__(self, place: int) -> None:
        self.place = place


# Possessive throughout, so no backtracking.
_COMMENT = r"(?:(?://|\#)[^\n]*+(?:\n|\Z)|/\*[^*]*+\*/)"
_GAP = rf"\s*+(?:{_COMMENT}\s*+)*+"
_QUOTED = r"(?:\"[^\"\n]{1,64}\"|'[^'\n]{1,64}'|[“”„«][^“”«»\n]{1,64}[“”»])"
_COLON = r"\s*+(?:=>|:{1,2}(?![:/])|=(?!/))"
_KEY = rf"(?:{_QUOTED}|[^\W\d][\w-]{{0,63}}){_COLON}"
_AFTER = re.compile(
    rf"\s*+\"\w{{1,64}}\"\s*+:|{_GAP}(?:[}}\]]|[,;]{_GAP}(?:[}}\]]|{_KEY}|\Z)|(?<=\n){_QUOTED}{_COLON}|```|\Z)"
)
"""What follows the end of a value in an object."""
_AFTER_ITEM = re.compile(rf"{_GAP}(?:[\]}},;]|\Z)")
_AFTER_ARGUMENT = re.compile(rf"{_GAP}(?:\)|,{_GAP}(?:\)|\w{{1,64}}\s*+=))")
_GAPS = re.compile(_GAP)
_CALLED = rf"[\w.]{{1,80}}\({_GAP}\w{{1,64}}\s*+=(?!=)"
_KEYED = re.compile(rf"\{{{_GAP}(?:{_KEY}|\}})|\[{_GAP}{_QUOTED}{_COLON}|{_CALLED}")
_NAME = re.compile(_KEY)
_QUOTES = {'"': '"', "'": "'", "“": "“”", "”": "”“", "„": "“”", "«": "»", "‘": "’"}
_BARE = re.compile(r"[^\s\"',;:{}\[\]“”]++")
_BARE_ARGUMENT = re.compile(r"[^\s\"',;:{}\[\]“”)]++")
_NUMBER = re.compile(r"-?[0-9]{1,16}(?:\.[0-9]{0,17})?(?:[eE][+-]?[0-9]{1,3})?")
_LITERALS = {"true": True, "false": False, "none": None, "null": None}
_BACKSLASH = re.compile(r'\\(["\\/bfnrt]|u[0-9a-fA-F]{4})?|"')


class Reader:
    """Reads objects of a text. Linear: an attempt that fails goes on where it failed, not where it began."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._unclosed: dict[str, int] = {}
        self._attempts = MAX_STRICT
        self.loose: list[str] = []
        """Texts with quotes that should have been escaped."""
        self.comments: list[str] = []
        self.is_cut = False
        """Whether the text ends where an object was to go on: within a text or a list, or after a comma."""

    def objects(self) -> Iterator[LocatedObject]:
        """The outermost objects, and lists that begin with one."""
        text, place, failed = self.text, 0, 0
        while (start := _OPENING.search(text, place)) is not None:
            place = start.start()
            if self._attempts:
                try:
                    strict, end = _strict.raw_decode(text, place)
                except (ValueError, RecursionError):  # includes numbers of thousands of digits
                    self._attempts -= 1
                else:
                    yield LocatedObject(strict, place, end, True, True)
                    place = end
                    continue
            loose = len(self.loose)
            try:
                value, end, is_closed = self._value(place, DEPTH, _AFTER)
            except _NoObject as error:
                place, failed = max(error.place, place + 1), failed + 1
                if failed > MAX_FAILED:
                    raise UnreadableVerdict("the reply holds too many broken objects for a verdict") from None
                continue
            yield LocatedObject(value, place, end, is_closed, is_closed and loose == len(self.loose))
            place = end

    def _value(self, at: int, depth: int, after: re.Pattern[str]) -> tuple[Any, int, bool]:
        mark = self.text[at : at + 1]
        is_object = _KEYED.match(self.text, at) is not None  # in square brackets, too
        if is_object or mark == "[":
            if not depth:
                raise _NoObject(at + 1)
            return self._object(at, depth) if is_object else self._list(at, depth)
        return self._quoted(at, after) if mark in _QUOTES else self._bare(at, after)

    def _object(self, at: int, depth: int) -> tuple[Any, int, bool]:
        text = self.text
        pairs = Pairs()
        is_call = text[at] not in "{["
        place = text.index("(", at) + 1 if is_call else at + 1
        after, ends = (_AFTER_ARGUMENT, (")",)) if is_call else (_AFTER, ("}", "]"))
        while True:
            place = self._gap(place)
            if text.startswith(ends, place):
                return pairs, place + 1, True
            if text.startswith("```", place) and pairs:  # the fence ends, and with it the object
                return pairs, place, False
            name = _NAME.match(text, place)
            if name is None:
                if place >= len(text) and pairs:
                    self.is_cut = text.rstrip().endswith(",")
                    return pairs, place, False
                raise _NoObject(max(place, at + 1))
            key = name[0].rstrip("=>: \t\n").strip("\"'“”„«»")
            value, place, is_closed = self._value(self._gap(name.end()), depth - 1, after)
            pairs.append((_unescaped(key), value))
            if not is_closed:
                return pairs, place, False
            place = self._gap(place)
            if text[place : place + 1] in (",", ";"):
                place += 1
            elif text[place : place + 1].isalpha():  # prose: a key without quotes needs its comma
                raise _NoObject(place)

    def _list(self, at: int, depth: int) -> tuple[Any, int, bool]:
        text = self.text
        items: list[Any] = []
        place = at + 1
        while True:
            place = self._gap(place)
            if text[place : place + 1] == "]":
                return items, place + 1, True
            if place >= len(text):
                self.is_cut = True
                return items, place, False
            value, place, is_closed = self._value(place, depth - 1, _AFTER_ITEM)
            items.append(value)
            if not is_closed:
                return items, place, False
            place = self._gap(place)
            if text[place : place + 1] in (",", ";"):
                place += 1
            elif text[place : place + 1] not in ("]", "{", ""):
                raise _NoObject(place)

    def _quoted(self, at: int, after: re.Pattern[str]) -> tuple[str, int, bool]:
        """A text in quotes. One that is followed by more text does not end it: it was not escaped."""
        text = self.text
        mark = text[at]
        if at >= self._unclosed.get(mark, len(text)):
            raise _NoObject(at + 1)
        ends = _CLOSERS[mark]
        place, depth, found, limit = at + 1, 0, 0, len(text)
        while place <= limit and (end := ends.match(text, place)) is not None:
            depth += end[0].count("{") - end[0].count("}")
            place = end.end()
            if after.match(text, place):
                found = found or place
                if depth <= 0:  # else it may be the end of a text in an object that this one quotes
                    found = place
                    break
                limit = at + MAX_OPEN
        if found:
            raw = text[at + 1 : found - 1]
            if mark in raw.replace(f"\\{mark}", ""):
                self.loose.append(raw)
            return _unescaped(raw), found, True
        place = at
        while (place := text.find(mark, place + 1)) >= 0:
            # a path's last backslash, and the end
            if text[place - 1] == "\\" and after.match(text, place + 1):
                return text[at + 1 : place], place + 1, True
            if _UNENDED.match(text, place) and text[max(at, place - 9) : place].rstrip().endswith(","):
                comma = text.rindex(",", at, place)  # the next key begins, and the quote is missing
                return _unescaped(text[at + 1 : comma]), comma, True
        self._unclosed[mark] = at
        self.is_cut = True
        if at + 1 < len(text):
            return Bare(_unescaped(text[at + 1 :]) + "?"), len(text), False
        raise _NoObject(at + 1)

    def _bare(self, at: int, after: re.Pattern[str]) -> tuple[Any, int, bool]:
        text = self.text
        word = (_BARE_ARGUMENT if after is _AFTER_ARGUMENT else _BARE).match(text, at)
        if word is None:
            raise _NoObject(at)
        place = word.end()
        if not after.match(text, place):
            more = islice(_BARE_END.finditer(text, place, min(at + MAX_BARE, len(text))), MAX_COMMAS)
            place = next((end.start() for end in more if after.match(text, end.start())), -1)
            if place < 0:
                raise _NoObject(word.end())
        raw = text[at:place].strip()
        if _NUMBER.fullmatch(raw):
            if place >= len(text):  # more digits may have been cut off
                return Bare(raw + "?"), place, False
            number = float(raw)
            return (int(raw) if raw.lstrip("-").isdigit() else number), place, True
        if raw.casefold() in _LITERALS:
            return _LITERALS[raw.casefold()], place, True
        return Bare(raw + "?" * (place >= len(text))), place, True

    def _gap(self, place: int) -> int:
        found = _GAPS.match(self.text, place)
        assert found is not None
        if found.end() > place and (comment := found[0].strip(" \t\n/*#")):
            self.comments.append(comment)
        return found.end()


_UNENDED = re.compile(r"\"\w{1,64}\"\s*+:")
_strict: Any = json.JSONDecoder(object_pairs_hook=Pairs, strict=False)
"""Not strict about line breaks within texts: they make nothing ambiguous."""
_OPENING = re.compile(
    rf"\{{(?={_GAP}(?:{_KEY}|\}}))|\[(?=\s*+\{{|{_GAP}{_QUOTED}{_COLON})|(?<![\w.])(?={_CALLED})"
)
_BARE_END = re.compile(r"[,;}\]\n]")
_CLOSERS = {mark: re.compile(rf"(?:[^{ends}\\]|\\.)*+[{ends}]", re.DOTALL) for mark, ends in _QUOTES.items()}


def _unescaped(raw: str) -> str:
    """A text without its escapes; a backslash that escapes nothing, as in LaTeX or a path, is itself."""
    if "\\" not in raw:
        return raw
    escaped = _BACKSLASH.sub(lambda found: found[0] if found[1] else "\\" + found[0], raw.replace("\\'", "'"))
    try:
        return json.loads(f'"{escaped}"', strict=False)  # type: ignore[no-any-return]
    except ValueError:
        return raw


# --- what an object says ------------------------------------------------------------------------------------

_WRAPPER = re.compile(
    r"(?:verdict|eval\w*|judge?ments?|judge|assessments?|results?|outputs?|ratings?|grad(?:e|es|ing)|scor(?:e|es|ing)|"
    r"feedback|arguments|args|parameters|params|input|calls?|criteria|checklist|final|overall|answer|response|reply|data|"
    r"payload|content|body|json|review|report|decision|return|value|function|tool|my|the|object|analysis|summary|"
    r"properties|choices|message|\d{1,2}|[\s_-])+",
    re.IGNORECASE,
)
"""Names of an object in which a verdict is wrapped. Under any other it may be somebody else's, or a part."""
_QUALITY = (
    r"(?:(?:final|overall|total|adjusted|revised|updated|corrected|actual|true|new|numeric|numerical|integer|judge|quality|the|my"
    r"|llm|model|eval|evaluation|response|answer|assigned|最终|综合|总)[\s_-]*){0,2}"
)
_SCALED = (
    r"(?:[\s_-]*(?:value|final|total|number|\(?\d{1,3}\s?[-–to]{1,2}\s?\d{1,3}\)?|out[\s_]of[\s_]\d{1,3}))?"
)


def is_key(name: str, key: str) -> bool:
    """Whether a key is the one that was asked for, but for its case or language; a final score is a score."""
    return len(name) <= MAX_KEY and _is_key(name, key)


_WINNERS = ("betterresponse", "betteranswer", "better", "preferredresponse", "preferred", "finalwinner")
MAX_KEY = 80
"""Characters of a key that may be the one."""


@lru_cache(maxsize=1024)
def _is_key(name: str, key: str) -> bool:
    folded = name.strip().casefold()
    if key == "score":
        return re.fullmatch(_QUALITY + choice("score") + _SCALED, folded) is not None
    folded, asked = (re.sub(r"[\W_]+", "", text) for text in (folded.removeprefix("is_"), key.casefold()))
    return folded == asked or (key == "winner" and folded in _WINNERS)


def verdict_in(found: Found, key: str) -> Found | None:
    """The object itself where it has the key, or the one that it wraps; None where no object in it does."""
    names = [name for name in found if is_key(name, key)]
    if len(names) > 1 and key in names:  # a word beside the number, as in `"rating": "poor"`, is no other
        names = [name for name in names if name == key or name.casefold() == key or not _is_word(found[name])]
    if key in names and len({repr(found[name]) for name in names}) == 1:
        names = [key]
    if len(names) > 1:
        raise UnreadableVerdict(f"{names[0][:20]!r} and {names[1][:20]!r} are in one object")
    if not names:
        found = {name: _parsed(value) for name, value in found.items()}
        holders = [name for name, value in found.items() if _holds(value, key)]
        if not holders:
            return None
        if len(holders) > 1:
            holders = [name for name in holders if not _is_of_parts(name, found[name], key)] or holders
        inner = found[holders[0]]
        if isinstance(inner, list) and len(inner) == 1:
            inner = inner[0]
        if len(holders) > 1 or not isinstance(inner, dict) or not _WRAPPER.fullmatch(holders[0].strip()):
            raise UnreadableVerdict("the verdict is inside another object")
        return verdict_in(inner, key)
    (name,) = names
    others = [
        other
        for other, value in found.items()
        if other != name and _holds(value, key) and not _is_of_parts(other, value, key)
    ]
    if len(others) > 1 and not any(_WRAPPER.fullmatch(one) or _OTHER_TRIES.search(one) for one in others):
        others = []
    is_whole = _WHOLE.match(name) and not any(_WRAPPER.fullmatch(other) for other in others)
    if others and not is_whole:
        raise UnreadableVerdict("there is a second verdict inside the verdict")
    if key == "score" and any(
        _SECOND.match(other) and _is_other(found[other], found[name]) for other in found
    ):
        raise UnreadableVerdict("there are two scores in the verdict")
    if name == key:
        return found
    return {other.strip().casefold(): value for other, value in found.items() if other != name} | {
        key: found[name]
    }


def _is_word(value: object) -> bool:
    return isinstance(value, str) and said_first(value) is None


def _is_other(value: object, score: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value != score


_WHOLE = re.compile(r"\s*(?:overall|final|total)", re.IGNORECASE)
"""What the score of the whole is called beside those of its aspects."""
_SECOND = re.compile(r"\s*score[\s_-](?!max|min|range|scale|weight|out)", re.IGNORECASE)


def _is_of_parts(name: str, value: object, key: str) -> bool:
    """Whether a value holds scores of aspects, which are no second verdict."""
    if re.match(r"confidence|certainty", name, re.IGNORECASE):
        return True
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return sum(_holds(one, key) for one in inner) > 1 and not _OTHER_TRIES.search(name.replace("_", " "))


_OTHER_TRIES = re.compile(
    r"attempt|histor|version|revision|round|iteration|response|answer|candidate|example|draft|previous|alternative|final|before|after|old|new|first|second|initial|original",
    re.IGNORECASE,
)


def _parsed(value: Any) -> Any:
    """The arguments of a tool call or a message, which are JSON in a text; any other value as it is."""
    if isinstance(value, dict):
        return {name: _parsed(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_parsed(item) for item in value]
    if not (isinstance(value, str) and value.lstrip()[:1] == "{" and value.rstrip()[-1:] == "}"):
        return value
    whole = next(Reader(value.strip()).objects(), None)
    return unique(whole.value) if whole and whole.end == len(value.strip()) else value


def _holds(value: object, key: str) -> bool:
    """Whether some object in there has the key."""
    if isinstance(value, dict):
        return any(is_key(name, key) or _holds(inner, key) for name, inner in value.items())
    return isinstance(value, list) and any(_holds(item, key) for item in value)


def encodable(value: Any) -> Any:
    """The value, with lone surrogates replaced where it is text."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def unique(value: Any) -> Any:
    """Pairs as objects, texts encodable. Raises UnreadableVerdict where a key has two values."""
    if isinstance(value, Pairs):
        found: Found = {}
        for name, inner in value:
            made = unique(inner)
            if name in found and repr(found[name]) != repr(made):
                raise UnreadableVerdict(f"the key {name[:20]!r} appears twice, with different values")
            found[name] = made
        return found
    if isinstance(value, list):
        return [unique(item) for item in value]
    return encodable(value)
