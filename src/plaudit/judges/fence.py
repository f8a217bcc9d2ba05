"""The fence around everything that is judged: blocks whose tags carry a code the content cannot contain.

The code is derived, never drawn: a hash of the judge's version and of the contents up to and including the
block. So the same sample renders to the same bytes (and the cache finds it), the samples of one group share
every byte up to the response (and the endpoint's prompt cache finds that), and nobody can write a tag that
closes a block without changing the code that would close it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from hashlib import sha256

from plaudit.errors import ConfigError
from plaudit.judges.clean import TURN, clean, is_plain
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
    texts, everything, notes = _shown(contents, max_chars)
    digest = sha256(salt)
    blocks = []
    for label, text, note in zip(contents, texts, notes, strict=True):
        digest.update(text.encode())
        code = digest.digest()[:_CODE_LENGTH].translate(_LETTERS).decode()
        while code in everything:
            digest.update(b"again")
            code = digest.digest()[:_CODE_LENGTH].translate(_LETTERS).decode()
        if TURN in text:
            text = text.replace(TURN, f"<turn-{code} ")  # noqa: PLW2901
        blocks.append(f"<{label}-{code}{note}>\n{text}\n</{label}-{code}>")
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
_LETTERS = bytes(ord("A") + byte % 26 for byte in range(256))
_CODE_LENGTH = 12
_ROLE = re.compile(r"[a-z]{1,16}")


def _shown(contents: Mapping[str, Content], max_chars: int) -> tuple[list[str], str, list[str]]:
    """What is shown of each content, all of it joined, and the note for each opening tag."""
    texts = []
    for content in contents.values():
        if not isinstance(content, str):
            break
        texts.append(content)
    else:
        everything = "\n".join(texts)
        if len(everything) <= max_chars and is_plain(everything):
            return texts, everything, [""] * len(texts)
    cleaned = [clean(_flat(label, content, max_chars)) for label, content in contents.items()]
    texts = [part.text for part in cleaned]
    return texts, "\n".join(texts), [_note(part.tokens, part.invisible) for part in cleaned]


def _flat(label: str, content: Content, max_chars: int) -> str:
    """The content as one text, each turn of a conversation opened by the mark that no content can hold."""
    if not isinstance(content, str):
        content = _transcript(label, content)
    elif TURN in content:
        content = content.replace(TURN, "\x01")
    return content if len(content) <= max_chars else cut(content, max_chars)


def _transcript(label: str, messages: object) -> str:
    if not isinstance(messages, (list, tuple)):
        raise ConfigError(f"the {label} is {type(messages).__name__}; give text, or a list of messages")
    turns = [_checked(label, message) for message in messages]
    if len(turns) == 1 and turns[0][0] == "user":
        return turns[0][1]
    return "\n".join(f"{TURN}{role}>\n{text}" for role, text in turns)


def _checked(label: str, message: Message) -> tuple[str, str]:
    try:
        role, text = message["role"], message["content"]
    except (KeyError, TypeError):
        raise ConfigError(f"the {label} has a message without `role` and `content`") from None
    if not isinstance(text, str):
        raise ConfigError(
            f"the {label} has a message whose content is {type(text).__name__}, not text; "
            "join its text parts into one string"
        )
    return (role if _ROLE.fullmatch(str(role)) else "other"), text.replace(TURN, "\x01")


def _note(tokens: int, invisible: int) -> str:
    notes = []
    if tokens:
        notes.append(f"{tokens:,} control token{'s' * (tokens > 1)} rewritten with ‹ ›")
    if invisible:
        notes.append(f"{invisible:,} invisible character{'s' * (invisible > 1)} removed")
    return f' note="{"; ".join(notes)}"' if notes else ""
