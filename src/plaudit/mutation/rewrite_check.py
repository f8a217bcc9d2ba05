"""Whether a rewrite may take the place of a query: a question still, and not an answer, an echo or a novel.

Pure. A policy that is paid for the quality of the answer would soon have the rewriter answer the question
itself, so every rewrite is checked. A fault is described in words that never quote the rewrite.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from plaudit.judges.content import has_words
from plaudit.value_check import check_numbers


@dataclass(frozen=True, slots=True)
class RewriteCheck:
    """How far a rewrite may go. It holds for every operator; the limits are the operator's own."""

    max_growth: float = 3.0
    """Characters a rewrite may have for each one of the query..."""
    slack: int = 300
    """...and so many more: a short query has a right to a longer rewrite."""
    may_state: bool = False
    """Whether a rewrite need not ask anything, as where a question becomes a topic."""

    def __post_init__(self) -> None:
        check_numbers(self, "max_growth", low=0, high=100)
        check_numbers(self, "slack", low=0)

    def fault(
        self, query: str, rewrite: str, *, instruction: str = "", reference: str | None = None
    ) -> str | None:
        """What is wrong with the rewrite, or None. `reference` is the answer, which it must not give."""
        if not has_words(rewrite):
            return "the rewrite is empty"
        longest = int(self.slack + self.max_growth * len(query))
        if len(rewrite) > longest:
            return f"the rewrite has {len(rewrite):,} characters, and at most {longest:,} are allowed"
        if _echoes(rewrite, instruction, query):
            return "the rewrite repeats the instruction"
        if _DECLINES.match(rewrite):
            return "the model declined to rewrite"
        if _answers(rewrite) or (not self.may_state and asks(query) and not asks(rewrite)):
            return "the rewrite is an answer, not a question"
        if reference is not None and _gives(rewrite, reference) and not _gives(query, reference):
            return "the rewrite gives the answer away"
        return None


USUAL = RewriteCheck()
"""What an operator's output is held to unless it says otherwise."""


def tidy(reply: str) -> str:
    """A rewriter's reply without the wrapping that small models add: tags, a label, quotation marks."""
    text = _TAG.sub("", reply).strip()
    text = _LABEL.sub("", text, count=1).strip()
    if len(text) > 1 and text[0] in _QUOTES and text[-1] == _QUOTES[text[0]] and text[0] not in text[1:-1]:
        text = text[1:-1].strip()
    return text


def asks(text: str) -> bool:
    """Whether a text asks for something: a question mark, or a sentence that opens like a request."""
    return "?" in text or "？" in text or any(map(_ASKING.match, _sentences(text)))


ECHO = 8
"""So many words in a row that stand in the instruction and not in the query are an echo."""

_TAG = re.compile(r"</?question-[A-Z]{12}[^<>\n]{0,80}>")
_LABEL = re.compile(
    r"(?:(?:sure|certainly|of course|okay|ok)[,!.]?\s+)?"
    r"(?:here(?:['’]s| is)\s[^:\n]{0,60}:"
    r"|\**(?:the\s|my\s)?(?:(?:rewritten|revised|improved|clarified|simplified|rephrased|new|better)\s)?"
    r"(?:question|query|version|rewrite)(?:\sis)?\**\s?:\**)\s*",
    re.IGNORECASE,
)
_QUOTES = {'"': '"', "“": "”", "'": "'", "`": "`", "«": "»"}
_DECLINES = re.compile(
    r"\W*(?:(?:i['’]m|i am)\s(?:very |so |truly )?sorry|sorry\b|as an ai\b"
    r"|(?:i|we)\s(?:can['’]?t|cannot|can not|won['’]?t|am unable|['’]m unable))\b",
    re.IGNORECASE,
)
_ANSWERS = re.compile(
    r"\W*(?:yes|no|true|false)\s?[,.;:!]|\W*(?:yes|no|true|false|[-+]?[\d.,]+\s?%?)\W*$", re.IGNORECASE
)
_ANNOUNCES = re.compile(
    r"\W*(?:(?:the|my|final|short|correct|right)\s){0,2}(?:answer|solution|result)\s?(?:is\b|to\b|:|=)",
    re.IGNORECASE,
)
_ASKING = re.compile(
    r"[\W\d_]*(?:please\W+|kindly\W+|briefly\W+|step by step\W+|(?:first|then|next|finally|now)\W+){0,2}"
    r"(?:what|which|who|whom|whose|when|where|why|how|is|are|was|were|do|does|did|can|could|will|would|should"
    r"|has|have|name|give|list|explain|describe|compute|calculate|find|tell|state|define|write|solve|convert"
    r"|determine|identify|translate|compare|show|say|consider|suppose|provide|work|break|count|add|subtract"
    r"|multiply|divide|summari[sz]e|outline|answer|choose|pick|decide|complete|use|express|spell|take)\b(?!\s?:)",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"(?<=[.!?;:\n])[\s\"”’]+")
_WORD = re.compile(r"\w+(?:['’.,]\w+)*")
_NUMBERING = re.compile(r"(?:^|(?<=[.?!:;]))\s*\d{1,2}[.)]\s", re.MULTILINE)
_REMARK = re.compile(r"\([^()]*\)")
_ARTICLES = {"a", "an", "the"}
_UNTELLING = {"yes", "no", "true", "false"}
"""References that a rewrite may well name: "Answer yes or no" gives nothing away."""


def _sentences(text: str) -> list[str]:
    return _SENTENCE_END.split(text)


def _answers(rewrite: str) -> bool:
    """Whether it opens like an answer, or announces one anywhere."""
    return bool(_ANSWERS.match(rewrite)) or any(map(_ANNOUNCES.match, _sentences(rewrite)))


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _spaced(words: list[str]) -> str:
    """Words in a form in which a run of them can be looked for."""
    return f" {' '.join(words)} "


def _echoes(rewrite: str, instruction: str, query: str) -> bool:
    ordered, said, asked = _words(instruction), _spaced(_words(rewrite)), _spaced(_words(query))
    size = min(ECHO, len(ordered))
    if size < 3:  # so few words prove nothing unless they are all there is
        return bool(ordered) and said == _spaced(ordered) != asked
    runs = (_spaced(ordered[start : start + size]) for start in range(len(ordered) - size + 1))
    return any(run in said and run not in asked for run in runs)


def _gives(text: str, reference: str) -> bool:
    """Whether the text holds the answer; the numbers of a list do not count, nor do remarks in brackets."""
    answer = _words(_REMARK.sub("", reference))
    if answer[:1] and answer[0] in _ARTICLES:
        del answer[0]
    if not answer or answer[0] in _UNTELLING:
        return False
    return _spaced(answer) in _spaced(_words(_NUMBERING.sub(" ", text)))
