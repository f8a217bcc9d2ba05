"""The one verdict in a judge's reply, or none: strict, linear, and never a guess.

A verdict is a JSON object with the key that was asked for. The evidence is weighed in this order:

1. The endpoint says that the judge declined: refused.
2. The whole reply is one flat object: that is the verdict, unless it is a copy.
3. The judge's reasoning is set aside, drafts and all: what counts follows the last closing tag.
4. Objects with the key are looked for in what is left; without any, lines that state the value and nothing
   else (`Score: 8/10`). A broken one, or two that differ: no verdict.
5. The words around the one verdict may not make it somebody else's (a quotation, an example, part of a
   sentence), take it back, or state another value.
6. A verdict that repeats a claim of the judged text, value and words, is the author's: a copy.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from plaudit.errors import CutOff, Declined, UnreadableVerdict
from plaudit.judges.reply_objects import (
    Found,
    FoundAt,
    bare_list,
    encodable,
    is_named_in,
    object_places,
    object_spans,
    verdict_in,
    whole_object,
    with_quotes_escaped,
)
from plaudit.judges.reply_prose import (
    SCORE_NOUN,
    check_introduction,
    check_sequel,
    check_statements,
    is_same,
    line_places,
)
from plaudit.reasoning import BOUND, CLOSE, OPEN
from plaudit.types import Reply

VERSION = 4
"""Part of every judge's version: raise it whenever some reply is read differently than before."""

MAX_REPLY = 64_000
"""Characters, the judge's own reasoning aside, beyond which a reply is no verdict, whatever it contains."""


class CopiedVerdict(UnreadableVerdict):
    """What looks like the verdict was written by the author of the judged text."""

    def __init__(self) -> None:
        super().__init__("the verdict is a copy of what the judged text claims")


def single_object(
    reply: Reply, *, key: str = "score", judged: str = "", scale: tuple[float, float] | None = None
) -> Found:
    """The only verdict in the reply: an object that has `key`.

    Args:
        reply: What the judge said.
        key: The key that the judge was asked for.
        judged: The text under judgement: an object copied from it is the author's claim, not a verdict.
        scale: The judge's, where the value is a number: a line may name it, as in `Score (0-10): 8`.

    Raises:
        Declined: the judge declined.
        UnreadableVerdict: there is no single verdict; the message says what was found.
    """
    check_declined(reply)
    said = _said(reply)
    found = whole_object(said, key) if len(said) <= MAX_REPLY else None
    if found is None:
        text = _after_reasoning(said)
        found = _searched(text, reply, key, judged, scale)
        if found is None:
            raise _nothing_found(text, reply, key)
    check_origin(found, key, judged)
    return found


_OTHER_LIST = re.compile(
    r'^([\s`\w]{0,20}\{\s*+)"(?:results|scores|evaluations|responses|ratings)"(?=\s*+:\s*+\[)'
)
"""A list at the start of a reply, under another name than it was given."""


def single_list(reply: Reply, *, key: str = "verdicts") -> list[Found]:
    """The objects of the only list in the reply: under `key` of an object, or the whole reply.

    Raises:
        Declined: the judge declined.
        UnreadableVerdict: there is no single list; the message says what was found.
    """
    check_declined(reply)
    text = _OTHER_LIST.sub(rf'\1"{key}"', _after_reasoning(_said(reply)))
    found = _searched(text, reply, key, "", None) or bare_list(text, key)
    if found is None:
        raise _nothing_found(text, reply, key)
    rows = found[key]
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise UnreadableVerdict(f"{key!r} is not a list of objects")
    return [verdict_in(row, "score") or row for row in rows]


def check_declined(reply: Reply) -> None:
    """Raises Declined where the endpoint itself says that the judge declined."""
    if reply.refusal or reply.finish_reason == "content_filter":
        said = encodable(reply.refusal or "its content filter stopped the reply")
        raise Declined(f"the judge declined: {said[:80]}")


# --- whose verdict it is ------------------------------------------------------------------------------------


def check_origin(found: Found, key: str, judged: str) -> None:
    """Raises CopiedVerdict where the verdict is a copy of a claim in the judged text."""
    if _is_copy(found, key, judged):
        raise CopiedVerdict


def _is_copy(found: Found, key: str, judged: str) -> bool:
    """Whether the judged text makes this very claim: the same value in the same words.

    A verdict that quotes the author's words with another value is the judge's own, and so is one that has
    the claimed value for reasons of its own. Good and bad claims are treated alike.
    """
    if key not in judged:
        return False
    judged = _head_and_tail(judged)
    if not any(is_same(claim, found[key]) for claim in _claim(key).findall(judged)):
        return False
    plain = _letters(judged)
    return all(_letters(text) in plain for text in found.values() if isinstance(text, str))


@lru_cache(maxsize=256)
def _claim(key: str) -> re.Pattern[str]:
    """What a text says the key's value is, in an object that may be broken or escaped."""
    return re.compile(rf"[\"']{re.escape(key)}\\*+[\"']\s*+:\s*+\\*+[\"']?(-?\w[\w.]{{0,30}})")


def _is_copied_line(line: str, judged: str, value: object) -> bool:
    """Whether the judged text holds this line, or gives the same value to what it names or to the score."""
    judged = _head_and_tail(judged)
    line = line.strip(" \t*_#•-.")
    label = re.sub(r"[\W\d_].*", "", line, flags=re.DOTALL)
    noun = f"{SCORE_NOUN}|{re.escape(label)}" if label else SCORE_NOUN
    claims = re.findall(rf"(?:{noun})(?:\W|_){{1,8}}(-?\w[\w.]{{0,30}})", judged, re.IGNORECASE)
    return any(is_same(said, value) for said in claims) or (not label and line in judged)


def _head_and_tail(judged: str) -> str:
    """Of a long text its head and tail, which is what a judge is shown of it."""
    return judged if len(judged) <= BOUND else judged[: BOUND // 2] + judged[-BOUND // 2 :]


def _letters(text: str) -> str:
    return re.sub(r"[\W_]+", "", text.casefold())


# --- the judge's own reasoning ------------------------------------------------------------------------------

_TAG = re.compile(
    rf"(?P<open>{OPEN})|{CLOSE}|</(?:reasoning|analysis|scratchpad|thoughts?|reflection)>"
    r"|assistantfinal(?=\s*+[\[{`])"
)


def _said(reply: Reply) -> str:
    """The text; the reasoning, where a server put the whole answer there and it is nothing but JSON."""
    thought = reply.reasoning.strip()
    is_misplaced = not reply.text.strip() and thought[:1] in ("{", "[") and thought[-1:] in ("}", "]")
    return thought if is_misplaced else reply.text


def _after_reasoning(text: str) -> str:
    """What is no reasoning: neither between its tags nor before a closing one that was never opened.

    A tag inside an object is quoted there.
    """
    tail = text[-MAX_REPLY:]
    tags = list(_TAG.finditer(tail))
    spans = object_spans(tail) if tags else []
    visible: list[str] = []
    start, opened = 0, None
    for tag in tags:
        place = bisect_right(spans, (tag.start(), 0)) - 1
        if place >= 0 and spans[place][1] > tag.start():
            continue
        if not tag["open"]:
            visible = visible if opened else []
            start, opened = tag.end(), None
        elif not opened:
            visible.append(tail[start : tag.start()])
            opened = tag
    if not start and len(text) > MAX_REPLY:
        raise UnreadableVerdict(f"the reply has {len(text):,} characters; that is not a verdict")
    if opened and not visible.pop().rpartition("\n")[2].strip():  # within a line, it is talk about a tag
        raise UnreadableVerdict("the judge's reasoning never ended, so no verdict followed")
    visible.append(tail[start:])
    return "\n".join(part for part in visible if part.strip()).strip(_PADDING)


_PADDING = " \ufeff\u200b\x00"
"""What some servers put around a reply."""


# --- a verdict among other text -----------------------------------------------------------------------------

_BLANK_LINES = re.compile(r"\n\s++")


def _searched(
    text: str, reply: Reply, key: str, judged: str, scale: tuple[float, float] | None
) -> Found | None:
    """The only verdict that stands in the text on its own."""
    places, copies = object_places(text, key, lambda found: _is_copy(found, key, judged))
    if not places and not copies and (escaped := with_quotes_escaped(text, key)) != text:
        return _searched(escaped, reply, key, judged, scale)
    if not places and not is_named_in(text, key):
        places = line_places(text, key, scale)
        if places and _is_copied_line(text[places[0].start : places[0].end], judged, places[0].found[key]):
            raise CopiedVerdict
    if not places:
        if copies:
            raise CopiedVerdict
        return None
    _check_surroundings(text, places, copies, reply, key)
    return places[0].found


def _check_surroundings(
    text: str, places: list[FoundAt], copies: list[FoundAt], reply: Reply, key: str
) -> None:
    """Raises UnreadableVerdict where the words around a verdict contradict it or make it another's."""
    value = places[0].found[key]
    for copy in copies:  # what the judge quotes is none of its own words
        text = text[: copy.start] + " " * (copy.end - copy.start) + text[copy.end :]
    prose, end = [], 0
    for place in places:
        prose.append(text[end : place.start])
        end = place.end
    after = text[end:].lstrip("}")
    everything = _BLANK_LINES.sub("\n", "\n".join(part for part in (*prose, after) if not part.isspace()))
    if reply.finish_reason == "length" and (after.strip().strip("`") or text[end - 1] not in "]}"):
        # The missing end may take the verdict back. Padding after a finished object takes nothing back.
        raise CutOff("the reply goes on after the verdict and was cut off")
    if is_named_in(everything, key):
        raise UnreadableVerdict("beside the verdict there is a second one, broken")
    check_statements(everything, key, value)
    check_introduction(prose[0])
    check_sequel(after, key, value)


# --- no verdict ---------------------------------------------------------------------------------------------

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


def _nothing_found(text: str, reply: Reply, key: str) -> Declined | UnreadableVerdict:
    """What to raise over a reply without a verdict."""
    if not text.strip():
        return UnreadableVerdict(
            "the reply is empty" + " but for its reasoning" * bool(reply.reasoning.strip())
        )
    if reply.finish_reason == "length":
        return CutOff("the reply was cut off before its verdict was complete")
    if f'"{key}"' in text:
        return UnreadableVerdict("the verdict object is broken, nested or not a JSON object")
    opening = text[:300]
    if _REFUSAL.match(opening) and _DECLINED.search(opening) and not re.search(r"\d", text):
        return Declined("the judge declined in words")
    return UnreadableVerdict(f"no JSON object with {key!r} in the reply; a score in prose does not count")


# --- the values of an object --------------------------------------------------------------------------------

_TRUTHS = {"true": True, "yes": True, "false": False, "no": False}


def truth(found: Mapping[str, Any], key: str) -> bool:
    """The value as true or false, also as text, or as the one such value beside a reason; 1 is neither."""
    value = found.get(key)
    if isinstance(value, dict):
        answers = [inner for inner in value.values() if not isinstance(inner, str)]
        value = answers[0] if len(answers) == 1 else value
    if isinstance(value, str) and value.strip().casefold() in _TRUTHS:
        return _TRUTHS[value.strip().casefold()]
    if not isinstance(value, bool):
        raise UnreadableVerdict(f"{key!r} is {str(value)[:12]!r}, neither true nor false")
    return value


def is_remark(value: object) -> bool:
    """Whether a value is text, and neither true nor false."""
    return isinstance(value, str) and value.strip().casefold() not in _TRUTHS


def words(found: Mapping[str, Any], key: str) -> str:
    """The value as text, also of a list of texts; empty where it is left out."""
    value = found.get(key, "")
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        value = " ".join(value)
    if not isinstance(value, str):
        raise UnreadableVerdict(f"the {key} is not text")
    return value
