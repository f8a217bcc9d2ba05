"""The one verdict in a judge's reply, or none: strict, linear, and never a guess.

A verdict is a JSON object with the key that was asked for. The evidence is weighed in this order:

1. The endpoint says that the judge declined: refused.
2. The whole reply is one flat object: that is the verdict, unless it is a copy.
3. The judge's reasoning is set aside, drafts and all: what counts follows the last closing tag.
4. Objects with the key are looked for in what is left. None, a broken one, or two that differ: no verdict.
5. The words around the one object may not make it somebody else's (a quotation, an example, part of a
   sentence), take it back, or state another value.
6. An object that repeats a claim of the judged text, value and words, is the author's: a copy.
7. Without any object, one line that states score and scale (`Score (0-10): 8`) and nothing else is a verdict.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from plaudit.errors import CutOff, Declined, UnreadableVerdict
from plaudit.reasoning import BOUND, CLOSE, OPEN
from plaudit.types import Reply

VERSION = 2
"""Part of every judge's version: raise it whenever some reply is read differently than before."""

MAX_REPLY = 64_000
"""Characters, the judge's own reasoning aside, beyond which a reply is no verdict, whatever it contains."""

MAX_CLAUSE = 300
"""Characters of the clause that may lead up to a verdict."""
MAX_SEQUEL = 4_000
"""Characters of explanation that may follow a verdict."""

MANY_KEYS = 32
"""From here on repeated keys are found by reading the object in pairs, which takes longer for a few."""


class CopiedVerdict(UnreadableVerdict):
    """What looks like the verdict was written by the author of the judged text."""


Found = dict[str, Any]
"""A verdict object: its values by key."""


def single_object(
    reply: Reply, *, key: str = "score", judged: str = "", scale: tuple[float, float] | None = None
) -> Found:
    """The only object in the reply that has `key`.

    `judged` is the text under judgement: an object copied from it is the author's claim, not a verdict. Where
    `scale` is given, a line that states a score on it will do, if there is nothing else.
    Raises Declined where the judge declined, UnreadableVerdict with what was found everywhere else.
    """
    check_declined(reply)
    found = _whole(reply.text, key) if len(reply.text) <= MAX_REPLY else None
    if found is None:
        text = _after_reasoning(reply.text)
        found = _searched(text, reply, key, judged) or _stated_alone(text, key, scale)
        if found is None:
            raise _nothing_found(text, reply, key)
    check_origin(found, key, judged)
    return found


def single_list(reply: Reply, *, key: str = "verdicts") -> list[Found]:
    """The objects of the only list in the reply: under `key` of an object, or the whole reply.

    Raises Declined where the judge declined, UnreadableVerdict with what was found everywhere else.
    """
    check_declined(reply)
    text = _after_reasoning(reply.text)
    found = _searched(text, reply, key, "") or _bare_list(text, key)
    if found is None:
        raise _nothing_found(text, reply, key)
    rows = found[key]
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise UnreadableVerdict(f"{key!r} is not a list of objects")
    return rows


def check_declined(reply: Reply) -> None:
    """Raises Declined where the endpoint itself says that the judge declined."""
    if reply.refusal or reply.finish_reason == "content_filter":
        said = encodable(reply.refusal or "its content filter stopped the reply")
        raise Declined(f"the judge declined: {said[:80]}")


def check_origin(found: Found, key: str, judged: str) -> None:
    """Raises CopiedVerdict where the judged text makes this very claim: the same value in the same words.

    A verdict that quotes the author's words with another value is the judge's own, and so is one that has
    the claimed value for reasons of its own. Good and bad claims are treated alike.
    """
    if key not in judged:
        return
    if len(judged) > BOUND:  # head and tail, as a judge is shown a long text
        judged = judged[: BOUND // 2] + judged[-BOUND // 2 :]
    if not any(_same(claim, found[key]) for claim in _claim(key).findall(judged)):
        return
    plain = _letters(judged)
    if all(_letters(text) in plain for text in found.values() if isinstance(text, str)):
        raise CopiedVerdict("the verdict is a copy of an object in the judged text")


@lru_cache(maxsize=256)
def _claim(key: str) -> re.Pattern[str]:
    """What a text says the key's value is, in an object that may be broken or escaped."""
    return re.compile(rf"[\"']{re.escape(key)}\\*+[\"']\s*+:\s*+\\*+[\"']?(-?\w[\w.]{{0,30}})")


def _letters(text: str) -> str:
    return re.sub(r"[\W_]+", "", text.casefold())


# --- the usual case: the reply is the object ----------------------------------------------------------------

_flat = msgspec.json.Decoder(dict[str, str | int | float | bool | None])


def _whole(text: str, key: str) -> Found | None:
    """The reply as one flat object without repeated keys; None sends it to the slow path."""
    try:
        found = _flat.decode(text)
    except (ValueError, RecursionError):  # no JSON, nested, or not encodable
        return None
    if key not in found or "\\u00" in text:  # a key in escapes would not be counted
        return None
    if len(found) > MANY_KEYS:  # counting each would be quadratic
        return None
    folded = key.casefold()
    for name in found:
        if text.count(f'"{name}"') != 1 or (name != key and name.casefold() == folded):
            return None
    return found


# --- the judge's own reasoning ------------------------------------------------------------------------------

_CLOSED = re.compile(
    rf"{CLOSE}|</(?:reasoning|analysis|scratchpad|thoughts?|reflection)>|assistantfinal(?=\s*+[\[{{`])"
)
_OPENED = re.compile(rf"^[ \t]{{0,40}}(?:{OPEN})", re.MULTILINE)


def _after_reasoning(text: str) -> str:
    """What follows the last tag that closes reasoning; a tag inside an object is quoted there."""
    text = text.removeprefix("\ufeff")  # some servers' byte order mark
    tail = text[-MAX_REPLY:]
    start = 0
    tags = list(_CLOSED.finditer(tail))
    if tags:
        spans = [match.span() for match in _OBJECT.finditer(tail)]
        for tag in tags:
            place = bisect_right(spans, (tag.start(), 0)) - 1
            if place < 0 or spans[place][1] <= tag.start():
                start = tag.end()
    if not start and len(text) > MAX_REPLY:
        raise UnreadableVerdict(f"the reply has {len(text):,} characters; that is no verdict")
    if _OPENED.search(tail, start):
        raise UnreadableVerdict("the judge's reasoning never ended, so no verdict followed")
    return tail[start:]


# --- an object among other text -----------------------------------------------------------------------------

# Possessive throughout, so no backtracking. Linear over a whole text, too: an attempt that fails ends at a
# brace outside a string, and the next one to read the same text starts a level further in, of three; it may
# also disagree on what is inside a string, in two ways.
_STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_SCALAR = rf"(?:{_STRING}|[^\s\",:{{}}\[\]]++)"


def _objects_of(value: str) -> str:
    pair = rf'\s*+{_STRING}\s*+:\s*+{value}\s*+(?:,(?=\s*+")|(?=\}}))'
    return rf'\{{(?=\s*+")(?:{pair})*+\}}'


def _lists_of(value: str) -> str:
    return rf"\[\s*+(?:{value}\s*+(?:,|(?=\])))*+\s*+\]"


_FLAT = _objects_of(rf"(?:{_SCALAR}|{_lists_of(rf'(?:{_SCALAR})')})")
_ITEM = rf"(?:\s*+(?:{_SCALAR}|{_FLAT}))"
_OBJECT = re.compile(_objects_of(rf"(?:{_SCALAR}|{_FLAT}|{_lists_of(_ITEM)})"), re.DOTALL)


_BLANK_LINES = re.compile(r"\n\s++")


class _FoundAt(NamedTuple):
    """A verdict object, and where it stands."""

    found: Found
    start: int
    end: int


def _searched(text: str, reply: Reply, key: str, judged: str) -> Found | None:
    """The only object with the key that stands in the text on its own."""
    places = list(_places(text, key, judged))
    if not places:
        return None
    found = places[0].found
    prose, end = [], 0
    for place in places:
        prose.append(text[end : place.start])
        end = place.end
    after = text[end:]
    everything = _BLANK_LINES.sub("\n", "\n".join(part for part in (*prose, after) if not part.isspace()))
    if reply.finish_reason == "length" and after.strip().strip("`"):
        # The missing end may take the verdict back. Padding after a finished object takes nothing back.
        raise CutOff("the reply goes on after the verdict and was cut off")
    if re.search(rf'"{re.escape(key)}\\?"\s*+:', everything, re.IGNORECASE):
        raise UnreadableVerdict("beside the verdict there is a second one, broken")
    _check_statements(everything, key, found[key])
    _check_introduction(prose[0])
    _check_sequel(after, key, found[key])
    return found


def _places(text: str, key: str, judged: str) -> Iterator[_FoundAt]:
    """Where the verdict stands, once or more often. Raises UnreadableVerdict where there are two of them."""
    known: Found | None = None
    raw_known = ""
    depth = end = 0
    for match in _OBJECT.finditer(text):
        raw = match[0]
        gap = text[end : match.start()]
        end = match.end()
        depth += gap.count("{") - gap.count("}")
        if raw == raw_known:
            assert known is not None
            yield _FoundAt(known, match.start(), end)
            continue
        if (found := _decode(raw, key)) is None:
            continue
        if depth > 0 or gap.endswith(('"', "'", "“", "‘")) or gap.rstrip().endswith('":'):
            raise UnreadableVerdict("the verdict stands inside a quotation or another object")
        check_origin(found, key, judged)
        if known is not None and repr(found) != repr(known):  # unlike ==, it tells 1 from true
            raise UnreadableVerdict("the reply holds two different verdicts")
        start = match.start()
        if gap.rstrip().endswith("["):
            closing = _CLOSING.match(text, end)
            if closing is None or gap.rstrip()[:-1].rstrip().endswith(('"', '":')):
                raise UnreadableVerdict("the verdict is one of a list")
            start, end = start - len(gap) + gap.rindex("["), closing.end()
        known, raw_known = found, raw
        yield _FoundAt(found, start, end)


_CLOSING = re.compile(r"\s*+\]")


def _decode(raw: str, key: str) -> Found | None:
    """A candidate as an object; None where it is another kind of object."""
    folded = key.casefold()
    if folded not in raw.casefold() and "\\u00" not in raw:
        return None
    try:
        try:
            pairs = _pairs.decode(raw)
        except ValueError:
            pairs = _pairs.decode(_BACKSLASH.sub(_double, raw))
    except (ValueError, RecursionError):  # includes numbers of thousands of digits
        if f'"{folded}"' in raw.casefold():
            raise UnreadableVerdict("the verdict object is not JSON") from None
        return None
    found: Found = _unique(pairs)
    names = [name for name in found if name.strip().casefold() == folded]
    if len(names) > 1:
        raise UnreadableVerdict(f"{names[0]!r} and {names[1]!r} stand in one object")
    if not names:
        if _holds(found, folded):
            raise UnreadableVerdict("the verdict stands inside another object")
        return None
    if names[0] != key:
        found = {name.strip().casefold() if name != key else name: value for name, value in found.items()}
        found[key] = found.pop(folded)
    if _holds([value for name, value in found.items() if name != key], folded):
        raise UnreadableVerdict("there is a second verdict inside the verdict")
    return found


def _unique(value: Any) -> Any:
    """Pairs as objects, texts encodable. Raises UnreadableVerdict where a key has two values."""
    if isinstance(value, _Pairs):
        found: Found = {}
        for name, inner in value:
            made = _unique(inner)
            if name in found and repr(found[name]) != repr(made):
                raise UnreadableVerdict(f"the key {name[:20]!r} stands twice, with different values")
            found[name] = made
        return found
    if isinstance(value, list):
        return [_unique(item) for item in value]
    return encodable(value)


def _holds(value: object, folded: str) -> bool:
    """Whether some object in there has the key."""
    if isinstance(value, dict):
        return any(name.casefold() == folded or _holds(inner, folded) for name, inner in value.items())
    return isinstance(value, list) and any(_holds(item, folded) for item in value)


class _Pairs(list[tuple[str, Any]]):
    """The pairs of an object, repeated keys and all."""


# Not strict about line breaks within strings: they make nothing ambiguous.
_pairs: Any = json.JSONDecoder(object_pairs_hook=_Pairs, strict=False)
_BACKSLASH = re.compile(r'\\(["\\/bfnrt]|u[0-9a-fA-F]{4})?')


def _double(found: re.Match[str]) -> str:
    """A backslash that escapes nothing, as in LaTeX or a path, stands for itself."""
    return found[0] if found[1] else "\\\\"


def _bare_list(text: str, key: str) -> Found | None:
    """A reply that is a list of objects and nothing else, but for a code fence."""
    body = re.sub(r"^\s*+```\w*\s|```\s*$", "", text).strip()
    if not (body.startswith("[") and body.endswith("]")):
        return None
    raw = f'{{"{key}": {body}}}'
    return _decode(raw, key) if _OBJECT.fullmatch(raw) else None


def encodable(value: Any) -> Any:
    """The value, with lone surrogates replaced where it is text."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


# --- the words around an object -----------------------------------------------------------------------------

# No list of phrases holds all the ways to quote an object or to take it back. So it is the other way round:
# what leads up to it must make it the judge's own, and each sentence that follows must be about the response.
_NOUN = (
    r"(?:verdict|evaluation|judge?ment|assessment|score|rating|grade|results?|output|json(?: \w{1,20})?"
    r"|object|decision|conclusion|reply|my response|(?:final |my )?answer(?! \w)|feedback|analysis)"
)
_OWN = re.compile(
    r"(?:(?:so|thus|therefore|hence|and|now|finally|then|okay|ok|sure|certainly|overall|in|i"
    r"|as requested|to summari[sz]e)\b[ ,!]?)*"
    r"(?:here(?:['’]s| is| are| comes| you (?:are|go))\b.{0,99}|(?:this|below|the following) is\b.{0,99}"
    r"|(?:(?:would|will|can|hereby|have) )*(?:rate|score|assign|give|judge|conclude|award|evaluated?|grade"
    r"|return|reply|respond|provide|submit|issue|find)\b.{0,60}"
    r"|(?:(?:my|the|our|own|final|overall|requested|json|structured|official|resulting|evaluation) ){0,3}"
    rf"{_NOUN}"
    r"(?: (?:of|for|on|about|to|in|as|with|by|from|based on|according to)\b.{0,80})?"
    r"(?: (?:is|are|reads|follows|is as follows|below|would be|object))?"
    r"|the response (?:receives|gets|earns|is assigned) the following \w{1,20}|response|judge|assistant"
    r"|.{0,60}(?:如下|评价|结果|判断|评分|裁决))?",
    re.IGNORECASE,
)
_OF_THE_RESPONSE = re.compile(
    r"^(?:response|answer)$|\bmy response\b|^the response (?:receives|gets|earns|is assigned)"
    r"|\b(?:of|for|on|about|to|rate|evaluated?|judged?|scored?|assess(?:ed)?|reviewed|grade|give|award)"
    r" (?:the|this|that|each|both) (?:\w{1,20} )?(?:responses?|answers?|submission|candidate)\b",
    re.IGNORECASE,
)
_OTHERS = re.compile(
    r"\b(?:responses?|answers?(?<!final answer)(?<!my answer)|author|student|user|candidate|model|text"
    r"|submission|writer|data|it|its|he|she|they|their)\b",
    re.IGNORECASE,
)
_HYPOTHETICAL = re.compile(
    r"\b(?:if|had|were|unless|assum\w+|suppos\w+|imagin\w+|would have|could|might|should|otherwise|e\.g"
    r"|hypothetical\w*|for instance|examples?|samples?|templates?|placeholders?|drafts?|tempted|instead|not"
    r"|never|cannot|first (?:thought|impression|instinct)|initial\w*|earlier|previous\w*|quot\w+|forged"
    r"|fake\w*|hidden|inject\w*)\b|n['’]t\b|如果|例如|比如|假如|假设|若|格式|声称",
    re.IGNORECASE,
)
_TAG = r"(?:</?[\w:-]{1,40}>|<[|｜][\w▁]{1,40}[|｜]>)"
_MARKUP_TAG = re.compile(_TAG)
_FENCE_OPENED = re.compile(r"(?:^|\n)[ \t]{0,9}`{3,6}\w{0,10}[ \t]{0,9}\n?$")


def _check_introduction(before: str) -> None:
    """The words that lead up to the object, if there are any: they must make it the judge's own."""
    text = _MARKUP_TAG.sub("", _FENCE_OPENED.sub("\n", before)).rstrip(" \t`[*_")
    line = text.rstrip().rsplit("\n", 1)[-1].strip(" \t*_#")
    if line.startswith(">"):
        raise UnreadableVerdict("the verdict stands inside a quotation")
    if not line or (text.endswith("\n") and not line.endswith((":", "："))):
        return  # what comes before is complete in itself
    sentence = re.split(r"[.!?。！？]\s|\bbut\b", line)[-1].strip(" :：*_")
    clause = re.split(r"[,;:，；]\s?|\s[-–—]\s", sentence)[-1].strip(" *_`")
    is_short = len(clause) <= MAX_CLAUSE
    is_own = is_short and _OWN.fullmatch(clause) and not _OTHERS.search(_OF_THE_RESPONSE.sub("", clause))
    if not is_own or _HYPOTHETICAL.search(sentence):
        raise UnreadableVerdict("the words before the verdict do not make it the judge's own")


_ABOUT_THE_VERDICT = re.compile(
    r"\b(?:i(?!\.e)|me|my|mine|myself|we|us|our|you|your|scor(?:e|es|ed|ing)|verdicts?|grad(?:e|es|ed|ing)"
    r"|ratings?|json|object|format|above|previous\w*|earlier|premature|edit|correction|corrected|updat\w+"
    r"|revis\w+|actually|wait|hm+|oops|hold on|sorry|apolog\w+|please|ignor\w+|disregard\w*|discard\w*|strike"
    r"|scratch|withdraw\w*|retract\w*|amend\w*|re-?(?:consider|read|check|evaluat|assess|think|scor)\w*"
    r"|examples?|samples?|hypothetical\w*|otherwise|quot\w+|forged|fake\w*|inject\w*|manipulat\w+|after all"
    r"|hindsight|reflection|second thoughts?|too (?:high|low|generous|harsh|lenient|strict|kind)|no longer"
    r"|never ?mind|on balance|fairer|hasty|backwards|wrong way|swapped|mixed up|taken? back"
    r"|this(?! (?:response|answer|task|question)\b)|void\w*|invalid\w*|provisional|mis(?:read|judged|took)"
    r"|gets?|got|receives?|an? (?:zero|one|two|three|four|five|six|seven|eight|nine|ten))\b|\?",
    re.IGNORECASE,
)
_CONFIRMS = re.compile(
    r"\b(?:please )?let me know\b.*|\bfeel free\b.*|\b(?:i )?hope (?:this|that) helps\b"
    r"|\b(?:this|that) (?:is|concludes) (?:my|the) (?:final )?(?:verdict|evaluation|assessment|decision)\b"
    r"|\bi (?:have )?(?:deducted|subtracted|took off|penali[sz]ed|evaluated only|judged only)\b"
    r"|\bi (?:have )?weighed (?:it|the response) against the \w+.*"
    r"|^\W*(?:(?:final )?(?:verdict|score|evaluation)|done|that is all|thank you|thanks|end of \w+)\W*$"
    r"|\b(?:the|this|my) (?:score|verdict|rating) (?:reflects|is based on|accounts for)\b",
    re.IGNORECASE,
)
_ABOUT_THE_RESPONSE = re.compile(
    r"(?:(?:explanation|justification|reason(?:ing)?|rationale|strengths?|weakness(?:es)?|pros|cons|summary|analysis"
    r"|correctness|accuracy|clarity|brevity|completeness|style|comments?|details?|step \d+)(?:\s?:.*)?"
    r"|(?:note\s?:\s?)?(?:(?:however|but|also|additionally|moreover|furthermore|still|overall|thus|therefore"
    r"|so|and),? )?(?:(?:the|this|its|both) (?:\w{1,20} )?(?:responses?|answers?|solutions?|explanations?"
    r"|texts?|author|candidate|student|code|reasoning|arguments?|values?|units?|statements?|proof|essay|story"
    r"|reference|claims?|first|second|two)|both|it (?!was\b)(?:\w+s|does))\b.*)?",
    re.IGNORECASE | re.DOTALL,
)
_FOREIGN = re.compile(r"[\u0370-\u1fff\u2c00-\ud7ff\uf900-\ufaff]")  # letters of other scripts than the Latin
_MARKUP = re.compile(rf"{_TAG}|[`*_#>]")
_BRACED = re.compile(r"\{[^{}]{0,80}\}")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s(?![a-z]|\d+\.\d)|\n")
_AMOUNT = re.compile(
    r"\b(?:deserves?|worth|warrants?|merits?|earns?)\b[^\d]{0,20}?(-?\d+(?:\.\d+)?)\b"
    r"|(?<!answer is )(?<!solution is )(?<!step )(?<!out of )(?<![\w./])"
    r"(-?\d+(?:\.\d+)?)(?!\d|\.\d|\s?[a-z%°])",
    re.IGNORECASE,
)
"""A number that may be a score: it has no unit, and is not what the task's answer is."""


def _check_sequel(after: str, key: str, value: object) -> None:
    """The words behind the object: they may speak of the response, and of the verdict only to confirm it."""
    if re.match(r"`{0,6}[ \t]{0,9}[,;)]?[ \t]{0,9}[a-z]", after):
        raise UnreadableVerdict("the verdict is part of a sentence")
    after = after.strip()
    if len(after) > MAX_SEQUEL:
        raise UnreadableVerdict(f"{len(after):,} characters follow the verdict; they may take it back")
    for sentence in filter(str.strip, _SENTENCE_END.split(_MARKUP.sub("", after))):
        rest = _CONFIRMS.sub("", sentence)
        amounts = [one or two for one, two in _AMOUNT.findall(_BRACED.sub("", rest))]
        limit = _limit(value)
        is_contrary = any(abs(float(amount)) <= limit and not _same(amount, value) for amount in amounts)
        rest = _statement(key).sub("", rest)
        if value is True or value is False:
            opposite = rf"\b(?:false|not {re.escape(key)})\b" if value else r"\btrue\b"
            is_contrary |= re.search(opposite, rest, re.IGNORECASE) is not None
        is_about_response = _ABOUT_THE_RESPONSE.fullmatch(" ".join(rest.split()).strip(" -•.!,;:"))
        if is_contrary or not is_about_response or _ABOUT_THE_VERDICT.search(rest) or _FOREIGN.search(rest):
            raise UnreadableVerdict(f"what follows the verdict may take it back: {sentence.strip()[:40]!r}")


def _limit(value: object) -> float:
    """Up to which a number beside this value looks like a score; none does beside what is no number."""
    try:
        return max(10.0, abs(float(value))) if isinstance(value, (int, float, str)) else -1.0
    except ValueError:
        return -1.0


@lru_cache(maxsize=256)
def _statement(key: str) -> re.Pattern[str]:
    """A line that states the value of the key."""
    return re.compile(
        r"^(?:[^\w\n]|_){0,8}+(?:(?:my|the|final|overall|total|actual|revised|updated|correct|new)\s){0,3}"
        rf"{re.escape(key)}(?:[\s*_]{{0,4}}\([^()\n]{{1,30}}\))?+(?:[^\w(\n]|_){{1,6}}(?:(?:is|of)\s)?"
        r"(-?\d+(?:\.\d+)?|true|false|first|second|tie)\b(?:\s?(?:/|out of)\s?\d+)?",
        re.IGNORECASE | re.MULTILINE,
    )


_SCORE_BESIDE_LIST = re.compile(r'score[\W_]{1,6}-?\d|"score', re.IGNORECASE)


def _check_statements(prose: str, key: str, value: object) -> None:
    """What the prose says the value is must be the value."""
    if isinstance(value, list):
        if _SCORE_BESIDE_LIST.search(prose):
            raise UnreadableVerdict("the prose around the verdicts states a score, too")
        return
    for other in _statement(key).findall(prose):
        if not _same(other, value):
            raise UnreadableVerdict(f"the prose says {other[:12]}, the verdict {str(value)[:12]}")


def _same(said: str, value: object) -> bool:
    """Whether the prose and the object mean the same value."""
    meant = str(value).strip().casefold()
    try:
        return said.casefold() == meant or float(said) == float(meant)
    except ValueError:
        return False


# --- no object ----------------------------------------------------------------------------------------------

_LINE = re.compile(
    r"[\W_]*(?:(?:my|the|final|overall|total)\s){0,2}score[\s*_]*"
    r"(?:\(\s*(?P<low>-?\d+(?:\.\d+)?)\s*(?:-|–|to)\s*(?P<high>\d+(?:\.\d+)?)\s*\))?[\s*_]*[:=][\s*_]*"
    r"(?P<score>-?\d+(?:\.\d+)?)(?:\s*(?:/|out of)\s*(?P<of>\d+(?:\.\d+)?))?[\W_]*",
    re.IGNORECASE,
)


def _stated_alone(text: str, key: str, scale: tuple[float, float] | None) -> Found | None:
    """The score, where the reply is one line that states it together with the scale that was asked for."""
    if scale is None or len(text) > 200:
        return None
    line = _LINE.fullmatch(text)
    if line is None:
        return None
    low, high, of = (None if line[name] is None else float(line[name]) for name in ("low", "high", "of"))
    if (low, high, of) not in {(*scale, None), (*scale, scale[1]), (None, None, scale[1])}:
        return None
    return {key: float(line["score"])}


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
        return UnreadableVerdict("the reply is empty")
    if reply.finish_reason == "length":
        return CutOff("the reply was cut off before its verdict was complete")
    if f'"{key}"' in text:
        return UnreadableVerdict("the verdict object is broken, nested or not a JSON object")
    opening = text[:300]
    if _REFUSAL.match(opening) and _DECLINED.search(opening) and not re.search(r"\d", text):
        return Declined("the judge declined in words")
    return UnreadableVerdict(f"no JSON object with {key!r} in the reply; a score in prose does not count")


# --- the values of an object --------------------------------------------------------------------------------


def truth(found: Found, key: str) -> bool:
    """The value as true or false, also as text; 1 and yes are neither."""
    value = found.get(key)
    if isinstance(value, str) and value.strip().casefold() in ("true", "false"):
        return value.strip().casefold() == "true"
    if not isinstance(value, bool):
        raise UnreadableVerdict(f"{key!r} is {str(value)[:12]!r}, neither true nor false")
    return value


def words(found: Found, key: str) -> str:
    """The value as text; empty where it is left out."""
    value = found.get(key, "")
    if not isinstance(value, str):
        raise UnreadableVerdict(f"the {key} is not text")
    return value
