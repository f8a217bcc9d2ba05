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
    return not ("<" in text or "[" in text or text.encode("utf-8", "surrogatepass").translate(None, _USUAL))


def clean(text: str) -> Cleaned:
    """The text without invisible characters and with control tokens defused. Linear; always encodable."""
    tokens = invisible = 0
    unusual = text.encode("utf-8", "surrogatepass").translate(None, _USUAL)
    if unusual and _SUSPECT.search(unusual.decode("utf-8", "replace")):
        text, invisible = _without_invisible(text)
    if _ANGLED.search(text) or _SQUARE.search(text):
        text, tokens = _defuse(text)
    return Cleaned(text, tokens, invisible)


def without_tokens(text: str) -> str:
    """The text with every control token cut out: what is left of it where tokens count for nothing."""
    return _SQUARE.sub("", _ANGLED.sub("", text))


# --- chat-template tokens -----------------------------------------------------------------------------------

# Case matters: tokenizers match these exactly, and `<S>` in a proof is no token.
_ANGLED_NAMES = (
    *("s", "/s", "bos", "eos", "pad", "unk", "im_start", "im_end"),
    *("start_of_turn", "end_of_turn", "think", "/think", "thinking", "/thinking"),
    *("tool_call", "/tool_call", "tool_response", "/tool_response"),
)
_SQUARE_NAMES = (
    *("INST", "/INST", "SYSTEM_PROMPT", "/SYSTEM_PROMPT", "THINK", "/THINK", "TOOL_CALLS"),
    *("AVAILABLE_TOOLS", "/AVAILABLE_TOOLS", "TOOL_RESULTS", "/TOOL_RESULTS"),
)
_HARMLESS = {
    **{f"<{name}>": f"‹{name}›" for name in _ANGLED_NAMES},
    **{f"[{name}]": f"‹{name}›" for name in _SQUARE_NAMES},
    **{f"<<{name}>>": f"‹{name}›" for name in ("SYS", "/SYS")},
}
# `<|name|>`, `<|name>` and `<name|>`, with ASCII or full-width bars. Bounded, so linear.
# Each starts with one literal, which is what makes the search skip through ordinary text.
_ANGLED = re.compile(
    rf"<(?:(?=[|｜/a-z])(?:{'|'.join(_ANGLED_NAMES)}|[|｜][^\s<>|｜]{{1,64}}[|｜]?|[a-z/][^\s<>|｜]{{0,63}}[|｜])"
    r"|</?SYS>)>"
)
_SQUARE = re.compile(rf"\[(?=[A-Z/])(?:{'|'.join(_SQUARE_NAMES)})\]")


def _defuse(text: str) -> tuple[str, int]:
    # Plain replaces, not a callback per match: a text made of nothing but tokens stays cheap.
    tokens = 0
    for token, harmless in _HARMLESS.items():
        if found := text.count(token):
            tokens += found
            text = text.replace(token, harmless)
    if _ANGLED.search(text):  # of the barred family: its openers and closers go wherever they stand
        for bar in "|｜":
            tokens += max(text.count("<" + bar), text.count(bar + ">"))
            text = text.replace("<" + bar, "‹" + bar).replace(bar + ">", bar + "›")
    return text, tokens


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
# A lone surrogate is decoded as U+FFFD, so that is suspect too.
_SUSPECT = re.compile(rf"[\r\v\f\x85\u2028\u2029\ufffd{_JOINER}{_SELECTOR}{_IDEOGRAPH_SELECTOR}{_INVISIBLE}]")
_ALWAYS = re.compile(f"[{_INVISIBLE}]+")


def _without_invisible(text: str) -> tuple[str, int]:
    for line_break in _LINE_BREAKS:
        text = text.replace(line_break, "\n")
    before = len(text)
    text = _MISPLACED.sub("", _ALWAYS.sub("", text))
    return text, before - len(text)
