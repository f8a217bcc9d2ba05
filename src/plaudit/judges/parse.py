"""The one verdict in a judge's reply, or none: strict, linear, and never a guess.

A verdict is a JSON object with the key that was asked for. The evidence is weighed in this order:

1. The endpoint says that the judge declined: refused.
2. The whole reply is one flat object: that is the verdict, unless it is a copy.
3. The judge's reasoning is set aside, drafts and all: what counts follows the last closing tag.
4. Objects with the key are looked for in what is left; without any, lines that state the value and nothing
   else (`Score: 8/10`). A broken one, or two that differ: no verdict.
5. The words around the one verdict may not make it somebody else's (a quotation, an example, part of a
   sentence), take it back, contradict it, or state another value.
6. A verdict that the judged text holds, in whatever form, or whose value and words it claims, is a copy: the
   author's own.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Mapping
from functools import cached_property, lru_cache
from typing import Any

from plaudit.errors import CutOff, Declined, UnreadableVerdict
from plaudit.judges.numerals import narrow
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
    topic_of,
)
from plaudit.reasoning import BOUND, CLOSE, OPEN
from plaudit.types import Reply

VERSION = 7
"""Part of every judge's version: raise it whenever some reply is read differently than before."""

MAX_REPLY = 64_000
"""Characters, the judge's own reasoning aside, beyond which a reply is no verdict, whatever it contains."""


TOPIC = 4_000
"""Characters of a text that tell what it is about."""


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
        found = _searched(_named(text, key), reply, key, Author(judged, key), scale)
        if found is None:
            raise _nothing_found(text, reply, key)
    elif key in judged and Author(judged, key).wrote(found, said):
        raise CopiedVerdict
    if scale is not None and not found.keys().isdisjoint(_SCALES):
        _check_scale(found, scale)
    return found


_SCALES = ("scale", "range", "max", "max_score", "maximum", "out_of")


def _check_scale(found: Found, scale: tuple[float, float]) -> None:
    """Raises UnreadableVerdict where the verdict says that it is on another scale."""
    for name in _SCALES:
        numbers = re.findall(r"\d+(?:\.\d+)?", str(found.get(name, "")))
        if numbers and float(numbers[-1]) != scale[1]:
            raise UnreadableVerdict(f"the verdict says that its {name} is {str(found[name])[:20]!r}")


_NAMES = rf"{SCORE_NOUN}|评分|得分|分数|点数|評価|점수|スコア|puntuación|bewertung|punteggio|оценка"
_OTHER_NAME = re.compile(rf'"(?:{_NAMES})"(?=\s*+:\s*+["\d])', re.IGNORECASE)
"""The score under another name, where the reply is the object and nothing else."""


def _named(text: str, key: str) -> str:
    """The text with the key that was asked for, in place of another word for it."""
    body = re.sub(r"^```\w*", "", text).rstrip("`").strip()
    is_other = key == "score" and "score" not in body.casefold() and body[:1] + body[-1:] == "{}"
    if is_other and len(_OTHER_NAME.findall(body)) == 1:
        return _OTHER_NAME.sub('"score"', body)
    return text


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
    found = _searched(text, reply, key, Author("", key), None) or bare_list(text, key)
    if found is None:
        raise _nothing_found(text, reply, key)
    rows = found[key]
    if isinstance(rows, dict):  # by id
        rows = [{"id": name, **row} if isinstance(row, dict) else row for name, row in rows.items()]
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise UnreadableVerdict(f"{key!r} is not a list of objects")
    return [verdict_in(row, "score") or row for row in rows]


def check_declined(reply: Reply) -> None:
    """Raises Declined where the endpoint itself says that the judge declined."""
    if reply.refusal or reply.finish_reason == "content_filter":
        said = encodable(reply.refusal or "its content filter stopped the reply")
        raise Declined(f"the judge declined: {said[:80]}")


# --- whose verdict it is ------------------------------------------------------------------------------------


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
        self._judged = judged

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
        names = f"{SCORE_NOUN}|{re.escape(label)}" if re.search(r"\w", label) else SCORE_NOUN
        claims = set(_claims(names).findall(self._text))
        return self._holds(line) or any(is_same(claim, value) for claim in claims)

    def topic(self, found: Found) -> set[str]:
        """What the judged text and the verdict's reason are about, by their words."""
        return topic_of(self._judged[:TOPIC], *(text for text in found.values() if isinstance(text, str)))

    def _holds(self, words: str) -> bool:
        """Whether the text has these words and numbers, and no digit more."""
        return re.search(rf"{re.escape(_letters(words))}(?!\d|\.\d)", self._letters) is not None

    @property
    def _speaks_of_it(self) -> bool:
        return self.key in self._judged or _SCORED.search(self._judged) is not None

    @cached_property
    def _text(self) -> str:
        text = _unpacked(self._judged)
        return _OTHER_NAME.sub('"score"', text) if self.key == "score" else text

    @cached_property
    def _letters(self) -> str:
        return _letters(self._text)


_SCORED = re.compile(_NAMES, re.IGNORECASE)


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
    return _unpacked("\n".join(part for part in visible if part.strip()).strip(_PADDING))


_PADDING = " \ufeff\u200b\x00"
"""What some servers put around a reply."""


_ARGUMENT = re.compile(
    r"<arg_key>\s*+(\w{1,64})\s*+</arg_key>\s*+<arg_value>([^<]*+)</arg_value>"
    r"|<parameter=(\w{1,64})>([^<]*+)</parameter>"
)
_CALLED = re.compile(r"<tool_call>\s{0,4}[\w.-]{1,60}|<function=[\w.-]{1,60}>")
_FORMAT = re.compile(r"</?(?:p|b|i|em|strong|br|h[1-6]|div|span|ul|ol|li)\s?/?>", re.IGNORECASE)
_EVENT = re.compile(r"^data: ?(?:\[DONE\])?", re.MULTILINE)


MOST_TOKENS = 4
"""Control tokens that may end a reply."""


def _unpacked(text: str) -> str:
    """The text without what servers put around it: control tokens at its end, events, tags of arguments."""
    text = _FORMAT.sub("", narrow(text)).strip()
    for _ in range(MOST_TOKENS):
        place = text.rfind("<") if text.endswith("|>") else -1
        if place < 0 or not text.startswith("<|", place) or text[place - 1 : place].isalpha():
            break
        text = text[:place].rstrip()
    if text.startswith("data:"):
        text = _EVENT.sub("", text).strip()
    if "<arg_key>" not in text and "<parameter=" not in text:
        return text
    return _ARGUMENT.sub(r"<\1\3>\2\4</\1\3>", _CALLED.sub("", text))


# --- a verdict among other text -----------------------------------------------------------------------------

_BLANK_LINES = re.compile(r"\n\s++")


def _searched(
    text: str, reply: Reply, key: str, author: Author, scale: tuple[float, float] | None
) -> Found | None:
    """The only verdict that stands in the text on its own."""
    places, copies = object_places(text, key, author.wrote)
    if not places and not copies and (escaped := with_quotes_escaped(text, key)) != text:
        return _searched(escaped, reply, key, author, scale)
    if not places and not is_named_in(text, key):
        text = re.sub(rf"(<{re.escape(key)}>[^<]{{1,60}}</{re.escape(key)}>)", r"\n\1\n", text)
        places = line_places(text, key, scale)
        if places and author.wrote_line(text[places[0].start : places[0].end], places[0].found[key]):
            raise CopiedVerdict
    if not places:
        if copies:
            raise CopiedVerdict
        return None
    for copy in copies:  # what the judge quotes is none of its own words
        text = text[: copy.start] + " " * (copy.end - copy.start) + text[copy.end :]
    _check_surroundings(text, places, reply, author, scale)
    return places[0].found


def _check_surroundings(
    text: str, places: list[FoundAt], reply: Reply, author: Author, scale: tuple[float, float] | None
) -> None:
    """Raises UnreadableVerdict where the words around a verdict contradict it or make it another's."""
    key = author.key
    value = places[0].found[key]
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
    check_statements(everything, key, value, scale)
    check_introduction(prose[0])
    check_sequel(after, key, value, author.topic(places[0].found))


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
