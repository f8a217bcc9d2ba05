"""A journal's blocks in bytes: numbers of many verdicts as one table, their texts apart, both compressed.

A reader that wants the numbers alone leaves the texts unread: so a million verdicts open in a second or two.

    head    mark, kind, records, sizes and checksums of both parts, checksum of the head itself
    facts   zlib: msgpack [names, rows]; a row is FACTS, in which words are places in `names`
    texts   zlib: msgpack [[StoredText, ...], instructions]; what judges are told is kept once a block

Nothing here needs numpy, so that a trainer with a journal does not pay for loading it.
"""

from __future__ import annotations

import contextlib
import functools
import math
import struct
import zlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from plaudit.errors import JournalError
from plaudit.journal.base import CANARY_KEY, GOLD_KEY, STEP_KEY, Exchange, Judged
from plaudit.judges.scale import unit_score
from plaudit.policy.fingerprint import EMPTY_DIGEST, prompt_digest, response_digest
from plaudit.types import ChatRequest, EmbedRequest, GenerateRequest, LikelihoodRequest, RawRequest, Request

_packing: Any = zlib
with contextlib.suppress(ImportError):
    from isal import isal_zlib as _packing  # the same format, in a third of the time

MARK = b"\xabPJ\x01"
HEAD = struct.Struct("<4sBIIIII")
HEAD_CRC = struct.Struct("<I")
HEAD_SIZE = HEAD.size + HEAD_CRC.size
MOST_BYTES = 1 << 30
"""No part of a block is larger, packed or unpacked: one that says so, or becomes so, is damage."""
LEVEL = 1
"""Of zlib: higher ones cost several times the CPU time for a tenth of the space."""
MANY = 1000
"""Elements of an array, or characters of an object's repr, that are kept of what has no form of its own."""
_NAN = math.nan
_NO_MARKS = -1, _NAN, _NAN
SESSION, VERDICTS, ACTIVITY = 1, 2, 3
"""Kinds of blocks: who writes, verdicts, and what the engine was doing in a second."""

WORDS = ("session", "run", "judge", "status", "source", "cause", "model", "endpoint")
FACTS: dict[str, str] = {
    "time": "d",
    "score": "d",
    "sample": "Q",
    "prompt": "Q",
    "group": "Q",
    "seq": "I",
    "batch": "I",
    "index": "I",
    "panel": "I",
    "step": "i",
    "unit": "f",
    "gold": "f",
    "canary": "d",
    "latency_s": "f",
    "queued_s": "f",
    "cost": "f",
    "prompt_tokens": "I",
    "completion_tokens": "I",
    "response_chars": "I",
    "sends": "I",
    "attempts": "I",
    "late": "B",
    **dict.fromkeys(WORDS, "H"),
}
"""One verdict in numbers, in the codes of `struct`. NaN is no score, no cost, no canary; step -1 is no step;
panel 0 is no panel's question."""
ROW = struct.Struct("<" + "".join(FACTS.values()))
HASHES = ("sample", "prompt", "group")
_WORDS = struct.Struct(f"<{len(WORDS)}H")
_CODES = (
    *("8s" if name in HASHES else code for name, code in FACTS.items() if name not in WORDS),
    f"{_WORDS.size}s",
)
"""A row as it is packed: hashes are bytes already, and so are its words, which many rows have in common."""


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
    first, second = _packing.compress(facts, LEVEL), _packing.compress(texts, LEVEL) if texts else b""
    head = HEAD.pack(
        MARK, kind, records, len(first), _packing.crc32(first), len(second), _packing.crc32(second)
    )
    return b"".join((head, HEAD_CRC.pack(zlib.crc32(head)), first, second))


def unpacked(part: bytes, crc: int) -> bytes:
    """One part of a block as it was before. Raises JournalError where it is damaged."""
    try:
        if zlib.crc32(part) == crc:
            unpacking = _packing.decompressobj()
            found: bytes = unpacking.decompress(part, MOST_BYTES)
            if unpacking.eof:
                return found
    except _packing.error:
        pass
    raise JournalError("a block is damaged")


def decoded(data: bytes, type_: Any, decode: Callable[..., Any] = msgspec.json.decode) -> Any:
    """What was packed into a part of a block. Raises JournalError where it is nothing of this type."""
    try:
        return decode(data, type=type_)
    except (ValueError, RecursionError) as error:  # not of this type, no text, or nested without an end
        raise JournalError(f"a block is damaged: {error}") from None


# -- verdicts ---------------------------------------------------------------------------------------------


def read_facts(facts: bytes) -> tuple[list[str], bytes]:
    """The names of a block of verdicts, and its rows."""
    names, rows = decoded(facts, tuple[list[str], bytes], msgspec.msgpack.decode)
    if len(rows) % ROW.size:
        raise JournalError("a block is damaged: a row is cut off")
    return names, rows


class Numbers(dict[str, int]):
    """Numbers for words, given as they come."""

    def __missing__(self, word: str) -> int:
        number = self[word] = len(self)
        return number


class VerdictBlock:
    """Verdicts on their way into a block. Nothing of a verdict is held on to: its bytes are.

    Args:
        session: The writer's own name; with a sequence number it names a record for good.
        run: The name of the run.
        first: The sequence number of the first verdict.
        has_text: Whether texts are kept; without, there are only numbers and hashes.
    """

    def __init__(self, session: str, run: str, *, first: int = 0, has_text: bool) -> None:
        self.end = first
        """The sequence number after those of its verdicts."""
        self.size = 0
        """Bytes that it takes in memory, roughly."""
        self._has_text = has_text
        self._names = Numbers()
        self._writer = self._names[session], self._names[run]
        self._count = 0
        self._judges: list[Any] = []
        self._words: dict[tuple[Any, ...], tuple[float, bytes]] = {}
        """What a score is worth from 0 to 1, and the last columns, which many rows have in common."""
        self._instructions: dict[str, int] = {}
        self._system: tuple[Any, int] = None, -1
        """The last first message of a request, and where it is kept."""
        self._prompts: dict[str, bytes] = {}
        """Digests: many samples have the same prompt."""
        self._rows: list[bytes] = []
        self._texts: list[bytes | bytearray] = []
        self._buffer = bytearray()
        """Where texts are packed: of its right size from the second time on."""

    def __len__(self) -> int:
        return self._count

    def add(self, judged: Iterable[Judged]) -> list[Exception]:
        """Take in verdicts. The answer is why some were left out: errors in what is the user's own.

        Most of what a journal costs are the steps taken here for each verdict. So one loop serves many of
        them, calls as few functions as it can, and leaves to others what seldom happens.
        """
        rows: list[Any] = []
        texts: list[tuple[Any, ...]] = []
        errors: list[Exception] = []
        prompts, known_words, new_digest = self._prompts, self._words, EMPTY_DIGEST.copy
        end = self.end
        prompt: Any
        for one in judged:
            try:
                sample, verdict, exchanges = one.sample, one.verdict, one.exchanges
                prompt, response, group = sample.prompt, sample.response, sample.group
                extra, usage, score = sample.extra, verdict.usage, verdict.score
                if not isinstance(response, str):
                    response = sample.text
                digest = prompts.get(prompt) if isinstance(prompt, str) else prompt_digest(prompt)
                if digest is None:
                    hashed = new_digest()
                    hashed.update(prompt.encode("utf-8", "replace"))
                    digest = prompts[prompt] = hashed.digest()
                hashed = new_digest()
                hashed.update(digest + response.encode("utf-8", "replace"))
                step, gold, canary = _marks(extra) if extra else _NO_MARKS
                sends, endpoint = 0, ""
                for exchange in exchanges:
                    sends += exchange.sends
                    endpoint = exchange.endpoint
                words = (
                    id(one.judge),
                    score,
                    verdict.status,
                    verdict.source,
                    verdict.failure,
                    verdict.model,
                    endpoint,
                )
                unit, packed_words = known_words.get(words) or self._pack_words(one, words)
                fields = self._text_of(one, response) if self._has_text else _numbers_of(one)
                rows += (
                    one.at,
                    _NAN if score is None else score,
                    hashed.digest(),
                    digest,
                    _group_digest(digest, group) if group else digest,
                    end,
                    one.batch,
                    one.position,
                    one.panel,
                    step,
                    unit,
                    gold,
                    canary,
                    verdict.latency_s,
                    one.queued_s,
                    _NAN if usage.cost is None else usage.cost,
                    usage.prompt_tokens,
                    usage.completion_tokens,
                    len(response),
                    sends,
                    verdict.attempts,
                    one.is_late,
                    packed_words,
                )
                texts.append(fields)
                end += 1
            except Exception as error:  # noqa: BLE001 - judges and samples are the user's own
                errors.append(error)
        self.end = end
        return errors + self._take_in(rows, texts)

    def _text_of(self, one: Judged, response: str) -> tuple[Any, ...]:
        """What is kept of the texts; what few verdicts have is left out where they have none of it."""
        sample, verdict = one.sample, one.verdict
        asked: Any = one.request
        if isinstance(asked, ChatRequest):
            asked = asked.messages
            if asked and asked[0] is not self._system[0]:
                self._system = asked[0], self._place(asked[0])
            if asked and (place := self._system[1]) >= 0:  # a number: a judge says the same every time
                asked = (place, asked[1]) if len(asked) == 2 else (place, *asked[1:])
        else:
            asked = shown_request(asked)
        fields = (
            sample.prompt,
            response,
            asked,
            one.exchanges,
            verdict.reason,
            verdict.error,
            sample.reference,
            sample.group,
            sample.extra,
        )
        if verdict.parts or one.serves or sample.tools or response is not sample.response:
            turns = None if response is sample.response else sample.response
            return *fields, verdict.parts, one.serves, turns, sample.tools
        return fields

    def _take_in(self, rows: list[Any], texts: list[tuple[Any, ...]]) -> list[Exception]:
        """Pack rows and texts in one go; one by one where something in them has no form in bytes."""
        count = len(texts)
        try:
            packed = _table(count).pack(*rows)
            _encode_into(texts, self._buffer)
        except Exception as error:  # noqa: BLE001 - judges and samples are the user's own
            if count > 1:
                width = len(_CODES)
                each = [(rows[n * width : (n + 1) * width], [text]) for n, text in enumerate(texts)]
                return [found for one in each for found in self._take_in(*one)]
            try:
                packed = _table(count).pack(*map(_within, rows, _CODES))
                _encode_into([_plain(text) for text in texts], self._buffer)
            except Exception:  # noqa: BLE001
                return [error]
        head = 1 if count < 16 else 3 if count < 1 << 16 else 5  # of an array; the block has one for all
        self._rows.append(packed)
        self._texts.append(self._buffer[head:])
        self._count += count
        self.size += len(packed) + len(self._texts[-1])
        return []

    def _place(self, message: Mapping[str, Any]) -> int:
        """Where a message is among those that are written once a block; -1: it is not one of them."""
        said = message.get("content")
        if message.get("role") != "system" or not isinstance(said, str):
            return -1
        return self._instructions.setdefault(said, len(self._instructions))

    def encode(self) -> bytes:
        """The block, compressed."""
        facts = _encode((list(self._names), b"".join(self._rows)))
        head = b"\x92\xdd" + len(self).to_bytes(4, "big")  # [[texts], instructions]
        texts = b"".join((head, *self._texts, _encode(_plain(list(self._instructions)))))
        return block(VERDICTS, facts, texts, records=len(self))

    def _pack_words(self, one: Judged, words: tuple[Any, ...]) -> tuple[float, bytes]:
        """What the score is worth from 0 to 1, and the last columns of a row."""
        unit = unit_score(one.verdict, one.judge)
        verdict, cause = one.verdict, one.verdict.cause or ""
        said = (judge_name(one.judge), verdict.status, verdict.source, cause, verdict.model, words[-1])
        packed = _WORDS.pack(*self._writer, *(self._names[word] for word in said))
        found = self._words[words] = _NAN if unit is None else unit, packed
        self._judges.append(one.judge)  # held on to, so that no other judge gets its id
        return found


@functools.lru_cache(maxsize=128)
def _table(rows: int) -> struct.Struct:
    return struct.Struct("<" + "".join(_CODES) * rows)


def _within(value: Any, code: str) -> Any:
    """A number that fits its column, as near as can be: an endpoint may count 10^20 tokens."""
    if code in "QIiH":
        values = 1 << 8 * struct.calcsize(f"<{code}")
        low = 0 if code.isupper() else -values // 2
        return min(max(int(value), low), low + values - 1)
    return math.copysign(math.inf, value) if code == "f" and abs(value) > 3e38 else value


def _marks(extra: Mapping[str, Any]) -> tuple[int, float, float]:
    """The step, what it truly deserves and the score that a canary needs, where a sample's extra says so."""
    step, gold, canary = extra.get(STEP_KEY), extra.get(GOLD_KEY), extra.get(CANARY_KEY)
    return (
        step if isinstance(step, int) and 0 <= step < 1 << 31 else -1,
        _NAN if gold is None else _number(gold),
        _NAN if canary is None else _number(canary),
    )


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return _NAN
    return float(value) if abs(value) < 1e300 else _NAN


def judge_name(judge: Any) -> str:
    """How a journal calls a judge: its kind and its version, which follows its prompt."""
    return f"{type(judge).__name__.lstrip('_')} {judge.version}"


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


def _as_data(value: Any) -> Any:
    """What msgpack has no form for: numpy's numbers and arrays as Python's, all else as its repr."""
    if type(value).__module__ == "numpy" and getattr(value, "size", MANY) < MANY:
        return value.tolist()
    return repr(value)[:MANY]


_encoder = msgspec.msgpack.Encoder(enc_hook=_as_data)
_encode, _encode_into = _encoder.encode, _encoder.encode_into
_decoder = msgspec.msgpack.Decoder(tuple[list[StoredText], list[str]])


def read_texts(data: bytes) -> list[StoredText]:
    """The texts of a block of verdicts, in the order of its rows."""
    try:
        records, instructions = _decoder.decode(data)
        for record in records:
            if isinstance(record.request, list) and record.request and isinstance(record.request[0], int):
                record.request[0] = {"role": "system", "content": instructions[record.request[0]]}
    except (ValueError, IndexError, RecursionError) as error:
        raise JournalError(f"a block is damaged: {error}") from None
    return records


def _numbers_of(one: Judged) -> tuple[Any, ...]:
    """The fields of a StoredText without a word of prompt, response or judge."""
    exchanges = [
        msgspec.structs.replace(exchange, reply=None, error=None, reasoning="") for exchange in one.exchanges
    ]
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
        return [_plain(part) for part in msgspec.structs.astuple(value)]
    if isinstance(value, Mapping):
        return {str(_plain(str(key))): _plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, depth + 1) for item in value]
    return _plain(_as_data(value), depth + 1)


@functools.lru_cache(maxsize=1024)
def _group_digest(prompt: bytes, group: str) -> bytes:
    return response_digest(prompt + b"group", group)
