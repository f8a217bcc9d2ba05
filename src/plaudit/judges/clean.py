"""What a judge may see of a hostile text: control tokens defused, invisible characters removed, both counted.

Chat-template tokens (`<|im_start|>`, `[INST]`, `</s>`) could end the message they stand in; their brackets
become ‹ and ›, which no tokenizer takes for control. Invisible characters could carry orders that no human
reader sees. Emoji sequences, accents, every script, code and mathematics pass unchanged.
"""

from __future__ import annotations

import re
from typing import NamedTuple

TURN, CUT = "\x00", "\x01"
"""The control characters that pass: the fence takes them out of the content, and marks turns and cuts."""


class Cleaned(NamedTuple):
    """A text that is safe to show, and what had to be done to it."""

    text: str
    tokens: int = 0
    """Chat-template tokens whose brackets were rewritten."""
    invisible: int = 0
    """Invisible characters that were removed."""


def is_plain(text: str) -> bool:
    """Whether there is nothing to clean, as one quick look can tell. Most text is."""
    return not (_may_hold_tokens(text) or text.encode("utf-8", "surrogatepass").translate(None, _USUAL))


def clean(text: str) -> Cleaned:
    """The text without invisible characters and with control tokens defused. Linear; always encodable."""
    tokens = invisible = 0
    unusual = text.encode("utf-8", "surrogatepass").translate(None, _USUAL)
    if unusual and _SUSPECT.search(unusual.decode("utf-8", "replace")):
        text, invisible = _without_invisible(text)
    if _may_hold_tokens(text):
        text, tokens = _without_tokens(text)
    return Cleaned(text, tokens, invisible)


def without_tokens(text: str) -> str:
    """The text with every control token cut out: what is left of it where tokens count for nothing."""
    return _TOKEN.sub("", text) if _may_hold_tokens(text) else text


def certain_tokens(text: str) -> int:
    """How many control tokens there are that cannot be anything else, such as XML or code."""
    return sum(1 for _ in _CERTAIN.finditer(text))


def _may_hold_tokens(text: str) -> bool:
    return "<" in text or "[" in text or "]~" in text or "◁" in text


# --- chat-template tokens -----------------------------------------------------------------------------------

# By their shape, since every family of models has its own: one word in brackets, with bars (`<|im_start|>`,
# `[|user|]`), with a word part that only tokens have (`<start_of_turn>`, `<extra_id_1>`, `[TOOL_CALLS]`), or
# all in capitals (`<BOS_TOKEN>`). Case matters where words do: tokenizers match exactly, and `<S>` in a proof
# is no token. Repetitions are bounded, so the search is linear.
_BARRED = r"[|｜][^\s<>\[\]|｜‹›]{1,64}[|｜]|/?｜\w{1,64}｜\w{0,32}"
_HALF_BARRED = r"[|｜][^\s<>\[\]|｜‹›]{1,64}|[a-z/][^\s<>\[\]|｜‹›]{0,63}[|｜]"
_PART = (
    r"(?:_of_|_id_?\d|header_id|im_(?:start|end)|[bBeE][oO][sStTdD]\b|special_|SPECIAL_|reserved_|unused|extra_id"
    r"|token|sentence|think|tool_|arg_key|arg_value|fim_|seed:|longcat_)"
)
_WORD = rf"/?(?=[\w:▁-]{{0,48}}{_PART})[\w:▁-]{{1,64}}"
_SHORT = r"/?(?:s|[bes]o[a-z]|eosys|pad|unk|mask|sep|cls|role|thinking|think|_[a-z]{2,16})"
_CAPITALS = r"/?[A-Z][A-Z0-9]{0,31}(?:_[A-Z0-9]{1,32}){1,4}"
_CAPITAL_PART = r"(?:INST|SYS|TOOL|THINK|MASK|[BE]O[SDT]|SEP|CLS|PAD|UNK|TOKEN|UNUSED|CONTROL|PROMPT|IMG)"
_CAPITAL_WORD = rf"/?(?=[A-Z0-9_]{{0,32}}{_CAPITAL_PART})[A-Z][A-Z0-9_]{{1,64}}"
_TOKEN = re.compile(
    rf"<(?=[|｜/A-Za-z_][^\s<>]{{0,67}}>)({_BARRED}|{_HALF_BARRED}|{_SHORT}|{_CAPITALS}|{_WORD})>"
    rf"|\[(?=[|｜/A-Za-z][^\s\[\]]{{1,67}}\])({_BARRED}|{_CAPITAL_WORD}|[gs]MASK|(?:start|end)_header_id)\]"
    r"|<<(?=[/A-Z])(/?[A-Z]{2,16})>>|>>([A-Z]{4,16})<<"
    r"|<\[([\w▁-]{1,64})\]>|◁(/?\w{1,32})▷|\](~!?[a-z]{1,16})[\[\]]|\[([a-z]{1,16}~)\["
)
_ALL = tuple(zip("<>[]◁▷", "‹›‹›‹›", strict=True))
_MANY = 2_000
"""Tokens, or one bracket in `_DENSE` characters: whatever that is, all of its brackets go, which is quick."""
_DENSE = 8


def _without_tokens(text: str) -> tuple[str, int]:
    brackets = text.count("<") + text.count("[") + text.count("◁")
    if brackets < max(_MANY, len(text) // _DENSE):
        text, tokens = _TOKEN.subn(r"‹\1\2\3\4\5\6\7\8›", text, count=_MANY)
        if tokens < _MANY:
            return text, tokens
    for bracket, safe in _ALL:  # much quicker than str.translate where a text has wide characters
        text = text.replace(bracket, safe)
    return text, brackets


_CERTAIN = re.compile(
    rf"<(?:{_BARRED}|/?s|(?:start|end)_of_turn|im_(?:start|end))>|\[(?:{_BARRED}|/?INST)\]|<</?SYS>>"
)
"""Tokens that no other kind of text has: XML and code have words in brackets, too."""


# --- invisible characters -----------------------------------------------------------------------------------

_USUAL = bytes([*b"\t\n", *range(0x20, 0x7F)])
"""Bytes that hide nothing. Deleting them leaves the few characters of a text that are worth a look."""
_LINE_BREAKS = ("\r\n", "\r", "\v", "\f", "\x85", "\u2028", "\u2029")
_INVISIBLE = (
    "\x02-\x08\x0b-\x1f\x7f-\x9f"  # control characters; tab and line feed stay
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"  # soft hyphen, joiners and fillers
    "\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f"  # zero-width space, bidirectional controls
    "\u3164\ufdd0-\ufdef\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff"
    "\ud800-\udfff"  # lone surrogates: not encodable
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e00ff\U000e01f0-\U000e0fff"  # tags: a whole hidden ASCII
)

_PICTURE = "\u00a9\u00ae\u203c-\u3299\U0001f000-\U0001faff"
_IDEOGRAPH = "\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_JOINED_SCRIPT = "\u0600-\u0dff\u0f00-\u109f\u1780-\u18af\ufb50-\ufdcf\ufe70-\ufefc"
_SELECTOR = "\ufe00-\ufe0f"
_IDEOGRAPH_SELECTOR = "\U000e0100-\U000e01ef"
_JOINER = "\u200c\u200d"
_MISPLACED = re.compile(
    rf"[{_JOINER}{_SELECTOR}{_IDEOGRAPH_SELECTOR}]"
    "(?!"  # unless it is in its place:
    rf"(?<=[{_PICTURE}{_IDEOGRAPH}][{_SELECTOR}])"  # right behind what it varies,
    rf"|(?<=[{_IDEOGRAPH}][{_IDEOGRAPH_SELECTOR}])"
    r"|(?<=[0-9#*]\ufe0f)\u20e3"  # within a keycap,
    rf"|(?:(?<=[{_PICTURE}]\u200d)|(?<=[{_PICTURE}]\ufe0f\u200d))[{_PICTURE}]"  # between two pictures,
    rf"|(?<=[{_JOINED_SCRIPT}][{_JOINER}])[{_JOINED_SCRIPT}]"  # or inside a word of a script that needs it
    rf")[{_SELECTOR}{_IDEOGRAPH_SELECTOR}]*+"
)
_ANY_PLACE = re.compile(rf"[{_JOINER}{_SELECTOR}{_IDEOGRAPH_SELECTOR}]+")
_MANY_MISPLACED = 5_000
# A lone surrogate is decoded as U+FFFD, so that is suspect too.
_SUSPECT = re.compile(rf"[\r\v\f\x85\u2028\u2029\ufffd{_JOINER}{_SELECTOR}{_IDEOGRAPH_SELECTOR}{_INVISIBLE}]")
_ALWAYS = re.compile(f"[{_INVISIBLE}]+")


def _without_invisible(text: str) -> tuple[str, int]:
    for line_break in _LINE_BREAKS:
        text = text.replace(line_break, "\n")
    before = len(text)
    text, misplaced = _MISPLACED.subn("", _ALWAYS.sub("", text), count=_MANY_MISPLACED)
    if misplaced == _MANY_MISPLACED:  # whatever that is, it is quicker to take out all of them
        text = _ANY_PLACE.sub("", text)
    return text, before - len(text)
