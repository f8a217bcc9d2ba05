"""A journal's blocks in bytes: numbers of many verdicts as one table, their texts apart, both compressed.

A reader that wants the numbers alone leaves the texts unread: so a million verdicts open in a second or two.

    head    mark, kind, records, sizes and checksums of both parts, checksum of the head itself
    facts   zlib: msgpack [names, rows]; a row is FACTS, in which words are places in `names`
    texts   zlib: msgpack [shared, records]; a text is a list of pieces, in which a number refers to `shared`
            or to another text of the record: most of a request is the judge's prompt, and the sample
"""

from __future__ import annotations

import functools
import hashlib
import math
import struct
import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from plaudit.errors import JournalError
from plaudit.journal.base import GOLD_KEY, STEP_KEY, Exchange, Judged
from plaudit.judges.scale import unit_score
from plaudit.types import (
    ChatRequest,
    EmbedRequest,
    GenerateRequest,
    LikelihoodRequest,
    Message,
    RawRequest,
    Request,
    Usage,
)

try:
    from isal.isal_zlib import compress  # the same format as zlib, in a third of the time
except ImportError:
    from zlib import compress

MARK = b"\xabPJ\x01"
HEAD = struct.Struct("<4sBIIIII")
HEAD_CRC = struct.Struct("<I")
HEAD_SIZE = HEAD.size + HEAD_CRC.size
MOST_BYTES = 1 << 30
"""No part of a block is larger; a head that says so is damage."""
LEVEL = 1
"""Of zlib: higher ones cost several times the CPU time for a tenth of the space."""
SESSION, VERDICTS, ACTIVITY = 1, 2, 3
"""Kinds of blocks: who writes, verdicts, and what the engine was doing in a second."""

WORDS = ("session", "run", "judge", "status", "source", "cause", "model", "endpoint")
FACTS = np.dtype(
    [
        ("time", "<f8"),
        ("score", "<f8"),
        ("sample", "<u8"),
        ("prompt", "<u8"),
        ("group", "<u8"),
        ("seq", "<u4"),
        ("batch", "<u4"),
        ("index", "<u4"),
        ("panel", "<u4"),
        ("step", "<i4"),
        ("unit", "<f4"),
        ("gold", "<f4"),
        ("latency_s", "<f4"),
        ("queued_s", "<f4"),
        ("cost", "<f4"),
        ("prompt_tokens", "<u4"),
        ("completion_tokens", "<u4"),
        ("response_chars", "<u4"),
        ("sends", "<u2"),
        ("attempts", "<u2"),
        ("late", "<u1"),
        *((name, "<u2") for name in WORDS),
    ]
)
"""One verdict in numbers. NaN is no score, no cost; step -1 is no step; panel 0 is no panel's question."""


class Text(msgspec.Struct, array_like=True):
    """What there is to read about one verdict."""

    prompt: Any = ""
    response: str = ""
    request: Any = None
    """Messages, or a text; None where a rule settled it."""
    exchanges: list[Exchange] = []
    reason: str = ""
    error: str | None = None
    reference: str | None = None
    group: str | None = None
    extra: Any = {}
    parts: dict[str, float] = {}
    serves: tuple[int, ...] = ()


class Head(NamedTuple):
    """What a block says about itself."""

    kind: int
    records: int
    facts_bytes: int
    facts_crc: int
    texts_bytes: int
    texts_crc: int

    @property
    def size(self) -> int:
        """Bytes of the whole block."""
        return HEAD_SIZE + self.facts_bytes + self.texts_bytes


def read_head(data: bytes) -> Head | None:
    """The head at the start of these bytes; None where there is none."""
    if len(data) < HEAD_SIZE or data[:4] != MARK:
        return None
    (crc,) = HEAD_CRC.unpack_from(data, HEAD.size)
    if zlib.crc32(data[: HEAD.size]) != crc:
        return None
    _, kind, *numbers = HEAD.unpack_from(data)
    head = Head(kind, *numbers)
    return head if max(head.facts_bytes, head.texts_bytes) <= MOST_BYTES else None


def block(kind: int, facts: bytes, texts: bytes = b"", *, records: int = 0) -> bytes:
    """A whole block, compressed and checked."""
    first, second = compress(facts, LEVEL), compress(texts, LEVEL) if texts else b""
    head = HEAD.pack(MARK, kind, records, len(first), zlib.crc32(first), len(second), zlib.crc32(second))
    return b"".join((head, HEAD_CRC.pack(zlib.crc32(head)), first, second))


def unpacked(part: bytes, crc: int) -> bytes:
    """One part of a block as it was before. Raises JournalError where it is damaged."""
    try:
        if zlib.crc32(part) == crc:
            return zlib.decompress(part)
    except zlib.error:
        pass
    raise JournalError("a block is damaged")


# -- verdicts ---------------------------------------------------------------------------------------------


def verdict_block(
    judged: Sequence[tuple[float, Judged]], *, session: str, run: str, first: int, has_text: bool
) -> bytes:
    """Verdicts with the times at which they were given, as a block.

    Args:
        judged: Unix time and verdict, for each.
        session: The writer's own name; with a sequence number it names a record for good.
        run: The name of the run.
        first: The sequence number of the first one.
        has_text: Whether texts are kept; without, there are only numbers and hashes.
    """
    names = _Names()
    writer = names[session], names[run]
    rows = [_row(at, one, first + n, names, writer) for n, (at, one) in enumerate(judged)]
    table = np.array(rows, FACTS).tobytes()
    facts = msgspec.msgpack.encode((list(names), table))
    texts = encode_texts([text_of(one) if has_text else _numbers_of(one) for _, one in judged])
    return block(VERDICTS, facts, texts, records=len(rows))


def read_facts(facts: bytes) -> tuple[list[str], np.ndarray[Any, Any]]:
    """The names and the rows of a block of verdicts."""
    try:
        names, table = msgspec.msgpack.decode(facts, type=tuple[list[str], bytes])
        return names, np.frombuffer(table, FACTS)
    except (msgspec.DecodeError, ValueError) as error:
        raise JournalError(f"a block is damaged: {error}") from None


class _Names(dict[str, int]):
    """Numbers for words, given as they come."""

    def __missing__(self, word: str) -> int:
        number = self[word] = len(self)
        return number


def _row(at: float, one: Judged, seq: int, names: _Names, writer: tuple[int, int]) -> tuple[Any, ...]:
    verdict, sample = one.verdict, one.sample
    usage, last = verdict.usage, one.exchanges[-1] if one.exchanges else None
    step = sample.extra.get(STEP_KEY)
    unit = unit_score(verdict, one.judge)
    task = _prompt_digest(sample.prompt if isinstance(sample.prompt, str) else _as_text(sample.prompt))
    return (
        at,
        math.nan if verdict.score is None else verdict.score,
        _digest(task, sample.text.encode(errors="replace")),
        int.from_bytes(task, "little"),
        _digest(task, (sample.group or "").encode(errors="replace"), b"group"),
        seq,
        one.batch,
        one.position,
        one.panel,
        step if isinstance(step, int) and 0 <= step < 1 << 31 else -1,
        math.nan if unit is None else unit,
        _number(sample.extra.get(GOLD_KEY)),
        verdict.latency_s,
        one.queued_s,
        math.nan if usage.cost is None else usage.cost,
        usage.prompt_tokens,
        usage.completion_tokens,
        len(sample.text),
        min(sum(exchange.sends for exchange in one.exchanges), 65535),
        min(verdict.attempts, 65535),
        one.is_late,
        *writer,
        names[judge_name(one.judge)],
        names[verdict.status],
        names[verdict.source],
        names[verdict.failure.cause if verdict.failure else ""],
        names[verdict.model],
        names[last.endpoint if last else ""],
    )


def _number(value: Any) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number else math.nan


def judge_name(judge: Any) -> str:
    """How a journal calls a judge: its kind and its version, which follows its prompt."""
    return f"{type(judge).__name__} {judge.version}"


def text_of(one: Judged) -> Text:
    """All there is to read about a verdict."""
    sample, verdict = one.sample, one.verdict
    return Text(
        sample.prompt,
        sample.text,
        shown_request(one.request),
        list(one.exchanges),
        verdict.reason,
        verdict.error,
        sample.reference,
        sample.group,
        dict(sample.extra),
        dict(verdict.parts),
        one.serves,
    )


def _numbers_of(one: Judged) -> Text:
    """The same without a word of prompt, response or judge."""
    exchanges = [exchange._replace(reply=None, error=None) for exchange in one.exchanges]
    return Text(exchanges=exchanges, parts=dict(one.verdict.parts), serves=one.serves)


def shown_request(request: Request | None) -> Any:
    """A request for people: messages, or a text."""
    match request:
        case ChatRequest():
            return request.messages
        case GenerateRequest():
            return request.prompt
        case LikelihoodRequest():
            return f"{request.prompt}{request.text}"
        case EmbedRequest():
            return "\n".join(request.texts)
        case RawRequest():
            return request.body.decode(errors="replace")
        case _:
            return None


# -- texts in pieces --------------------------------------------------------------------------------------

RESPONSE, PROMPT, REASON = -1, -2, -3
"""What pieces below 0 refer to; those from 0 on are places in what the block's records share."""
_LONG = 40
"""Characters from which on a text is worth a reference."""
_encoder = msgspec.msgpack.Encoder(enc_hook=repr)
_decoder = msgspec.msgpack.Decoder(tuple[list[str], list[list[Any]]])


def encode_texts(texts: list[Text]) -> bytes:
    """Texts in bytes, what they have in common only once."""
    shared = _Names()
    for text in texts:
        _cut(text, shared)
    try:
        return _encoder.encode((list(shared), texts))
    except (UnicodeEncodeError, OverflowError, TypeError, ValueError, RecursionError):
        plain = [_plain(msgspec.structs.astuple(text)) for text in texts]
        return _encoder.encode(([_plain(word) for word in shared], plain))


def read_texts(data: bytes) -> list[Text]:
    """The texts of a block of verdicts, in the order of its rows."""
    try:
        shared, records = _decoder.decode(data)
        return [_whole(Text(*record), shared) for record in records]
    except (msgspec.DecodeError, IndexError, TypeError, ValueError) as error:
        raise JournalError(f"a block is damaged: {error}") from None


def _cut(text: Text, shared: _Names) -> None:
    """Put references in place of what stands elsewhere: the sample in its request, the reason in a reply."""
    prompt = text.prompt if isinstance(text.prompt, str) else ""
    if isinstance(text.request, tuple):
        text.request = [
            (turn["role"], _pieces(turn["content"], text.response, prompt, shared)) for turn in text.request
        ]
    if len(prompt) >= _LONG:
        text.prompt = shared[prompt]
    if len(text.reason) >= _LONG and text.exchanges:
        last = text.exchanges[-1]
        before, found, after = (last.reply or "").partition(text.reason)
        if found:
            text.exchanges[-1] = last._replace(reply=(before, REASON, after))  # type: ignore[arg-type]


def _pieces(content: Any, response: str, prompt: str, shared: _Names) -> Any:
    if not isinstance(content, str) or len(content) < _LONG:
        return content
    if content in shared:
        return shared[content]
    if len(response) >= _LONG:
        before, found, after = content.partition(response)
        if found:
            first, found, second = before.partition(prompt) if len(prompt) >= _LONG else (before, "", "")
            return (first, PROMPT, second, RESPONSE, after) if found else (before, RESPONSE, after)
    return shared[content]


def _whole(text: Text, shared: list[str]) -> Text:
    """Put the texts back in place of the references."""
    if isinstance(text.prompt, int):
        text.prompt = shared[text.prompt]

    def joined(pieces: Any) -> Any:
        if isinstance(pieces, int):
            if pieces >= 0:
                return shared[pieces]
            return text.response if pieces == RESPONSE else text.prompt if pieces == PROMPT else text.reason
        return "".join(map(joined, pieces)) if isinstance(pieces, list) else pieces

    if isinstance(text.request, list):
        text.request = [{"role": role, "content": joined(content)} for role, content in text.request]
    packed: list[Any] = text.exchanges
    text.exchanges = [
        Exchange._make((endpoint, joined(reply), *facts, Usage(**usage)))
        for endpoint, reply, *facts, usage in packed
    ]
    text.serves = tuple(text.serves)
    return text


def _plain(value: Any, depth: int = 0) -> Any:
    """A value of a user's own as plain data: lone surrogates replaced, what has no form here as its repr."""
    if value is None or isinstance(value, bool | float):
        return value
    if isinstance(value, int):
        return value if -(1 << 63) <= value < 1 << 64 else str(value)
    if isinstance(value, str):
        return value.encode(errors="replace").decode()
    if depth > 20:
        return "..."
    if isinstance(value, Exchange):
        return [*(_plain(part) for part in value[:-1]), value.usage]
    if isinstance(value, dict):
        return {str(_plain(str(key))): _plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, depth + 1) for item in value]
    return _plain(repr(value))


def _as_text(turns: Sequence[Message]) -> str:
    return "\n".join(f"{turn['role']}: {turn['content']}" for turn in turns)


@functools.lru_cache(maxsize=1024)
def _prompt_digest(prompt: str) -> bytes:
    return hashlib.blake2b(prompt.encode(errors="replace"), digest_size=8).digest()


def _digest(*parts: bytes) -> int:
    """64 bits that are the same for the same texts, in every process."""
    return int.from_bytes(hashlib.blake2b(b"\0".join(parts), digest_size=8).digest(), "little")
