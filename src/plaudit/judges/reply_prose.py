"""The words of a reply: statements of a value among them, and whether what they say leaves a verdict alone.

A reply is read sentence by sentence. Each states a value (`Score: 8/10`), or casts doubt on a verdict (it is
taken back, an example, somebody else's), or is a remark. A score in prose only (`I give it an 8`) is none,
but may contradict another. Words that nobody thought of make a remark: what counts is whether a sentence
speaks of the verdict, by name, as the judge of itself or in a few words, and how. The words are in
reply_words.txt.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from importlib.resources import files
from typing import NamedTuple

from plaudit.errors import UnreadableVerdict
from plaudit.judges.numerals import NUMBER, said, said_at

Ends = tuple[float, float] | None
"""The worst and the best score, where the value is a score."""

MAX_CLAUSE = 600
"""Characters of what may lead up to a verdict."""
MAX_SEQUEL = 4_000
"""Characters of explanation that may follow a verdict."""
MAX_SENTENCE = 2_000
"""Characters of a sentence that may state a value."""
MAX_SENTENCES = 1_000
"""Sentences of a reply, beyond which it is no verdict."""
MAX_LINE = 300
"""Characters of a row or a heading."""
MAX_SHORT = 8
"""Words up to which a sentence with a doubt or a number in it is taken to speak of the verdict."""
MAX_ABRUPT = 5
"""Words up to which one that begins like a contradiction is one."""
MAX_TITLE = 6
"""Words up to which one without a full stop is a title."""


@cache
def _sections() -> dict[str, tuple[str, str]]:
    """The words of each section: those between word borders, and the patterns without."""
    text = (files("plaudit.judges") / "reply_words.txt").read_text(encoding="utf-8")
    found: dict[str, tuple[str, str]] = {}
    for section in re.split(r"^\[", text, flags=re.MULTILINE)[1:]:
        name, *lines = (line for line in section.splitlines() if line and not line.startswith("#"))
        plain = "|".join(line for line in lines if not line.startswith("~"))
        found[name.rstrip("]")] = plain, "|".join(line[1:] for line in lines if line.startswith("~"))
    return found


def choice(section: str) -> str:
    """The words of a section, as a choice within a pattern."""
    return f"(?:{_sections()[section][0]})"


@cache
def words(section: str) -> re.Pattern[str]:
    """What finds one of the words of a section in a text."""
    plain, free = _sections()[section]
    return re.compile("|".join(([rf"\b(?:{plain})\b"] if plain else []) + [free] * bool(free)), re.IGNORECASE)


# --- sentences ----------------------------------------------------------------------------------------------

_CONTROL = r"<[|｜][\w▁]{1,40}[|｜]>(?:[\w.:-]{1,60}(?=<[|｜]))?"
"""A control token, and the name of a function between two of them."""
_MARKUP = re.compile(
    rf"</?[\w:-]{{1,40}}>|{_CONTROL}|\[/?(?:INST|THINK|TOOL_\w{{1,16}})\]|[`*_#]|\\[()\[\]]|\$(?=\\)|(?<=\}})\$"
)
_BOUNDARY = re.compile(
    r"\n\s*|[.!?]()(?<!^\d\.)(?<!e\.g\.)(?<!i\.e\.)\s+(?![a-z])|[.!?][\"”')]()\s+(?=[A-Z])|[。！？]()",
    re.MULTILINE,
)
"""Where a sentence ends: at a line break, or behind its mark, where a group stands."""


class Sentence(NamedTuple):
    """A sentence without its markup, and where it stands."""

    text: str
    start: int
    end: int


def sentences(text: str) -> Iterator[Sentence]:
    """The sentences of a text; a line break ends one, too."""
    start = 0
    for count, found in enumerate(_BOUNDARY.finditer(text)):
        if count == MAX_SENTENCES:
            raise UnreadableVerdict("the reply has too many sentences for a verdict")
        end = found.end(found.lastindex) if found.lastindex else found.start()
        if plain := " ".join(_MARKUP.sub("", text[start:end]).split()):
            yield Sentence(plain, start, end)
        start = found.end()
    if plain := " ".join(_MARKUP.sub("", text[start:]).split()):
        yield Sentence(plain, start, len(text))


def with_rows_as_lines(text: str, key: str) -> str:
    """The text with tags of the key, rows of tables and headings with a value below as lines."""
    name = choice("score") if key == "score" else re.escape(key)
    text = re.sub(
        rf"<({name})>\s{{0,4}}([^<]{{1,60}}?)\s{{0,4}}</\1>", r"\n\1: \2\n", text, flags=re.IGNORECASE
    )
    is_heading = re.compile(
        rf"[#*_\s]*(?:{choice('modifier')}[\s-]*){{0,3}}{name}[*_\s]*:?[*_\s]*", re.IGNORECASE
    )
    lines: list[str] = []
    rows: list[list[str]] = []
    heading = last = ""
    for line in text.split("\n"):
        if line.startswith("|") and len(line) <= MAX_LINE:
            rows.append([cell.strip() for cell in line.strip("| \t").split("|")])
            if set("".join(rows[-1])) <= set(":- "):
                rows.pop()
                continue
            line = last = f"{rows[-1][0]}: {' - '.join(rows[-1][1:])}"  # noqa: PLW2901
        if heading and line.strip():
            line, heading = f"{heading}: {line.strip()}", ""  # noqa: PLW2901
        if len(line) <= MAX_LINE and is_heading.fullmatch(line):
            heading = line.strip(":*_# \t")
        elif line.strip() or not heading:
            lines.append(line)
    if len(rows) == 2 and len(rows[0]) == len(rows[1]) and last in lines:  # names above, values below
        at = lines.index(last)
        lines[at : at + 1] = [f"{name}: {value}" for name, value in zip(*rows, strict=True)]
    return "\n".join(lines)


# --- a value in words ---------------------------------------------------------------------------------------


class Stated(NamedTuple):
    """A value that a sentence states, and where the sentence stands."""

    value: str
    start: int
    end: int
    is_named: bool
    """Whether it has the name that was asked for, or another word for it."""
    is_prose: bool = False
    """Whether it is said in passing (`I give it an 8`): a verdict that says otherwise is in doubt then."""


_TRUTH = r"true|false|yes|no|first|second|tie"
_NOUNS = {
    "winner": r"(?:winner|better (?:response|answer|one)|preferred (?:response|answer)|verdict|choice)",
    "equivalent": r"(?:equivalent|equivalence|verdict)",
}
_SCALE = (
    rf"(?:\s?(?:[(\[]|on a scale)\s?(?:out of|of|from|scale:?|max\.?|/|von|sur|de)?\s?"
    rf"(?:(?P<low>{NUMBER})\s?(?:-|–|to|\.\.|bis|à|a)\s?)?(?P<high>{NUMBER})\s?[)\]]?)?"
)
_START = (
    r"(?:^|(?<=[,;|] )(?:and |so |hence |thus )?)"
    r"(?:[^\w(\[\\<\"'“‘«「☆✩~$%>{-]|-(?=\s)|---|\d{1,2}[.)]\s){0,12}+"
)
"""What may stand before a statement: bullets, arrows, emoji, but no quotation mark."""
_VALUED = re.compile(rf"\d|[★⭐]|\b(?:{_TRUTH}|{NUMBER})|[零一二三四五六七八九十]", re.IGNORECASE)
_WORD = re.compile(
    rf"[\s\[\"'“(]*(?:the )?({_TRUTH})(?:[\s-]?(?:response|answer|one))?[\]\"'”)]*(?=$|[\s.,;:!–—-])",
    re.IGNORECASE,
)
_END = re.compile(
    r"\s?(?:[✅✔👍🎉⭐🌟💯\ufe0f]{0,5}\s?$|from me\b|です|입니다|[.!。]+(?=\s|$)"
    r"|[,;]\s?(?!or\b|\d)|[:-]\s(?!\d)|[–—]\s?(?!\d)"
    r"|[|(]|(?:because|since|as|due|given|which|for (?:the|this|its|being|a)|weil|car|porque|因为)\b)"
)
"""What may follow a value: the end, or a remark."""
_ANOTHER = re.compile(
    rf"[\s.,;:(–—-]*(?:(?:or|to|bis|à|vs|and|but|not|if|by|in|when)\b|→|->|[/|>])|,\s?(?:{_TRUTH})\b",
    re.IGNORECASE,
)
"""What makes a value one of several."""


@lru_cache(maxsize=256)
def _labelled(key: str) -> re.Pattern[str]:
    """The start of a sentence that states the value of the key."""
    noun = _NOUNS.get(key, re.escape(key).replace("_", r"[\s_-]?"))
    if key == "score":
        noun = rf"(?:{choice('score')}|(?P<verdict>{choice('verdict')})|(?P<sum>{choice('sum')}))"
    return re.compile(
        rf"{_START}(?:{choice('lead')}\s?[:,]?\s?)?(?P<quote>[\"“'])?(?:{choice('modifier')}[\s-]*){{0,3}}{noun}(?(quote)[\"”'])"
        r"(?:[\s-]*(?:final|total|finale|globale?|général|obtained|value|given|result))?"
        rf"(?: (?:for|of|to|on) (?:the|this|that)(?: \w{{1,20}}){{1,2}})?{_SCALE}"
        rf"(?P<sep>(?:\s?(?:[:=|]|->|→|{choice('is')}(?![a-z])|would be|-(?=\s)|–|—)\s?){{1,3}}"
        r"|\s(?=\[\[|\()|(?<=[^\x00-\x7f])\s?)",
        re.IGNORECASE,
    )


@cache
def _in_passing() -> tuple[re.Pattern[str], ...]:
    """Sentences in which a judge gives a score, or the response gets one, up to the score."""
    score = rf"(?=(?<![A-Za-z0-9.,/-])(?!one\b)(?:{NUMBER}|\[\[|\\boxed))"
    given = rf"(?:{words('give').pattern})[^.!?\n\d]{{0,70}}?{score}"
    between = "(?: (?:a|an|the|score|rating|grade|mark|of|only|solid|full|final|overall|well))*"
    earned = rf"\b{choice('gets')}{between}\s{score}"
    return re.compile(given, re.IGNORECASE), re.compile(earned, re.IGNORECASE)


_ALONE = re.compile(
    rf"{_START.replace('☆', '★⭐☆')}(?=[★⭐☆✩]|\[\[|{NUMBER}\s?(?:/|out of|分))", re.IGNORECASE
)


def stated(sentence: Sentence, key: str, scale: Ends) -> Stated | None:
    """The value that a sentence states as the judge's own; None where it states none, or not firmly."""
    text = sentence.text
    if len(text) > MAX_SENTENCE or not _VALUED.search(text):
        return None
    label = _labelled(key).search(text)
    spots = [label or (_ALONE.match(text) if key == "score" else re.match(r"\W*(?=\[\[)", text))]
    if key == "score":
        spots += [pattern.search(text) for pattern in _in_passing()]
    for spot in spots:
        value = _value_at(spot, key, scale, is_label=spot is label) if spot else ""
        if value and spot:
            return Stated(value, sentence.start, sentence.end, spot is label, spot is not spots[0])
    return None


def _value_at(spot: re.Match[str], key: str, scale: Ends, *, is_label: bool) -> str:
    """The value behind a spot; nothing where there is none, or it is on another scale, or not firm."""
    text, place, names = spot.string, spot.end(), spot.groupdict()
    word = _WORD.match(text, place) if key != "score" else None
    if word is not None:
        rest = text[word.end() :]
        is_firm = not _ANOTHER.match(rest) and not is_doubtful(rest, key, word[1], is_rest=True)
        return word[1].casefold() if is_firm else ""
    while place < len(text) and text[place] in " \"'“(*":
        place += 1
    found = said_at(text, place)
    before = re.sub(r"\b(?:I would|would be)\b", "", text[: spot.end()])
    if before.count("(") > before.count(")") and "=" in before[-8:]:  # an argument of a function
        return ""
    if found is None or words("others").search(before):
        return ""
    number, end = found
    rest = text[end:].lstrip("\"'”)]").rstrip(" |")
    if not _END.match(rest) or _ANOTHER.match(rest) or is_doubtful(rest, key, number.value, is_rest=True):
        return ""
    low, high = (said(names[name] or "") if name in names else None for name in ("low", "high"))
    tops = {number.of, high.value if high else None} - {None}
    if scale is not None and (
        tops - {scale[1]} or {number.low, low.value if low else None} - {None, scale[0]}
    ):
        return ""
    is_named = is_label and not names.get("verdict") and not names.get("sum")
    is_score = (
        re.search(r"\b(?:score|rating|grade|mark|an?)\s?(?:of|:)?\s?$", text[:place], re.IGNORECASE)
        or "分" in text[:end]
    )
    is_clear = is_named or tops or is_score or (names.get("verdict") and ":" in names["sep"])
    return f"{number.value:g}" if is_clear else ""


TRUTHS = {
    **dict.fromkeys(("true", "yes", "met", "passed", "pass", "satisfied", "fulfilled", "✅", "✓", "✔"), True),
    **dict.fromkeys(
        ("false", "no", "not met", "unmet", "failed", "fail", "not satisfied", "❌", "✗", "✘"), False
    ),
}
"""What stands for true and for false."""
_MARK = "|".join(TRUTHS)
_MARKS = re.compile(rf"\W*?({_MARK})(?![\w-])\W*(?:({_MARK})(?![\w-]))?", re.IGNORECASE)


def value_of(rest: str, *, is_sure: bool = True) -> str | None:
    """The value that a line states behind a name; None where it states none, or leaves a doubt."""
    rest = rest.strip()
    if found := said_at(rest, 0):
        number, end = found
        is_firm = _END.match(rest, end) and not is_doubtful(rest[end:], "score", number.value, is_rest=True)
        return rest[:end] if is_firm or not is_sure else None
    marks = _MARKS.match(rest)
    if marks is None:
        return None
    one, other = (TRUTHS.get(mark.casefold()) for mark in marks.groups(marks[1]))  # None for FAİL
    return (marks[2] or marks[1]) if one is other else None


def bare(value: object) -> object:
    """A value alone in a list or in an object of its own."""
    match value:
        case [one] | {"value": one}:
            return one
    return value


def is_same(claim: str, value: object) -> bool:
    """Whether a claim and a value mean the same."""
    meant = str(bare(value)).strip()
    one, two = said(claim.rstrip(".,")), said(meant)
    return one.value == two.value if one and two else claim.casefold() == meant.casefold()


# --- whether words leave a verdict alone --------------------------------------------------------------------

_FENCE_OPENED = re.compile(r"(?:^|\n)[ \t]{0,9}(?:`{3,6}|~{3,6})\w{0,10}[ \t]{0,9}(?:\n\s{0,9}json)?\n?$")
_REASON_TAG = re.compile(
    r"<(reason\w{0,9}|rationale|explanation|justification)>[^<]*+</\1>\s*$", re.IGNORECASE
)
_MODIFIED = re.compile(
    r"\b([^\W\d_]+(?:['’]s)?) (?:verdict|evaluation|judge?ment|assessment|score|rating|grade|output|reply)\b",
    re.IGNORECASE,
)
_ITEM = re.compile(r"\s*(?:(?:[-*•|]|\d+[.)])\s|[✅❌✔✘✓✗☑☐]\s*\w)")


def is_others(name: str) -> bool:
    """Whether a name says that what it stands for is an example, or somebody else's."""
    return words("others").search(name.replace("_", " ")) is not None


def check_introduction(before: str, *, is_object: bool = True) -> None:
    """The words that lead up to a verdict, if there are any: they must make it the judge's own."""
    text = before[-MAX_CLAUSE:] if before[-MAX_CLAUSE:].strip() else before.rstrip()[-MAX_CLAUSE:] + "\n"
    if text[text.rfind("\n") + 1 :].lstrip().startswith(">"):
        raise UnreadableVerdict("the verdict is inside a quotation")
    text = _REASON_TAG.sub("\n", _FENCE_OPENED.sub("\n", text))
    told = [one for one in sentences(text) if re.search(r"\w", one.text)]
    while told and words("reason").search(told[-1].text):
        told.pop()
    if not told:
        return
    last = told[-1].text
    line = text[text.rfind("\n", 0, told[-1].start) + 1 :].lstrip()
    if line.startswith(">"):
        raise UnreadableVerdict("the verdict is inside a quotation")
    if not is_object and line.startswith("#") and not words("own").search(last):
        raise UnreadableVerdict("the verdict is about one aspect")
    is_open = not re.search(r"[.!?。！？,;)]$", last)
    is_same_line = "\n" not in text[told[-1].end :] and not re.search(r"[.!?。！？)]$", last)
    is_led = is_same_line or words("leading").search(last) is not None
    clause = re.split(r"(?<!\be\.g)[.!?。]\s|(?<!wrong )\bbut\b", last)[-1]
    if not words("supposed").search(clause):
        clause = words("ground").sub(" therefore ", clause)
    if clause.strip() == ":":
        return
    if is_led or (
        is_open and len(last.split()) <= MAX_TITLE and not re.search(r"\d", last) and not _ITEM.match(line)
    ):
        modifiers = _MODIFIED.findall(clause) if is_object else []
        is_strange = not all(words("known").fullmatch(word) for word in modifiers)
        is_empty = is_led and not words("own").search(clause) and not words("role").search(clause)
        is_told = words("subject").search(clause) is not None
        is_own = not (words("others").search(clause) or is_strange or is_empty or is_told)
    else:
        is_run_on = is_open and not _ITEM.match(line)
        is_own = not (is_run_on and (words("supposed").search(last) or words("subject").search(last)))
    if not is_own:
        raise UnreadableVerdict("the words before the verdict do not make it the judge's own")


_QUOTATION = re.compile(
    r"\"[^\"\n]*[^\W\d_][^\"\n]*\"|“[^”\n]*[^\W\d_][^”\n]*”|「[^」\n]*」|(?<![`\w])`[^`\n]+`(?!`)"
)
_TITLE = re.compile(r"\s*#{1,6}\s|\s*\*\*[^*\n]+\*\*:?\s*$|[^.!?。！？\n]*$")
_OPENER = re.compile(r"(?:\W|(?:but|and|so|oh|ah|well|okay?|yes|then)\b)*", re.IGNORECASE)
_NUMBERED = re.compile(r"^\W*\d{1,2}[.)](?:\s|$)")


def check_sequel(after: str, key: str, value: object, scale: Ends) -> None:
    """The words behind a verdict: they may not take it back."""
    after = _QUOTATION.sub("X", after.strip())  # none of the judge's own words
    if len(after) > MAX_SEQUEL:
        raise UnreadableVerdict(f"{len(after):,} characters follow the verdict; they may take it back")
    title = ""
    for sentence in sentences(after):
        if (one := stated(sentence, key, scale)) and is_same(one.value, value):
            continue
        raw, text = after[sentence.start : sentence.end], sentence.text
        is_item = _ITEM.match(raw) is not None
        is_reason = words("reason").match(f"{title}:") is not None
        if is_doubtful(text, key, value, scale, title=title, is_item=is_item, is_rest=is_reason):
            raise UnreadableVerdict(f"what follows the verdict may take it back: {text[:40]!r}")
        if not is_item:
            is_title = text.endswith(":") or (_TITLE.match(raw) and len(text.split()) <= MAX_TITLE)
            is_title = is_title and not re.search(r"\d|:.", text)
            title = text.rstrip(":") if is_title else ""


def is_doubtful(
    text: str,
    key: str,
    value: object,
    scale: Ends = None,
    *,
    title: str = "",
    is_item: bool = False,
    is_rest: bool = False,
) -> bool:
    """Whether words beside a verdict take it back, or state another value.

    A judge turns round (`wait`, `on reflection`), or speaks of the verdict and confirms it in no way, or says
    something doubtful that it may mean the verdict by. Short words in a list, which may have a title, and as
    the rest of the verdict's own sentence (`is_rest`) mean something else.
    """
    text = words("closing").sub("", _NUMBERED.sub("", text))
    if not re.search(r"\w|[❌✗✘✖🚫]", text):
        return False
    opener = _OPENER.match(text)
    if words("turn").match(text, opener.end() if opener else 0) or words("retracted").search(text):
        return True
    is_apart = is_rest or is_item
    is_named = words("mention").search(text) is not None
    is_close = _length(text) <= (MAX_TITLE if is_apart else MAX_SHORT) or words("concluding").search(text)
    if words("doubt").search(text) and (is_close or is_named or words("self").search(text)):
        return True
    if not is_apart and len(text.split()) <= MAX_ABRUPT and words("abrupt").search(text):
        return True
    is_meant = not is_item and (is_named or (is_close and words("hint").search(text)))
    if is_meant and not any(words(name).search(text) for name in ("confirm", "hypothetical")):
        return True
    if text.endswith("?") and not words("offer").search(text):
        return True
    if isinstance(value, (dict, list)):
        return False
    if scale or key == "score":
        return _is_other_score(text, value, scale, title, is_item=is_item)
    return _is_contrary(text, key, str(value))


def _length(text: str) -> int:
    """Words, of which two characters make one where they are not spaced."""
    return len(re.findall(r"[\u3040-\u9fff\uac00-\ud7af]{1,2}|[^\s\u3040-\u9fff\uac00-\ud7af]+", text))


_SMALL = rf"(?<![\w./,-])-?(?:{NUMBER})(?![\w.,%°/:-]*\d|[%°])"
_PROPOSED = re.compile(
    rf"\ban? {_SMALL}|{_SMALL} (?:would|might|seem|feel)"
    rf"|(?:\b(?:then|case|overall|for|or)\W{{1,3}}|[:=→] ){_SMALL}\W*$"
    rf"|\b(?:cap|limit)\w*\b.*\bat {_SMALL}|\b(?:more|higher) than {_SMALL}",
    re.IGNORECASE,
)
_FRACTION = re.compile(rf"(?<![\w.])({NUMBER})\s?(?:/|out of)\s?({NUMBER})(?![\w.]*\d)", re.IGNORECASE)
_OTHER_RESPONSE = re.compile(
    r"\b(?:first|second|other|another) (?:response|answer|candidate)\b", re.IGNORECASE
)


@cache
def _amount() -> re.Pattern[str]:
    """A number that may be a score: nothing is counted or measured by it."""
    units = "分|点|點|점|балл|punkt|pont|punt"
    return re.compile(
        rf"(?:^\W*|\ban?\s|[:>→,;，、]\s?|\b{choice('amount')}\W{{1,3}}(?:an?\s)?)({_SMALL})"
        rf"(?=\W*$|[.,;!?)]|\s(?:points?|marks?|is|was|at|or(?! {_SMALL} \w+s\b)|instead|not|for|overall)\b)"
        rf"|({_SMALL})(?=\s(?:would|might|may|seems?|feels?|should|could|is (?:more|fair))\b)"
        rf"|(?<![扣减差])({_SMALL})(?=\s?(?:{units}))",
        re.IGNORECASE,
    )


_LABEL = re.compile(r"\W*([^\d:|=–—(]{2,60}?)\s*(?:\([^()]{1,20}\)\s*)?[:|=–—]")
"""What a line says that its number is."""


def _is_other_score(text: str, value: object, scale: Ends, title: str, *, is_item: bool) -> bool:
    """Whether a sentence has another score than the verdict, or speaks of another response."""
    clauses = re.split(r"[,;] but\b", text)
    text = ", but".join(
        one for one in clauses if not any(words(name).search(one) for name in ("hypothetical", "reporting"))
    )
    label = _LABEL.match(text)
    subject = label[1] if label and is_item else f"{title} {label[1] if label else ''}".strip()
    is_else = words("thing").search(subject) if not is_item else subject
    if is_else and not any(words(name).search(subject) for name in ("whole", "mention")):
        return False
    low, top = scale or (0.0, 10.0)
    fractions = _FRACTION.findall(text)
    ends = (
        rf"\b{low:g} ?(?:to|and|[-–]) ?{top:g}\b|\b(?:{low:g}|{top:g}) (?:is|being) (?:the )?(?:best|worst)\b"
    )
    text = re.sub(rf"(?<!\d)(?<!\d )(?:\bof|/|\bmax\.?) ?{top:g}\b|{ends}", "", text)  # the scale itself
    is_short = _length(text) <= MAX_SHORT
    scores = [one for one, of in fractions if is_short or is_same(of, f"{top:g}")]
    is_meant = words("mention").search(text) or words("hint").search(subject) or _PROPOSED.search(text)
    if (is_short or is_meant) and not words("deducted").search(text):
        amounts = map("".join, _amount().findall(text))
        scores += [amount for amount in amounts if (found := said(amount)) and found.value <= top]
    is_denied = re.search(rf"(?:\bnot|n['’]t|nnot)(?: \w+){{0,2}} {re.escape(str(value))}\b", text)
    return bool(is_denied or _OTHER_RESPONSE.search(text)) or any(not is_same(one, value) for one in scores)


def _is_contrary(text: str, key: str, value: str) -> bool:
    """Whether a sentence says the opposite of a verdict in words."""
    match value.casefold():
        case "first" | "second" as winner:
            return words(f"opposite of {winner}").search(text) is not None
        case "true" | "yes":
            is_denied = re.search(rf"\bnot {re.escape(key)}\b", text, re.IGNORECASE) is not None
            is_unequal = key == "equivalent" and (
                words("unequal").search(text)
                or (words("different").search(text) and not words("equivalent").search(text))
            )
            return is_denied or bool(is_unequal) or words("opposite of true").search(text) is not None
        case "false" | "no":
            is_equal = (
                key == "equivalent"
                and not words("contrast").search(text)
                and words("equivalent").search(text)
            )
            return bool(is_equal) or re.search(r"\btrue\b", text, re.IGNORECASE) is not None
    return False
