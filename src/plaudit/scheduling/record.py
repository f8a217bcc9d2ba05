"""How a verdict is kept in a cache: a small JSON object, readable in an export.

It is written as it will be read: free of charge, and from the cache. So reading it is one step.
"""

from __future__ import annotations

import math

import msgspec

from plaudit.types import Source, Status, Verdict


class _StoredUsage(msgspec.Struct, omit_defaults=True):
    prompt_tokens: int
    completion_tokens: int
    cost: float  # what it cost once is not paid again
    cached_tokens: int = 0
    reasoning_tokens: int = 0


class _Record(msgspec.Struct, omit_defaults=True):
    """The fields of a Verdict by their names; those left out are as in a new one."""

    score: float
    status: Status
    source: Source
    usage: _StoredUsage
    reason: str = ""
    model: str = ""
    took_s: float = 0.0
    paid: float = 0.0  # US dollars, for the statistics of the file
    parts: dict[str, float] = {}


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Verdict)


def encode(verdict: Verdict) -> bytes:
    """The bytes of a good verdict. Others are never stored, so there is no way to write them."""
    assert verdict.status is Status.OK and verdict.score is not None
    usage = verdict.usage
    record = _Record(
        score=verdict.score,
        status=Status.OK,
        source=Source.CACHE,
        usage=_StoredUsage(
            usage.prompt_tokens, usage.completion_tokens, 0.0, usage.cached_tokens, usage.reasoning_tokens
        ),
        reason=verdict.reason,
        model=verdict.model,
        took_s=round(verdict.latency_s, 4),
        paid=usage.cost or 0.0,
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
    """The verdict as it comes out of the cache; None for bytes that are no verdict."""
    try:
        verdict = _decoder.decode(data)
    except msgspec.DecodeError:
        return None
    is_good = verdict.status is Status.OK and verdict.score is not None and math.isfinite(verdict.score)
    return verdict if is_good else None
