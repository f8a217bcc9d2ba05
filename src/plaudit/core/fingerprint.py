"""What makes two requests the same: the whole request as sent, the model, and the judge's version."""

from __future__ import annotations

import hashlib

import msgspec

from plaudit.types import Request

_encoder = msgspec.json.Encoder(order="deterministic")


def fingerprint(request: Request, *, prefix: bytes) -> bytes:
    """32 bytes that identify a request; `prefix` comes from `fingerprint_prefix`."""
    return hashlib.sha256(prefix + _encoder.encode(request)).digest()


def fingerprint_prefix(*, model: str, version: str, kind: str = "chat") -> bytes:
    """The part that all requests of a batch share. Lengths keep fields from running into each other."""
    return b"plaudit/1|%d|%d|%d|" % (len(model), len(version), len(kind)) + f"{model}{version}{kind}".encode(
        errors="surrogatepass"
    )


def get_request_hash(request: Request, *, model: str = "", version: str = "") -> str:
    """The cache key of a request, in hexadecimal: identical requests are sent once."""
    prefix = fingerprint_prefix(model=model, version=version)
    return fingerprint(request, prefix=prefix).hex()


def jitter(key: bytes, attempt: int) -> float:
    """A number in 0..1 derived from the request and the attempt, never drawn: runs repeat exactly."""
    digest = hashlib.blake2b(key, digest_size=8, salt=attempt.to_bytes(8, "little")).digest()
    return int.from_bytes(digest, "little") / 2**64
