"""The fence around everything that is judged: blocks whose tags carry a code the content cannot contain.

The code is derived, never drawn: a hash of the judge's version and of the contents up to and including the
block. So the same sample renders to the same bytes (and the cache finds it), the samples of one group share
every byte up to the response (and the endpoint's prompt cache finds that), and nobody can write a tag that
closes a block without changing the code that would close it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence

from plaudit.errors import ConfigError
from plaudit.judges.clean import Cleaned, clean
from plaudit.types import Message

MAX_CHARS = 200_000
"""Characters shown of one block unless a judge says otherwise: about 50,000 tokens."""

Content = str | Sequence[Message]


def fence(contents: Mapping[str, Content], *, salt: bytes, max_chars: int = MAX_CHARS) -> str:
    """Each content in its own block, under its label, in order.

        <response-KFAGBCOPLMHA>
        ...
        </response-KFAGBCOPLMHA>

    The opening tag says what was done to the content (`note="14 invisible characters removed"`). A content
    longer than `max_chars` keeps its head and its tail around a marker. Labels are the judge's own words.
    """
    shown = [(label, _show(label, content, max_chars)) for label, content in contents.items()]
    digest = hashlib.sha256(salt)
    blocks = []
    for label, cleaned in shown:
        digest.update(cleaned.text.encode())
        code = _code(digest.hexdigest())
        while any(code in other.text for _, other in shown):
            digest.update(b"again")
            code = _code(digest.hexdigest())
        text = cleaned.text.replace(_TURN, f"<turn-{code} ") if _TURN in cleaned.text else cleaned.text
        blocks.append(f"<{label}-{code}{_note(cleaned)}>\n{text}\n</{label}-{code}>")
    return "\n\n".join(blocks)


def cut(text: str, max_chars: int) -> str:
    """The text, or its head and tail around a marker that says how much is missing."""
    if len(text) <= max_chars:
        return text
    head = (max_chars + 1) // 2
    tail = max_chars - head
    missing = len(text) - max_chars
    return f"{text[:head]}\n[... {missing:,} characters left out ...]\n{text[len(text) - tail :]}"


# Letters alone: no digit of a code can be taken for a score. Capitals: rare in prose, so looking for the
# code in the contents costs next to nothing.
_LETTERS = str.maketrans("0123456789abcdef", "GHIJKLMNOPABCDEF")
_CODE_LENGTH = 12
_TURN = "\x00"
"""Stands for the start of a turn until the code is known; cleaned text cannot contain it."""
_ROLE = re.compile(r"[a-z]{1,16}")


def _code(hexdigest: str) -> str:
    return hexdigest[:_CODE_LENGTH].translate(_LETTERS)


def _show(label: str, content: Content, max_chars: int) -> Cleaned:
    if isinstance(content, str):
        return clean(content if len(content) <= max_chars else cut(content, max_chars))
    turns = [_checked(label, message) for message in content]
    if len(turns) == 1 and turns[0][0] == "user":
        return _show(label, turns[0][1], max_chars)
    room = max(max_chars // max(len(turns), 1), 1) if sum(len(text) for _, text in turns) > max_chars else 0
    cleaned = [(role, clean(cut(text, room) if room else text)) for role, text in turns]
    return Cleaned(
        "\n".join(f"{_TURN}{role}>\n{turn.text}" for role, turn in cleaned),
        tokens=sum(turn.tokens for _, turn in cleaned),
        invisible=sum(turn.invisible for _, turn in cleaned),
    )


def _checked(label: str, message: Message) -> tuple[str, str]:
    role, text = message["role"], message["content"]
    if not isinstance(text, str):
        raise ConfigError(
            f"the {label} has a {role!r} message whose content is {type(text).__name__}, not text; "
            "join its text parts into one string"
        )
    return (role if _ROLE.fullmatch(role) else "other"), text


def _note(cleaned: Cleaned) -> str:
    if not cleaned.tokens and not cleaned.invisible:
        return ""
    notes = []
    if cleaned.tokens:
        notes.append(f"{cleaned.tokens} control token{'s' * (cleaned.tokens > 1)} rewritten with ‹ ›")
    if cleaned.invisible:
        notes.append(f"{cleaned.invisible} invisible character{'s' * (cleaned.invisible > 1)} removed")
    return f' note="{"; ".join(notes)}"'
