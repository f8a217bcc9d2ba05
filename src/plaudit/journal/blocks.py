"""A journal's blocks in bytes: numbers of many verdicts as one table, their texts apart, both compressed.

A reader that wants the numbers alone leaves the texts unread: so a million verdicts open in a second or two.

    head    mark, kind, records, sizes and checksums of both parts, checksum of the head itself
    facts   zlib: msgpack [names, rows]; a row is FACTS, in which words are places in `names`
    texts   zlib: msgpack [StoredText, ...]
"""

from __future__ import annotations

import functools
import hashlib
import math
import struct
import zlib
from collections.abc import Mapping, Sequence
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
        ("sends", "<u4"),
        ("attempts", "<u4"),
        ("late", "<u1"),
        *((name, "<u2") for name in WORDS),
    ]
)
"""One verdict in numbers. NaN is no score, no cost; step -1 is no step; panel 0 is no panel's question."""


class StoredText(msgspec.Struct, array_like=True):
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
    turns: Any = None
    """The response as the turns of a trajectory, where it is one."""
    tools: Any = ()


class BlockHead(NamedTuple):
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


def read_head(data: bytes) -> BlockHead | None:
    """The head at the start of these bytes; None where there is none."""
    if len(data) < HEAD_SIZE or data[:4] != MARK:
        return None
    (crc,) = HEAD_CRC.unpack_from(data, HEAD.size)
    if zlib.crc32(data[: HEAD.size]) != crc:
        return None
    _, kind, *numbers = HEAD.unpack_from(data)
    head = BlockHead(kind, *numbers)
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
    texts = _encode_texts([one for _, one in judged], has_text=has_text)
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
    response = sample.text
    usage, last = verdict.usage, one.exchanges[-1] if one.exchanges else None
    step = sample.extra.get(STEP_KEY)
    unit = unit_score(verdict, one.judge)
    task = _prompt_digest(sample.prompt if isinstance(sample.prompt, str) else _as_text(sample.prompt))
    return (
        at,
        math.nan if verdict.score is None else verdict.score,
        _digest(task + response.encode(errors="replace")),
        int.from_bytes(task, "little"),
        _group_digest(task, sample.group or ""),
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
        len(response),
        last.sends if len(one.exchanges) == 1 and last else sum(exchange.sends for exchange in one.exchanges),
        verdict.attempts,
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
    if value is None:
        return math.nan
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number else math.nan


def judge_name(judge: Any) -> str:
    """How a journal calls a judge: its kind and its version, which follows its prompt."""
    return f"{type(judge).__name__} {judge.version}"


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


# -- texts ------------------------------------------------------------------------------------------------

_encoder = msgspec.msgpack.Encoder(enc_hook=repr)
_decoder = msgspec.msgpack.Decoder(list[StoredText])


def _encode_texts(judged: Sequence[Judged], *, has_text: bool) -> bytes:
    records = [_fields(one) if has_text else _numbers_of(one) for one in judged]
    try:
        return _encoder.encode(records)
    except (UnicodeEncodeError, OverflowError, TypeError, ValueError, RecursionError):
        return _encoder.encode(_plain(records))


def read_texts(data: bytes) -> list[StoredText]:
    """The texts of a block of verdicts, in the order of its rows."""
    try:
        return _decoder.decode(data)
    except msgspec.DecodeError as error:
        raise JournalError(f"a block is damaged: {error}") from None


def _fields(one: Judged) -> tuple[Any, ...]:
    """The fields of a StoredText. A request that repeats its sample costs little: it is compressed."""
    sample, verdict, request = one.sample, one.verdict, one.request
    return (
        sample.prompt,
        sample.text,
        request.messages if isinstance(request, ChatRequest) else shown_request(request),
        one.exchanges,
        verdict.reason,
        verdict.error,
        sample.reference,
        sample.group,
        sample.extra,
        verdict.parts,
        one.serves,
        None if isinstance(sample.response, str) else sample.response,
        sample.tools,
    )


def _numbers_of(one: Judged) -> tuple[Any, ...]:
    """The same without a word of prompt, response or judge."""
    exchanges = [exchange._replace(reply=None, error=None) for exchange in one.exchanges]
    return ("", "", None, exchanges, "", None, None, None, {}, one.verdict.parts, one.serves)


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
    if isinstance(value, Usage):
        return value
    if isinstance(value, Mapping):
        return {str(_plain(str(key))): _plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, depth + 1) for item in value]
    return _plain(repr(value))


def _as_text(turns: Sequence[Message]) -> str:
    return "\n".join(f"{turn['role']}: {turn['content']}" for turn in turns)


@functools.lru_cache(maxsize=1024)
def _prompt_digest(prompt: str) -> bytes:
    return hashlib.blake2b(prompt.encode(errors="replace"), digest_size=8).digest()


@functools.lru_cache(maxsize=1024)
def _group_digest(task: bytes, group: str) -> int:
    return _digest(task + b"group" + group.encode(errors="replace"))


def _digest(text: bytes) -> int:
    """64 bits that are the same for the same texts, in every process."""
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")
