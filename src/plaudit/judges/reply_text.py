"""The judge's own words in a reply: without its reasoning, and what servers and tools put around them."""

from __future__ import annotations

import html
import json
import re
from bisect import bisect_right

from plaudit.errors import UnreadableVerdict
from plaudit.judges.numerals import narrow
from plaudit.judges.reply_objects import Reader
from plaudit.reasoning import CLOSE, OPEN
from plaudit.types import Reply

MAX_REPLY = 64_000
"""Characters, the judge's own reasoning aside, beyond which a reply is no verdict, whatever it contains."""
_TAG = re.compile(
    rf"(?P<open>{OPEN})|{CLOSE}|</(?:reasoning|analysis|scratchpad|thoughts?|reflection)>"
    r"|assistantfinal(?=\s*+[\[{`])"
)


def said_by(reply: Reply) -> str:
    """The text; the reasoning, where a server put the whole answer there and it is nothing but JSON."""
    thought = reply.reasoning.strip()
    is_misplaced = not reply.text.strip() and thought[:1] in ("{", "[") and thought[-1:] in ("}", "]")
    return thought if is_misplaced else reply.text


def own_words(text: str) -> str:
    """What is no reasoning: neither between its tags nor before a closing one that was never opened.

    A tag inside an object is quoted there.
    """
    tail = text[-MAX_REPLY:]
    tags = list(_TAG.finditer(tail))
    has_objects = tags and 0 <= tail.find("{") < tags[-1].start()
    spans = (
        [(found.start, found.end) for found in Reader(tail).objects() if found.is_exact]
        if has_objects
        else []
    )
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
    r"|<parameter(?:=| name=\")(\w{1,64})\"?>([^<]*+)</parameter>"
)
_CALLED = re.compile(
    r"(?:<tool_call>\s{0,4}|\[TOOL_CALLS\])[\w.-]{1,60}(?:\[ARGS\])?(?=\s{0,4}[<{])"
    r"|<(?:function=|invoke name=\")[\w.-]{1,60}\"?>"
)
_DELTA = re.compile(r'^data: ?\{.*"delta": ?\{.*"content": ?("(?:[^"\\]|\\.)*+")', re.MULTILINE)
_PIECE = re.compile(r"^data:.*$", re.MULTILINE)
_EVENT = re.compile(r"^data: ?(?:\[DONE\])?", re.MULTILINE)
_END_TOKENS = re.compile(r"(?<![^\W\d_])(?:<\|[^<]{1,60}\|>\s*){1,4}\Z")
"""Control tokens that end a reply."""
_TURN = re.compile(
    r"(?<=[^\s>])\s{0,4}(?:<\|(?:im_end|eot_id|eom_id|end|endoftext)\|>\s{0,4})?"
    r"<\|(?:im_start|start_header_id|start)\|>\s{0,4}(?:user|human)"
)
"""The next turn of a conversation, which the judge made up."""


def _unpacked(text: str) -> str:
    """The text without what servers put around it: made-up turns, events, another encoding, tags."""
    text = narrow(text)
    text = text.strip() + "\n" * text.endswith("\n")
    if "|>" in text and (turn := _TURN.search(text)):
        text = text[: turn.start()]
    if tokens := _END_TOKENS.search(text):
        text = text[: tokens.start()].rstrip()
    if text.startswith("data:"):
        joined = "".join(json.loads(part) for part in _DELTA.findall(text))
        text = joined + (_PIECE if joined else _EVENT).sub("", text).strip()
    return unwrapped(text)


_BOX = re.compile(r"(?:\$+|\\\[)?\s*\\boxed\{\s*(?=\\?\{)")


def unwrapped(text: str) -> str:
    """The text without a second encoding, and the arguments of a tool call as tags of their names."""
    text = _BOX.sub("", text)
    if "&quot;" in text:
        text = html.unescape(text)
    if re.search(r"^\\[{\[]|\\\{\s{0,9}\"\w{1,64}\"", text):  # escaped for Markdown or LaTeX
        text = re.sub(r"\\([{}\[\]_*#])", r"\1", text)
    if re.match(r"[{\[]\s*\\\"", text):
        text = f'"{text}"'
    if text[:2] in ('"{', '"[') and text.rstrip()[-2:] in ('}"', ']"') and '\\"' in text:  # encoded twice
        try:
            text = str(json.loads(text))
        except ValueError:
            return text
    return _ARGUMENT.sub(r"<\1\3>\2\4</\1\3>", _CALLED.sub("", text))
