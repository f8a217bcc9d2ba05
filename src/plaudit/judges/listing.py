"""The one list of verdicts in a judge's reply, or none: strict, linear, and never a guess.

The list stands under a key of a JSON object, alone, in a code fence or within prose. As for a single verdict
(parse.py): what is broken, quoted, contradicted or there twice is nobody's verdict.
"""

from __future__ import annotations

import json
import re
from typing import Any

from plaudit.errors import UnreadableVerdict
from plaudit.judges.parse import MAX_REPLY, Flat, after_reasoning, check_declined, encodable, nothing_found
from plaudit.types import Reply

VERSION = 1
"""Part of the version of every judge that reads lists: raise it whenever one is read differently."""


def single_list(reply: Reply, *, key: str = "verdicts") -> list[Flat]:
    """The flat objects of the only list in the reply.

    Raises Refused where the judge declined, UnreadableVerdict with what was found everywhere else.
    """
    check_declined(reply)
    text = after_reasoning(reply.text)
    if len(text) > MAX_REPLY:
        raise UnreadableVerdict(f"the reply has {len(text):,} characters; that is no list of verdicts")
    start, end = text.find("{"), text.rfind("}") + 1
    if start < 0 or end <= start or f'"{key}"' not in text:
        raise nothing_found(text, reply, key)
    try:
        found = _json.decode(text[start:end])
    except (ValueError, RecursionError):  # includes numbers of thousands of digits
        cut_off = reply.finish_reason == "length"
        raise UnreadableVerdict(
            "the reply was cut off before its verdicts were complete"
            if cut_off
            else "the reply is not one JSON object with a list of verdicts"
        ) from None
    _check_around(text[:start], text[end:], reply)
    rows = found.get(key)
    if not isinstance(rows, list):
        raise UnreadableVerdict(f"{key!r} is not a list at the top of the reply")
    return [_flat(row) for row in rows]


_STATED = re.compile(r'score[\W_]{1,6}-?\d|"score|</think>', re.I)


def _check_around(before: str, after: str, reply: Reply) -> None:
    if before.endswith(('"', "'", "“", "‘")) or before.rstrip().endswith(("[", '":')):
        raise UnreadableVerdict("the verdicts stand inside a quotation or another list")
    if _STATED.search(before) or _STATED.search(after):
        raise UnreadableVerdict("the prose around the verdicts states a score, too")
    if reply.finish_reason == "length" and after.strip().strip("`"):
        raise UnreadableVerdict("the reply goes on after the verdicts and was cut off")


def _flat(row: object) -> Flat:
    if not isinstance(row, dict) or any(isinstance(value, dict | list) for value in row.values()):
        raise UnreadableVerdict("an entry of the list is not a flat JSON object")
    return {name: encodable(value) for name, value in row.items()}


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise UnreadableVerdict("a key stands twice in one object of the reply")
    return found


# Not strict about line breaks within strings: they make nothing ambiguous.
_json: Any = json.JSONDecoder(object_pairs_hook=_unique, strict=False)
