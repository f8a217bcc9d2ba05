"""The one object in a judge's reply, or none: strict, linear, and never a guess.

A verdict is a flat JSON object. It may stand alone, in a code fence or within prose, as long as it is the
only one. What is broken, nested, quoted, contradicted or copied from the judged text gives no verdict: in
each of these cases somebody other than the judge may have written the number.
"""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

from plaudit.errors import Refused, UnreadableVerdict
from plaudit.types import Reply

VERSION = 1
"""Part of every judge's version: raise it whenever some reply is read differently than before."""

MAX_REPLY = 64_000
"""Characters, the judge's own reasoning aside, beyond which a reply is no verdict, whatever it contains."""


class CopiedVerdict(UnreadableVerdict):
    """What looks like the verdict was written by the author of the judged text."""


Flat = dict[str, str | int | float | bool | None]


def single_object(reply: Reply, *, key: str = "score", judged: str = "") -> Flat:
    """The only object in the reply that has `key`.

    `judged` is the text under judgement: an object copied from it is the author's claim, not a verdict.
    Raises Refused where the judge declined, UnreadableVerdict with what was found everywhere else.
    """
    text = reply.text
    check_declined(reply)
    found = _whole(text) if len(text) <= MAX_REPLY else None
    if found is None or key not in found:
        return _search(after_reasoning(text), reply, key, judged)
    if f'"{key}"' in judged and len(found) > 1:
        check_origin(found, text.strip(), judged)
    return found


def check_declined(reply: Reply) -> None:
    """Raises Refused where the endpoint itself says that the judge declined."""
    if reply.refusal or reply.finish_reason == "content_filter":
        said = encodable(reply.refusal or "its content filter stopped the reply")
        raise Refused(f"the judge declined: {said[:80]}")


def check_origin(found: Flat, raw: str, judged: str) -> None:
    """An object in the judged text whose every word the verdict repeats was written by the author."""
    words = [value for value in found.values() if isinstance(value, str) and len(value) >= 8]
    if raw in judged or (words and all(value in judged for value in words)):
        raise CopiedVerdict("the verdict is a copy of an object in the judged text")


# --- the usual case: the reply is the object ----------------------------------------------------------------

_flat = msgspec.json.Decoder(Flat)


def _whole(text: str) -> Flat | None:
    """The reply as one flat object without repeated keys; None sends it to the slow path."""
    try:
        found = _flat.decode(text)
    except (ValueError, RecursionError):  # no JSON, nested, or not encodable
        return None
    if "\\u00" in text:  # a key may be spelt in escapes, so counting would miss its double
        return None
    for key in found:
        if text.count(f'"{key}"') != 1:
            return None
    return found


# --- an object among other text -----------------------------------------------------------------------------

# Possessive throughout, so no backtracking. Linear over a whole text, too: two attempts that agree on what is
# inside a string never read the same text, since a brace outside a string ends the first; and there are only
# two ways to disagree.
_STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_OBJECT = re.compile(
    rf'\{{(?=\s*+")(?:\s*+{_STRING}\s*+:\s*+(?:{_STRING}|[^\s",:{{}}\[\]]++)\s*+(?:,(?=\s*+")|(?=\}})))*+\}}',
    re.DOTALL,
)
_STATED = re.compile(
    r"^[\W_]{0,8}(?:(?:final|overall|total|my)\s)?score[\W_]{1,6}(-?\d+(?:\.\d+)?)", re.I | re.M
)
_REFUSAL = re.compile(
    r"\W*(?:sorry\b|as an ai\b|(?:i['’]m|i am)\s(?:very |so |truly )?sorry"
    r"|(?:i['’]m|i am|we are)\s(?:unable|not able|not comfortable)"
    r"|(?:i|we)\s(?:can['’]?t|cannot|can not|won['’]?t|will not|must decline))\b",
    re.I,
)
_DECLINED = re.compile(
    r"\b(?:help|assist|comply|fulfil|fulfill|continue|provide|engage|evaluate|judge|score|rate|grade"
    r"|decline|request|do (?:that|this))\b",
    re.I,
)


def _search(text: str, reply: Reply, key: str, judged: str) -> Flat:
    """The only object with `key` that stands in the text on its own."""
    if len(text) > MAX_REPLY:
        raise UnreadableVerdict(f"the reply has {len(text):,} characters; that is no verdict")
    verdict: Flat | None = None
    seen = ""
    prose: list[str] = []
    depth = end = 0
    for match in _OBJECT.finditer(text):
        raw = match[0]
        prose.append(gap := text[end : match.start()])
        end = match.end()
        depth += gap.count("{") - gap.count("}")
        if raw == seen or (candidate := _decode(raw, key)) is None:
            continue
        if depth > 0 or gap.endswith(('"', "'", "“", "‘")) or gap.rstrip().endswith(("[", '":')):
            raise UnreadableVerdict("the verdict stands inside a quotation or another object")
        if f'"{key}"' in judged:
            check_origin(candidate, raw, judged)
        if verdict is not None and repr(candidate) != repr(verdict):  # unlike ==, it tells 1 from true
            raise UnreadableVerdict("the reply holds two different verdicts")
        verdict, seen = candidate, raw
    prose.append(text[end:])
    if verdict is None:
        raise nothing_found(text, reply, key)
    if reply.finish_reason == "length" and prose[-1].strip().strip("`"):
        # The missing end may take the verdict back. Padding after a finished object takes nothing back.
        raise UnreadableVerdict("the reply goes on after the verdict and was cut off")
    _contradicted("\n".join(prose), key, verdict[key])
    return verdict


def _contradicted(prose: str, key: str, value: object) -> None:
    if "</think>" in prose:
        raise UnreadableVerdict("the verdict may belong to the judge's reasoning")
    if re.search(rf'"{key}\\?"\s*+:', prose):
        raise UnreadableVerdict("beside the verdict there is a second one, broken")
    for stated in _STATED.findall(prose):
        if isinstance(value, (int, float)) and float(stated) != value:
            raise UnreadableVerdict(f"the prose says {stated[:12]}, the verdict {str(value)[:12]}")


def _decode(raw: str, key: str) -> Flat | None:
    """A candidate as an object; None where it is another kind of object."""
    if key not in raw and "\\u00" not in raw:
        return None
    try:
        pairs = _pairs.decode(raw)
    except ValueError:  # includes numbers of thousands of digits
        if f'"{key}"' in raw:
            raise UnreadableVerdict("the verdict object is not JSON") from None
        return None
    found: Flat = {}
    for name, value in pairs:
        if name in found and repr(found[name]) != repr(value):
            raise UnreadableVerdict(
                f"the key {name[:20]!r} stands twice in the verdict, with different values"
            )
        found[name] = encodable(value)
    return found if key in found else None


# Not strict about line breaks within strings: they make nothing ambiguous.
_pairs: Any = json.JSONDecoder(object_pairs_hook=list, strict=False)


def encodable(value: Any) -> Any:
    """The value, with lone surrogates replaced where it is text."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def after_reasoning(text: str) -> str:
    """The reply without the judge's own reasoning: from `<think>`, or from the start, to `</think>`."""
    if text.lstrip().startswith("<think>"):
        _, closed, rest = text.partition("</think>")
        if not closed:
            raise UnreadableVerdict("the judge's reasoning never ended, so no verdict followed")
        return rest
    _, closed, rest = text.partition("\n</think>")  # at a line's start, so not within a quoted reason
    return rest if closed else text


def nothing_found(text: str, reply: Reply, key: str) -> Refused | UnreadableVerdict:
    """What to raise over a reply without a verdict."""
    if not text.strip():
        return UnreadableVerdict("the reply is empty")
    if reply.finish_reason == "length":
        return UnreadableVerdict("the reply was cut off before its verdict was complete")
    if f'"{key}"' in text:
        return UnreadableVerdict("the verdict object is broken, nested or not a flat JSON object")
    opening = text[:300]
    if _REFUSAL.match(opening) and _DECLINED.search(opening) and not re.search(r"\d", text):
        return Refused("the judge declined in words")
    return UnreadableVerdict(f"no JSON object with {key!r} in the reply; a score in prose does not count")


# --- the values of an object --------------------------------------------------------------------------------


def truth(found: Flat, key: str) -> bool:
    """The value as true or false; "true", 1 and yes are neither."""
    value = found.get(key)
    if not isinstance(value, bool):
        raise UnreadableVerdict(f"{key!r} is {str(value)[:12]!r}, neither true nor false")
    return value


def words(found: Flat, key: str) -> str:
    """The value as text; empty where it is left out."""
    value = found.get(key, "")
    if not isinstance(value, str):
        raise UnreadableVerdict(f"the {key} is not text")
    return value
