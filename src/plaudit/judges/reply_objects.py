"""The JSON objects in a reply: found among other text, decoded, and without any that says two things.

Read as JSON are also what models write in its place: quotes and literals of Python, typographic quotes, keys
without quotes, comments, a comma before the closing bracket, a backslash that escapes nothing; and the form
that was asked for with bare quotes inside its reason. Whatever is read, a key with two values and a second
verdict inside a verdict are none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from plaudit.errors import UnreadableVerdict

Found = dict[str, Any]
"""A verdict object: its values by key."""

MANY_KEYS = 32
"""From here on repeated keys are found by reading the object in pairs, which takes longer for a few."""

MAX_COPIES = 3
"""Objects of the judged text that a reply may quote beside its own; each is looked for in the whole text."""


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
        if text.count(f'"{name}"') != 1 or (name != key and _is_key(name, key)):
            return None
    return found


# --- an object among other text -----------------------------------------------------------------------------

# Possessive throughout, so no backtracking. Linear over a whole text, too: an attempt that fails ends at a
# brace outside a string, and the next one to read the same text starts a level further in, of four; it may
# also disagree on what is inside a string, in three ways.
_DOUBLE = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_SINGLE = r"'[^'\\]*+(?:\\.[^'\\]*+)*+'"
_CURLY = r"[“”][^“”]*+[“”]"
_STRING = rf"(?:{_DOUBLE}|{_SINGLE}|{_CURLY})"
_COMMENT = r"(?:(?://[^\n]*+|/\*[^*]*+\*/)\s*+)"
_GAP = rf"\s*+(?:{_COMMENT})*+"
_NEXT = r'"\w{1,64}"\s*+:'  # where a comma was left out
_NAME = rf"(?:{_STRING}|[A-Za-z_]\w*+)"
_SCALAR = rf"(?:{_STRING}|[^\s\"',:{{}}\[\]“”]++)"


def _objects_of(value: str) -> str:
    pair = rf"{_GAP}{_NAME}\s*+:{_GAP}{value}{_GAP}(?:,|(?=\}}|{_NEXT}))"
    return rf"\{{(?=\s*+[\"'/A-Za-z_“”])(?:{pair})*+{_GAP}\}}"


def _lists_of(value: str) -> str:
    return rf"\[{_GAP}(?:{value}{_GAP}(?:,{_GAP}|(?=\])))*+{_GAP}\]"


_FLAT = _objects_of(rf"(?:{_SCALAR}|{_lists_of(rf'(?:{_SCALAR})')})")
_ITEM = rf"(?:\s*+(?:{_SCALAR}|{_FLAT}))"
_NESTED = _objects_of(rf"(?:{_SCALAR}|{_FLAT}|{_lists_of(_ITEM)})")
_OBJECT = re.compile(_objects_of(rf"(?:{_SCALAR}|{_NESTED}|{_lists_of(_ITEM)})"), re.DOTALL)
_CLOSING = re.compile(r"\s*+,?\s*+\]")


def object_spans(text: str) -> list[tuple[int, int]]:
    """Where the objects of a text start and end."""
    return [match.span() for match in _OBJECT.finditer(text)]


def object_places(
    text: str, key: str, is_copy: Callable[[Found, str], bool]
) -> tuple[list[FoundAt], list[FoundAt]]:
    """Where the object with the key stands, once or more often, and where copies of another author's do.

    Raises:
        UnreadableVerdict: there are two of them, or the one is quoted, or part of something else.
    """
    places: list[FoundAt] = []
    copies: list[FoundAt] = []
    known = ""
    depth = end = 0
    for match in _OBJECT.finditer(text):
        raw = match[0]
        gap = text[end : match.start()]
        end = match.end()
        if gap.strip(" \n{"):  # a brace doubled, as templates have it, opens nothing
            depth += gap.count("{") - gap.count("}")
        if raw == known:
            places.append(FoundAt(places[-1].found, match.start(), end))
            continue
        if (found := _decode(raw, key)) is None:
            continue
        if len(copies) < MAX_COPIES and is_copy(found, raw):
            copies.append(FoundAt(found, *match.span()))
            continue
        if depth > 0 or _is_quoted(gap):
            raise UnreadableVerdict("the verdict is inside a quotation or another object")
        if places and repr(found) != repr(places[-1].found):  # unlike ==, it tells 1 from true
            raise UnreadableVerdict("the reply holds two different verdicts")
        start = match.start()
        if gap.rstrip().endswith("["):
            closing = _CLOSING.match(text, end)
            if closing is None or gap.rstrip()[:-1].rstrip().endswith(('"', '":')):
                raise UnreadableVerdict("the verdict is one of a list")
            start, end = start - len(gap) + gap.rindex("["), closing.end()
        known = raw
        places.append(FoundAt(found, start, end))
    return places, copies


def _is_quoted(before: str) -> bool:
    return before.endswith(('"', "'", "“", "‘")) or before.rstrip().endswith('":')


_REASON = re.compile(
    r'("reason\w{0,64}"\s*+:\s*+")(.{0,2000}?)(?="\s*+(?:,\s*+"\w{1,64}"\s*+:|\}))', re.DOTALL
)
_MOST_REASONS = 200
_BARE = re.compile(r'(?<!\\)"|\\$')


def with_quotes_escaped(text: str, key: str) -> str:
    """The text with bare quotes inside its reasons escaped, unless one of them holds the key."""
    if text.count('"reason') > _MOST_REASONS:
        return text
    reasons = _REASON.findall(text)
    if any(f'"{name}"' in reason for _, reason in reasons for name in (key, "score")):
        return text
    return _REASON.sub(lambda found: found[1] + _BARE.sub(r"\\\g<0>", found[2]), text)


def bare_list(text: str, key: str) -> Found | None:
    """A text that is a list of objects and nothing else, but for a code fence; or an object a line."""
    body = re.sub(r"^\s*+```\w*\s|```\s*$", "", text).strip()
    lines = body.splitlines()
    if len(lines) > 1 and all(line[:1] + line[-1:] == "{}" for line in lines):
        body = f"[{','.join(lines)}]"
    if not (body.startswith("[") and body.endswith("]")):
        return None
    raw = f'{{"{key}": {body}}}'
    return _decode(raw, key) if _OBJECT.fullmatch(raw) else None


def is_named_in(text: str, key: str) -> bool:
    """Whether an object in the text, which may be broken or escaped, has the key."""
    return re.search(rf"[\"']{re.escape(key)}\\?[\"']\s*+:", text, re.IGNORECASE) is not None


def encodable(value: Any) -> Any:
    """The value, with lone surrogates replaced where it is text."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


# --- what an object says ------------------------------------------------------------------------------------

_WRAPPER = re.compile(
    r"(?:final|my|overall|json|tool|function)?_?(?:verdict|evaluation|judge?ment|assessment|results?|output"
    r"|response|rating|grade|grading|feedback|arguments|parameters|input|call|criteria|checklist)",
    re.IGNORECASE,
)
"""Names of an object in which a verdict is wrapped. Under any other name it may be somebody else's."""
_SCORE = re.compile(
    r"(?:(?:final|overall|total|adjusted|revised|updated|corrected|actual|true|new)[\s_-]*)?score"
)


def _decode(raw: str, key: str) -> Found | None:
    """A candidate as an object; None where it is another kind of object."""
    folded = key.casefold()
    if folded not in raw.casefold() and "\\u00" not in raw:
        return None
    found = _unique(_decoded_pairs(raw, folded))
    if not found:
        return None
    return verdict_in(found, key)


def verdict_in(found: Found, key: str) -> Found | None:
    """The object itself where it has the key, or the one that it wraps; None where no object in it does."""
    names = [name for name in found if _is_key(name, key)]
    if len(names) > 1:
        raise UnreadableVerdict(f"{names[0][:20]!r} and {names[1][:20]!r} are in one object")
    if not names:
        found = {name: _unpacked(name, value) for name, value in found.items()}
        holders = [name for name, value in found.items() if _holds(value, key)]
        if not holders:
            return None
        inner = found[holders[0]]
        if len(holders) > 1 or not isinstance(inner, dict) or not _WRAPPER.fullmatch(holders[0].strip()):
            raise UnreadableVerdict("the verdict is inside another object")
        return verdict_in(inner, key)
    (name,) = names
    if _holds([value for other, value in found.items() if other != name], key):
        raise UnreadableVerdict("there is a second verdict inside the verdict")
    if name == key:
        return found
    return {other.strip().casefold(): value for other, value in found.items() if other != name} | {
        key: found[name]
    }


def _unpacked(name: str, value: Any) -> Any:
    """The arguments of a tool call, which are JSON in a text; any other value as it is."""
    if not (isinstance(value, str) and value[:1] == "{" and name in ("arguments", "parameters", "input")):
        return value
    pairs = _decoded_pairs(value, "")
    return value if pairs is None else _unique(pairs)


def _is_key(name: str, key: str) -> bool:
    """Whether a key is the one that was asked for, but for its case; a final score is a score."""
    folded = name.strip().casefold()
    if folded == key.casefold():
        return True
    return key == "score" and folded.endswith(key) and _SCORE.fullmatch(folded) is not None


def _holds(value: object, key: str) -> bool:
    """Whether some object in there has the key."""
    if isinstance(value, dict):
        return any(_is_key(name, key) or _holds(inner, key) for name, inner in value.items())
    return isinstance(value, list) and any(_holds(item, key) for item in value)


class _Pairs(list[tuple[str, Any]]):
    """The pairs of an object, repeated keys and all."""


# Not strict about line breaks within strings: they make nothing ambiguous.
_pairs: Any = json.JSONDecoder(object_pairs_hook=_Pairs, strict=False)
_BACKSLASH = re.compile(r'\\(["\\/bfnrt]|u[0-9a-fA-F]{4})?')
_LOOSE = re.compile(
    rf"(?P<double>{_DOUBLE})|(?P<single>{_SINGLE})|(?P<comment>{_COMMENT})|(?P<comma>,(?={_GAP}[\}}\]]))"
    r"|(?P<name>[A-Za-z_]\w*+)(?=\s*+:)|(?P<literal>\b(?i:true|false|none)\b)"
    rf"|(?P<curly>{_CURLY})|(?P<left_out>(?<=[\w\"'\]\}}])\s++(?={_NEXT}))|(?P<space>[^\S \t\r\n])"
    r"|(?P<fraction>-?\d[\d.]{0,9}/\d{1,9})",
    re.DOTALL,
)
_CORRECTION = re.compile(r"(?<!out of )(?<!/)(?<!max )(?<![\d.])\d")
"""A number in a comment that is not the best score."""
_LITERALS = {"true": "true", "false": "false", "none": "null"}


def _decoded_pairs(raw: str, folded: str) -> _Pairs | None:
    """The pairs of an object; None where it is none, and none with this key either."""
    for form in (str, _escaped, _strict):
        try:
            return _pairs.decode(form(raw))  # type: ignore[no-any-return]
        except (ValueError, RecursionError):  # includes numbers of thousands of digits
            continue
    if is_named_in(raw, folded):
        raise UnreadableVerdict("the verdict object is not JSON")
    return None


def _escaped(raw: str) -> str:
    """A backslash that escapes nothing, as in LaTeX or a path, stands for itself."""
    return _BACKSLASH.sub(lambda found: found[0] if found[1] else "\\\\", raw)


def _strict(raw: str) -> str:
    """An object of Python or JavaScript as JSON."""
    return _escaped(_LOOSE.sub(_as_json, raw))


def _as_json(token: re.Match[str]) -> str:
    """How JSON writes this piece of an object."""
    kind, text = token.lastgroup, token[0]
    if kind == "comment" and _CORRECTION.search(text):
        raise UnreadableVerdict("a comment beside the verdict holds another number")
    if kind in ("single", "curly"):
        return '"' + text[1:-1].replace("\\'", "'").replace('\\"', '"').replace('"', '\\"') + '"'
    if kind in ("name", "fraction"):
        return f'"{text}"'
    if kind == "left_out":
        return ", "
    if kind == "space":
        return " "
    return text if kind == "double" else _LITERALS.get(text.casefold(), "")


def _unique(value: Any) -> Any:
    """Pairs as objects, texts encodable. Raises UnreadableVerdict where a key has two values."""
    if isinstance(value, _Pairs):
        found: Found = {}
        for name, inner in value:
            made = _unique(inner)
            if name in found and repr(found[name]) != repr(made):
                raise UnreadableVerdict(f"the key {name[:20]!r} appears twice, with different values")
            found[name] = made
        return found
    if isinstance(value, list):
        return [_unique(item) for item in value]
    return encodable(value)
