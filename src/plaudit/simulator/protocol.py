"""HTTP/1.1 as a server reads and writes it: bytes in, requests out; replies in, bytes out. Pure.

llhttp (httptools) reads: keep-alive, pipelining, Content-Length and chunked bodies. No files, no ranges, no
compression.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser

MAX_HEAD = 64 * 1024
MAX_BODY = 64 * 1024 * 1024
_PHRASES = {status.value: status.phrase for status in HTTPStatus}


class BadRequest(Exception):
    """The client does not speak HTTP as we know it; the connection cannot be used any more."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One request, complete."""

    method: str
    path: str
    headers: Mapping[bytes, bytes]
    """By their names in lower case."""
    body: bytes
    keeps_alive: bool


class RequestReader:
    """Collects bytes until they make a request. The methods `on_...` are for the parser to call."""

    def __init__(self) -> None:
        self._parser = HttpRequestParser(self)
        self._requests: deque[HttpRequest] = deque()
        self._refusal: BadRequest | None = None
        self._wants_continue = False
        self._begin()

    def __len__(self) -> int:
        """Bytes of bodies that wait."""
        return self._size + sum(len(request.body) for request in self._requests)

    def feed(self, data: bytes) -> None:
        self._head_size += 0 if self._has_head else len(data)
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as error:
            self._refuse(400, f"the request is not HTTP/1.1 as we know it: {error}")
        if not self._has_head and self._head_size > MAX_HEAD:
            self._refuse(431, f"headers exceed {MAX_HEAD} bytes")

    def next_request(self) -> HttpRequest | None:
        """The next complete request, or None when more bytes are needed. Raises BadRequest."""
        if self._requests:
            return self._requests.popleft()
        if self._refusal is not None:
            raise self._refusal
        return None

    def take_continue(self) -> bool:
        """True, once, when the client waits for a `100 Continue` before it sends its body."""
        wanted, self._wants_continue = self._wants_continue, False
        return wanted

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.setdefault(name.lower(), value)

    def on_headers_complete(self) -> None:
        self._has_head = True
        self._wants_continue = self._headers.get(b"expect", b"").lower() == b"100-continue"
        self._check_size(int(self._headers.get(b"content-length", b"0")))

    def on_body(self, data: bytes) -> None:
        self._body.append(data)
        self._size += len(data)
        self._check_size(self._size)

    def on_message_complete(self) -> None:
        path = self._url.partition(b"?")[0].decode("latin-1")
        method, keeps_alive = self._parser.get_method().decode(), self._parser.should_keep_alive()
        self._requests.append(HttpRequest(method, path, self._headers, b"".join(self._body), keeps_alive))
        self._begin()

    def _begin(self) -> None:
        self._url = b""
        self._headers: dict[bytes, bytes] = {}
        self._body: list[bytes] = []
        self._size = self._head_size = 0
        self._has_head = False
        self._wants_continue = False

    def _check_size(self, size: int) -> None:
        if size > MAX_BODY:
            self._refuse(413, f"the body exceeds {MAX_BODY} bytes")

    def _refuse(self, status: int, message: str) -> None:
        self._refusal = self._refusal or BadRequest(status, message)


@dataclass(frozen=True, slots=True)
class Response:
    """One reply."""

    status: int
    body: bytes
    content_type: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()

    def encode(self, *, keeps_alive: bool = True) -> bytes:
        """The bytes for the socket."""
        lines = [
            f"HTTP/1.1 {self.status} {_PHRASES.get(self.status, 'Unknown')}",
            f"Content-Type: {self.content_type}",
            f"Content-Length: {len(self.body)}",
        ]
        lines += [f"{name}: {value}" for name, value in self.headers]
        if not keeps_alive:
            lines.append("Connection: close")
        return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + self.body
