"""Compressed bodies, unpacked no further than a reply may be long. We ask for none; some send them."""

from __future__ import annotations

import contextlib
import zlib

from msgspec import structs

from plaudit.config import Endpoint
from plaudit.transports.client import MAX_BODY, Answer
from plaudit.transports.http_errors import broken, too_large

MOST_PARTS = 64
"""Compressed parts that a body may consist of: each takes a copy of the rest."""
_GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS


def unpacked(endpoint: Endpoint, answer: Answer) -> Answer:
    """The answer with its body as it was before it was compressed. Raises TransportFailed.

    An error whose body cannot be unpacked keeps its status, and loses the body.
    """
    body, trouble = answer.body, ""
    encodings = answer.headers.get("content-encoding", "").lower().split(",")
    for encoding in reversed([name.strip() for name in encodings]):  # the last one was applied last
        if encoding in ("br", "zstd", "compress"):
            trouble = f"the reply is compressed in a way we did not ask for ({encoding})"
        elif encoding in ("gzip", "x-gzip", "deflate") and body and not trouble:
            try:
                body = _inflated(body)
            except zlib.error as error:
                trouble = f"the reply's compression is damaged ({error})"
            if len(body) > MAX_BODY:
                raise too_large(endpoint)
        # Other names are no compression: some servers put the character set there.
    if trouble and 200 <= answer.status < 300:
        raise broken(endpoint, trouble)
    return structs.replace(answer, body=b"" if trouble else body)


def _inflated(body: bytes) -> bytes:
    """All the parts of a compressed body in a row, cut where they get too long. Raises zlib.error."""
    try:
        return _parts(body, _GZIP_OR_ZLIB)
    except zlib.error as error:
        with contextlib.suppress(zlib.error):
            return _parts(body, -zlib.MAX_WBITS)  # some servers' deflate lacks the header
        raise error


def _parts(body: bytes, window: int) -> bytes:
    unpacked = b""
    for _ in range(MOST_PARTS):
        part = zlib.decompressobj(window)
        unpacked += part.decompress(body, MAX_BODY + 1 - len(unpacked))
        body = part.unused_data
        if len(unpacked) > MAX_BODY or (part.eof and not body):
            return unpacked
        if not part.eof:
            raise zlib.error("it breaks off")
    raise zlib.error(f"it has more than {MOST_PARTS} parts")
