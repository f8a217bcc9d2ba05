"""What an HTTP client is to a transport: post bytes, get bytes; no opinions about what they say."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Mapping
from typing import Protocol

import msgspec

from plaudit.config import Endpoint

MAX_BODY = 16 * 1024 * 1024
"""Bytes of a reply, unpacked, that are read before it counts as broken."""
CONNECT_TIMEOUT = 15.0
"""Seconds to get a connection, TLS included. The only time kept here: nothing has been sent yet."""
KEEP_ALIVE = 20.0
"""Seconds an idle connection is kept."""
PROBE_AFTER = 60
"""Seconds of silence after which the system asks whether the other side is still there.

Gateways forget connections that are silent for some minutes, as they are while a judge reasons, and no one is
told: neither side hears of the other again.
"""


class Answer(msgspec.Struct, frozen=True):
    """An HTTP response: whatever its status, it has been read to its end."""

    status: int
    headers: Mapping[str, str]
    """Ignores case, or has lower-case names."""
    body: bytes
    is_kept_alive: bool | None = None
    """Whether the connection had served another request before; None: the client cannot tell."""


OnChunk = Callable[[bytes], None]


class HttpClient(Protocol):
    """Posts to one endpoint over kept-alive connections. Lives on one event loop; connects when first used.

    A post is one request on the wire: it is never sent twice. Follows no redirects, reads no `.netrc`, and
    unpacks no more than MAX_BODY. Raises only Unreachable, OutOfFiles, TransportFailed (Dropped where no byte
    came back), EndpointRefused (a proxy's) and ConfigError.
    """

    async def post(self, path: str, body: bytes, on_chunk: OnChunk | None = None) -> Answer:
        """Send one body to a route of the endpoint. Cancelling it abandons the connection.

        `on_chunk` is called with each piece of the body, as it comes, where the status is a success and the
        body is not compressed.
        """
        ...

    async def close(self) -> None:
        """Close every connection. Safe to call twice."""
        ...


def is_passed_on(status: int, headers: Mapping[str, str]) -> bool:
    """Whether a body with this head is one that `on_chunk` is called with."""
    return 200 <= status < 300 and "content-encoding" not in headers


def probe(connection: socket.socket) -> None:
    """Have the system send probes over a connection that is silent (TCP keepalive)."""
    idle = getattr(socket, "TCP_KEEPIDLE", None) or getattr(socket, "TCP_KEEPALIVE", None)  # Linux, macOS
    with contextlib.suppress(OSError):  # it is closed already
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if idle is not None:
            connection.setsockopt(socket.IPPROTO_TCP, idle, PROBE_AFTER)


def headers_for(endpoint: Endpoint) -> dict[str, str]:
    """The headers of every request to the endpoint."""
    ours = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "plaudit"}
    named = {name.lower() for name in endpoint.headers}
    headers = {name: value for name, value in ours.items() if name.lower() not in named}
    headers |= endpoint.headers
    if endpoint.key is not None:
        headers["Authorization"] = f"Bearer {endpoint.key.strip()}"
    return headers
