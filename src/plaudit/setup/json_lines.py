"""One line of a file: a sample to read, a verdict to add, every other byte as it was."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple, Never

import msgspec

from plaudit.errors import ConfigError
from plaudit.rows import MissingField, RowReader, kind_of, value_of
from plaudit.types import Sample, Usage, Verdict

OURS = ("score", "status", "reason", "judge", "error")
"""Fields that plaudit writes. Where the input has them already, they are replaced."""

_OURS = frozenset(OURS)
_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])


class Line(NamedTuple):
    """A line that can be scored, and the bytes it was read from."""

    number: int
    raw: bytes
    sample: Sample
    has_ours: bool = False
    """Whether it carries a field that plaudit is about to write."""


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that cannot be scored."""

    number: int
    reason: str
    lacks_field: bool = False
    """Whether a field is missing, or has another name."""

    def __str__(self) -> str:
        return f"line {self.number}: {self.reason}"


Check = Callable[[Sample], None]
"""What the judge demands of a sample: raises ConfigError where it lacks something."""


def parse(
    number: int, raw: bytes, check: Check | None = None, *, read: RowReader | None = None
) -> Line | BadLine:
    """Read one line that is not blank; `read` knows which of its fields hold what."""
    try:
        record = _record(raw)
        has_ours = not _OURS.isdisjoint(record)
        row = {name: record[name] for name in record if name not in _OURS} if has_ours else record
        sample = (read or RowReader())(row)
        if check is not None:
            check(sample)
    except ConfigError as wrong:
        return BadLine(number, str(wrong), isinstance(wrong, MissingField))
    return Line(number, raw, sample, has_ours)


def render(line: Line, verdict: Verdict) -> bytes:
    """The line with its verdict, newline included."""
    return render_all([(line, verdict)])


def render_all(lines: Iterable[tuple[Line, Verdict]]) -> bytes:
    """The lines with their verdicts, newlines included."""
    rendered: list[bytes] = []
    last, fields = None, b""
    for line, verdict in lines:
        if verdict is not last:  # past a deadline one verdict serves thousands of lines
            last, fields = verdict, _fields_of(verdict)
        theirs = without(line.raw, OURS) if line.has_ours else line.raw.strip()
        rendered += (theirs[:-1].rstrip(), fields)
    return b"".join(rendered)


class UsageFields(msgspec.Struct, omit_defaults=True):
    """Tokens and cost as JSON; cached and reasoning tokens where there are any."""

    prompt_tokens: int
    completion_tokens: int
    cost: float | None
    cached_tokens: int = 0
    reasoning_tokens: int = 0


class _JudgeFields(msgspec.Struct, omit_defaults=True):
    model: str
    attempts: int
    latency_s: float
    source: str
    usage: UsageFields
    parts: dict[str, float] = {}
    cause: str | None = None
    """In here, not beside the error: the input may have a field `cause`."""


class _VerdictFields(msgspec.Struct, omit_defaults=True):
    score: float | None
    status: str
    reason: str
    judge: _JudgeFields
    error: str | None = None


def usage_fields(usage: Usage) -> UsageFields:
    """What to write of the tokens and their cost."""
    return msgspec.convert(usage, UsageFields, from_attributes=True)


def _fields_of(verdict: Verdict) -> bytes:
    """The end of a line: what plaudit adds to it."""
    failure = verdict.failure
    judge = _JudgeFields(
        verdict.model,
        verdict.attempts,
        round(verdict.latency_s, 6),
        verdict.source,
        usage_fields(verdict.usage),
        dict(verdict.parts),
        None if failure is None else failure.cause,
    )
    ours = _VerdictFields(verdict.score, verdict.status, verdict.reason, judge, verdict.error)
    return b"," + encode(ours)[1:] + b"\n"


def read_back(written: bytes, group: str = "group") -> tuple[float | None, str | None]:
    """The score and the group of a line that `render` has written; `group` is the name of that field."""
    record = _record(written)
    name = value_of(record, group)
    return record["score"], None if name is None else str(name)


def without(raw: bytes, names: tuple[str, ...]) -> bytes:
    """An object without some of its fields; the others keep their order and their digits."""
    try:
        fields = {name: bytes(value) for name, value in _fields.decode(raw).items()}
    except msgspec.DecodeError:  # a lone surrogate, which only the standard library reads
        fields = {name: json.dumps(value).encode() for name, value in json.loads(raw).items()}
    kept = [json.dumps(name).encode() + b":" + value for name, value in fields.items() if name not in names]
    return b"{" + b",".join(kept) + b"}"


def encode(value: Any) -> bytes:
    """JSON, with text that is no Unicode (a lone surrogate) escaped rather than refused."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return json.dumps(msgspec.to_builtins(value), separators=(",", ":")).encode()


def _record(raw: bytes) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        value = _second_opinion(raw)
    if not isinstance(value, dict):
        raise ConfigError(
            f'{kind_of(value)} where an object is expected, like {{"prompt": "...", "response": "..."}}'
            + ('; jq -c ".[]" converts a list to lines' if isinstance(value, list) else "")
        )
    return value


def _second_opinion(raw: bytes) -> Any:
    """What the standard library makes of it: it reads lone surrogates, and says better what is wrong."""
    try:
        return json.loads(raw.decode(), parse_constant=_no_constant)
    except UnicodeDecodeError as error:
        if raw.startswith(b"\x1f\x8b"):
            raise ConfigError("compressed data; decompress it first, with gunzip") from None
        if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise ConfigError("UTF-16 text; save the file as UTF-8") from None
        raise ConfigError(f"not UTF-8 text (byte {error.start + 1}); save the file as UTF-8") from None
    except RecursionError:
        raise ConfigError("nested too deeply") from None
    except json.JSONDecodeError as error:
        said = error.msg.removesuffix(" starting at").removesuffix(" at")
        raise ConfigError(f"not JSON: {said} at character {error.colno}") from None


def _no_constant(name: str) -> Never:
    raise ConfigError(f"not JSON: {name} is not valid in JSON; write null instead")
