"""How a verdict is kept in a cache: a small JSON object, readable in an export."""

from __future__ import annotations

import msgspec

from plaudit.types import Source, Status, Usage, Verdict


class _Record(msgspec.Struct, omit_defaults=True):
    score: float
    reason: str = ""
    model: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    latency_s: float = 0.0
    parts: dict[str, float] = {}


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(_Record)


def encode(verdict: Verdict) -> bytes:
    """The bytes of a good verdict. Others are never stored, so there is no way to write them."""
    assert verdict.status is Status.OK and verdict.score is not None
    usage = verdict.usage
    record = _Record(
        score=verdict.score,
        reason=verdict.reason,
        model=verdict.model,
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        latency_s=round(verdict.latency_s, 4),
        parts=dict(verdict.parts),
    )
    try:
        return _encoder.encode(record)
    except UnicodeEncodeError:  # a lone surrogate in the judge's own words must not cost the verdict
        words = {
            name: getattr(record, name).encode(errors="replace").decode() for name in ("reason", "model")
        }
        return _encoder.encode(msgspec.structs.replace(record, **words))


def decode(data: bytes) -> Verdict | None:
    """The verdict as it comes out of the cache, free of charge; None for bytes that are no verdict."""
    try:
        record = _decoder.decode(data)
    except msgspec.DecodeError:
        return None
    return Verdict(
        score=record.score,
        status=Status.OK,
        reason=record.reason,
        model=record.model,
        source=Source.CACHE,
        usage=Usage(record.prompt_tokens, record.completion_tokens, 0.0),
        parts=record.parts,
    )
