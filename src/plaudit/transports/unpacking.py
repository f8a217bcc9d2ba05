"""Compressed bodies, unpacked no further than a reply may be long. We ask for none; some send them."""

from __future__ import annotations

import zlib

from plaudit.config import Endpoint
from plaudit.transports.client import MAX_BODY, Answer
from plaudit.transports.http_errors import broken, too_large

MOST_PARTS = 64
"""Compressed parts that a body may consist of: each takes a copy of the rest."""
_GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS


def unpacked(endpoint: Endpoint, answer: Answer) -> Answer:
    """The answer with its body as it was before it was compressed. Raises TransportFailed."""
    body = answer.body
    encodings = answer.headers.get("content-encoding", "").lower().split(",")
    for encoding in reversed([name.strip() for name in encodings]):  # the last one was applied last
        if encoding in ("gzip", "x-gzip", "deflate"):
            body = _inflated(endpoint, body)
        elif encoding not in ("", "identity"):
            raise broken(endpoint, f"the reply is compressed in a way we did not ask for ({encoding})")
    return Answer(answer.status, answer.headers, body)


def _inflated(endpoint: Endpoint, body: bytes) -> bytes:
    trouble = ""
    for window in (_GZIP_OR_ZLIB, -zlib.MAX_WBITS):  # some servers' deflate lacks the header
        try:
            found = _parts(body, window)
        except zlib.error as error:
            trouble = trouble or str(error)
            continue
        if found is None:
            raise too_large(endpoint, MAX_BODY)
        return found
    raise broken(endpoint, f"the reply's compression is damaged ({trouble})")


def _parts(body: bytes, window: int) -> bytes | None:
    """All the parts of a compressed body, one after another; None: more than MAX_BODY. Raises zlib.error."""
    unpacked = b""
    for _ in range(MOST_PARTS):
        if not body:
            return unpacked
        part = zlib.decompressobj(window)
        unpacked += part.decompress(body, MAX_BODY + 1 - len(unpacked))
        if len(unpacked) > MAX_BODY:
            return None
        if not part.eof:
            raise zlib.error("it breaks off")
        body = part.unused_data
    raise zlib.error(f"it has more than {MOST_PARTS} parts")
