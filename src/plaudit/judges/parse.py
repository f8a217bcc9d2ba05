"""The one verdict in a judge's reply, or none: linear, and never a guess.

1. The endpoint says that the judge declined: refused. The whole reply is one flat object: it is the verdict.
2. What is not the judge's own final word is taken away: its reasoning, drafts and all, what servers and tools
   put around it, and what it copies from the judged text.
3. Statements of what was asked for are collected: objects in whatever dress and calls, else lines.
4. A statement that its words make somebody else's, an example or one of several is none. Of those left all
   must agree. They stand unless the judge turns round behind them or states another: conditions, quotations,
   parts and what is said of the response do neither.
5. A verdict that the judged text holds, in whatever form, or whose value and words it claims, is a copy: the
   author's own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from plaudit.errors import CutOff, Declined, UnreadableVerdict
from plaudit.judges.reply_author import Author, CopiedVerdict
from plaudit.judges.reply_objects import Found, FoundAt, Reader, encodable, unique, verdict_in, whole_object
from plaudit.judges.reply_prose import (
    TRUTHS,
    Ends,
    Stated,
    bare,
    check_introduction,
    check_sequel,
    is_doubtful,
    is_others,
    is_same,
    sentences,
    stated,
    with_rows_as_lines,
)
from plaudit.judges.reply_text import MAX_REPLY, own_words, said_by
from plaudit.types import Reply

VERSION = 10
"""Part of every judge's version: raise it whenever some reply is read differently than before."""

MAX_COPIES = 3
"""Objects of the judged text that a reply may quote beside its own; each is looked for in the whole text."""
MAX_STATEMENTS = 100
"""Lines and sentences with a value of which one is looked for; a verdict has few, a table has many."""


def single_object(reply: Reply, *, key: str = "score", judged: str = "", scale: Ends = None) -> Found:
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
    said = said_by(reply)
    fenced = _FENCED.fullmatch(said) if said.startswith("```") and len(said) <= MAX_REPLY else None
    found = whole_object(fenced[1] if fenced else said, key) if len(said) <= MAX_REPLY else None
    if found is None:
        text = own_words(said)
        if _HEADLESS.match(text):  # the template wrote the brace
            text = "{" + text
        found = VerdictSearch(text, reply, key, Author(judged, key), scale).verdict()
    elif key in judged and Author(judged, key).wrote(found, said):
        raise CopiedVerdict
    _check_reason(found, key, scale)
    if scale is not None and not found.keys().isdisjoint(_SCALES):
        _check_scale(found, scale)
    return found


def _check_reason(found: Found, key: str, scale: Ends) -> None:
    """Raises UnreadableVerdict where the verdict's own reason states another score."""
    reason = found.get("reason")
    if key != "score" or not isinstance(reason, str) or not ("core" in reason and _CONCLUDES.search(reason)):
        return
    for other in (stated(sentence, key, scale) for sentence in sentences(reason)):
        if other and other.is_named and not is_same(other.value, found[key]):
            raise UnreadableVerdict(f"its reason says {other.value[:12]}, the verdict {str(found[key])[:12]}")


_CONCLUDES = re.compile(r"\b(?:my|final|overall|total) score\b|\bscore is therefore\b", re.IGNORECASE)
_FENCED = re.compile(r"`{3,6}\w{0,10}\s*+(\{.*\})\s*`{3,6}\s*", re.DOTALL)
_HEADLESS = re.compile(r"\"\w{1,64}\"\s*+:\s*+\S")
_SCALES = ("scale", "range", "max", "max_score", "maximum", "out_of")


def _check_scale(found: Found, scale: tuple[float, float]) -> None:
    """Raises UnreadableVerdict where the verdict says that it is on another scale."""
    for name in _SCALES:
        numbers = re.findall(r"\d+(?:\.\d+)?", str(found.get(name, "")))
        if numbers and float(numbers[-1]) != scale[1]:
            raise UnreadableVerdict(f"the verdict says that its {name} is {str(found[name])[:20]!r}")


def check_declined(reply: Reply) -> None:
    """Raises Declined where the endpoint itself says that the judge declined."""
    if reply.refusal or reply.finish_reason == "content_filter":
        said = encodable(reply.refusal or "its content filter stopped the reply")
        raise Declined(f"the judge declined: {said[:80]}")


# --- a verdict among other text -----------------------------------------------------------------------------

_BLANK_LINES = re.compile(r"\n\s++")
_NO_WORDS = re.compile(
    r"^[ \t]{0,9}(?:>.*|(?:`{3,6}|~{3,6})(?:ya?ml|text|markdown|md|xml|toml|json5?)?[ \t]{0,9})$",
    re.MULTILINE,
)
"""Lines that are none of the judge's words: quotations, and the ends of code."""


def is_named_in(text: str, key: str) -> bool:
    """Whether an object in the text, which may be broken or escaped, has the key."""
    return re.search(rf"[\"']{re.escape(key)}\\?[\"']\s*+:", text, re.IGNORECASE) is not None


_QUOTED_KEY = re.compile(r"[{,]\s*[\"']?(?:score|winner|equivalent)[\"']?\s*:", re.IGNORECASE)
_CODE_LINE = re.compile(r"^\s*(?:print|return|json\.)[^\n]{0,80}\n?")
"""Code behind an object that is assigned to a name."""
_CODE = re.compile(r"(?:^|\n)[ \t]*\[?(?:(?:return|const|let|var|await)\s+|[\w.]{1,60}\s?(?:\(|=(?!=))\s*)+$")
"""Code before an object that is all there is on its line."""
_QUOTE_OPENED = re.compile(r"(?<![^\n])[ \t]*[\"'“‘„«]{1,3}\s*$")
_QUOTE_CLOSED = re.compile(r"\s*[\"'”’“»]{1,3}[ \t]*(?:\n|$)")
"""Quotation marks around nothing but an object, which quote nobody."""
_INSIDE = re.compile(r"(?:[\"'“‘]|~~|<!-- ?|\w\(|(?://|#)[ \t]*)$")
"""What begins a quotation, a comment or a call in the middle of a sentence."""
_TEMPLATE = re.compile(
    r"\W{0,3}(?:<[^<>]*>|\.{3}|…|(?:your |an? )?(?:int(?:eger)?|number|score)|[NX_])\W{0,3}"
)
"""What stands for a value."""


def around(text: str, places: Sequence[FoundAt | Stated]) -> list[str]:
    """What stands before, between and behind some places of a text."""
    ends, starts = (place.end for place in places), (place.start for place in places)
    return [text[end:start] for end, start in zip((0, *ends), (*starts, len(text)), strict=True)]


class VerdictSearch:
    """The search for the only verdict that stands in a text on its own."""

    def __init__(self, text: str, reply: Reply, key: str, author: Author, scale: Ends) -> None:
        self.text, self.reply, self.key, self.author, self.scale = text, reply, key, author, scale
        self.is_line = False

    def verdict(self) -> Found:
        """The verdict. Raises UnreadableVerdict or Declined where there is none."""
        places, copies = self._objects()
        for place in copies:  # what the judge quotes is none of its own words
            self.text = self.text[: place.start] + " " * (place.end - place.start) + self.text[place.end :]
        if not places:
            places = [] if is_named_in(self.text, self.key) else self._lines()
        if not places:
            if copies:
                raise CopiedVerdict
            raise nothing_found(self.text, self.reply, self.key)
        self.check_surroundings(places)
        return places[-1].found

    def _objects(self) -> tuple[list[FoundAt], list[FoundAt]]:
        """Objects with the key that are the judge's own, and those that it quotes."""
        places: list[FoundAt] = []
        quoted: list[FoundAt] = []
        others: list[FoundAt] = []
        since = 0
        for place in self._candidates(quoted):
            is_known = bool(places) and place.found is places[-1].found
            if len(others) > MAX_STATEMENTS:
                raise UnreadableVerdict("the reply holds too many verdicts")
            is_example = bool(others) and repr(place.found) == repr(others[-1].found)  # and given again
            if not is_known and (is_example or self._is_others(place, since)):
                others.append(place)
            elif (
                not places or is_known or repr(place.found) == repr(places[-1].found)
            ):  # unlike ==, it tells 1 from true
                places.append(place)
            else:
                raise UnreadableVerdict("the reply holds two different verdicts")
            since = place.end
        if others and not places:
            self.check_own(others[0], 0)
        if any(place.start > places[-1].start and place.found != places[-1].found for place in others):
            raise UnreadableVerdict("the reply holds two different verdicts")
        return places, quoted + others

    def _candidates(self, copies: list[FoundAt]) -> Iterator[FoundAt]:
        """Objects with the key, but for copies from the judged text."""
        text, reader = self.text, Reader(self.text)
        known, depth, end = FoundAt({}, 0, 0), 0, 0
        for one in reader.objects():
            raw, gap = text[one.start : one.end], text[end : one.start]
            end = one.end
            if gap.strip(" \n{"):  # a brace doubled, as templates have it, opens nothing
                depth += gap.count("{") - gap.count("}")
            is_whole = len(raw) == known.end - known.start or not one.is_closed  # or cut off
            if known.found and is_whole and text.startswith(raw.rstrip(), known.start):
                yield FoundAt(known.found, one.start, end)
                continue
            if (found := self._decoded(one.value, raw)) is None:
                continue
            if any(_QUOTED_KEY.search(loose) for loose in reader.loose):
                raise UnreadableVerdict("the verdict quotes another one without escapes")
            for comment in reader.comments:
                if is_doubtful(comment, self.key, found[self.key], self.scale, is_item=True):
                    raise UnreadableVerdict(f"a comment may take the verdict back: {comment[:40]!r}")
            place = FoundAt(found, one.start, end)
            if len(copies) < MAX_COPIES and self.author.wrote(found, raw):
                copies.append(place)
                continue
            if depth > 0 or re.search(r'"\w{1,40}":\s*$', gap[-80:]):
                raise UnreadableVerdict("the verdict is inside another object")
            if not one.is_closed and (reader.is_cut or self.reply.finish_reason == "length"):
                raise CutOff("the reply was cut off before its verdict was complete")
            known = place
            yield place

    def _decoded(self, value: Any, raw: str) -> Found | None:
        """An object as a verdict; None where it is another kind of object."""
        try:
            found = unique(value)
            if isinstance(found, list) and len(found) == 1:
                found = found[0]
            if isinstance(found, list):
                if any(isinstance(item, dict) and verdict_in(item, self.key) for item in found):
                    raise UnreadableVerdict("the verdict is one of a list")
                return None
            return verdict_in(found, self.key) if found else None
        except UnreadableVerdict:
            if self.key.casefold() in raw.casefold() or "\\u00" in raw:
                raise
            return None

    def _is_others(self, place: FoundAt, since: int) -> bool:
        try:
            self.check_own(place, since)
        except UnreadableVerdict:
            return True
        return False

    def check_own(self, place: FoundAt, since: int) -> None:
        """Raises UnreadableVerdict where the words around an object make it somebody else's."""
        before = self.text[since : place.start]
        value = place.found.get(self.key)
        if isinstance(value, str) and _TEMPLATE.fullmatch(value):
            raise UnreadableVerdict("the verdict is a template")
        if (code := _CODE.search(before[-200:])) and not is_others(code[0]):
            before = before[: len(before) - len(code[0])] + "\n"
        after = self.text[place.end : place.end + 40]
        if (quote := _QUOTE_OPENED.search(before[-80:])) and _QUOTE_CLOSED.match(after):
            before = before[: len(before) - len(quote[0])]
        if _INSIDE.search(before[-80:]):
            raise UnreadableVerdict("the verdict is inside a quotation")
        check_introduction(before)
        if re.match(r"[`\"')]{0,6}[ \t]{0,9}[,;)]?[ \t]{0,9}(?!assistant\b|[\w.]+\()[a-z]", after):
            raise UnreadableVerdict("the verdict is part of a sentence")

    def _lines(self) -> list[FoundAt]:
        """Lines and sentences that state the value, and all the same one."""
        key = self.key
        text = _NO_WORDS.sub(lambda line: " " * len(line[0]), self.text)
        text = with_rows_as_lines(text, key)
        self.text, self.is_line = text, True
        found = []
        for sentence in sentences(text):
            one = stated(sentence, key, self.scale)
            if one and not text.count("```", 0, one.start) % 2:
                found.append(one)
                if len(found) == MAX_STATEMENTS:
                    return []
        if all(one.is_prose for one in found):
            return []
        for one in found:
            if not is_same(one.value, found[0].value):
                raise UnreadableVerdict(f"the reply states {one.value} and {found[0].value}")
        if found and self.author.wrote_line(text[found[0].start : found[0].end], found[0].value):
            raise CopiedVerdict
        reason = " ".join(re.sub(r"[*_#`]", "", "\n".join(around(text, found))).split())
        return [FoundAt({key: one.value, "reason": reason}, one.start, one.end) for one in found]

    def check_surroundings(self, places: list[FoundAt]) -> None:
        """Raises UnreadableVerdict where the words around a verdict contradict it or make it another's."""
        text, key = self.text, self.key
        value = bare(places[-1].found[key])
        *prose, after = around(text, places)
        end, after = places[-1].end, after.lstrip("}")
        if self.reply.finish_reason == "length" and (after.strip().strip("`") or text[end - 1] not in "]})"):
            # The missing end may take the verdict back. Padding after a finished object takes nothing back.
            raise CutOff("the reply goes on after the verdict and was cut off")
        everything = _BLANK_LINES.sub("\n", "\n".join(part for part in (*prose, after) if not part.isspace()))
        everything = with_rows_as_lines(everything, key)
        if is_named_in(after, key):
            raise UnreadableVerdict("beside the verdict there is a second one, broken")
        same = 0
        for sentence in sentences(everything):
            if is_named_in(sentence.text, key) and not is_others(sentence.text):
                raise UnreadableVerdict("beside the verdict there is a second one, broken")
            other = stated(sentence, key, self.scale)
            same += other is not None
            if other and (same > MAX_STATEMENTS or not is_same(other.value, value)):
                raise UnreadableVerdict(f"the prose says {other.value[:12]}, the verdict {str(value)[:12]}")
        if self.is_line:  # an object's own were checked where it was found
            check_introduction(prose[0], is_object=False)
        check_sequel(_CODE_LINE.sub("", after), key, value, self.scale)


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


def nothing_found(text: str, reply: Reply, key: str) -> Declined | UnreadableVerdict:
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
    return UnreadableVerdict(f"no JSON object with {key!r} in the reply, and no line that clearly states it")


# --- the values of an object --------------------------------------------------------------------------------


def row_of(row: Any, key: str) -> Found:
    """What is said of one name, as an object that has the key."""
    found = verdict_in(row, key) if isinstance(row, dict) else {key: row}
    if found is None:
        raise UnreadableVerdict(f"there is no {key} where one was asked for")
    return found


def truth(found: Mapping[str, Any], key: str) -> bool:
    """The value as true or false, also as text, or as the one such value beside a reason; 1 is neither."""
    value = found.get(key)
    if isinstance(value, dict):
        answers = [inner for inner in value.values() if isinstance(inner, bool)]
        answers = answers or [inner for inner in value.values() if not is_remark(inner)]
        value = answers[0] if len(answers) == 1 else value
    if isinstance(value, str) and value.strip().casefold() in TRUTHS:
        return TRUTHS[value.strip().casefold()]
    if not isinstance(value, bool):
        raise UnreadableVerdict(f"{key!r} is {str(value)[:12]!r}, neither true nor false")
    return value


def is_remark(value: object) -> bool:
    """Whether a value is text, and neither true nor false."""
    return isinstance(value, str) and value.strip().casefold() not in TRUTHS


def words(found: Mapping[str, Any], key: str) -> str:
    """The value as text, also of a list of texts; empty where it is left out."""
    value = found.get(key, "")
    parts = value.values() if isinstance(value, dict) else value
    if isinstance(value, (list, dict)) and all(isinstance(part, str) for part in parts):
        value = " ".join(parts)
    if not isinstance(value, str):
        raise UnreadableVerdict(f"the {key} is not text")
    return value
