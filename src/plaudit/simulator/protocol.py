"""HTTP/1.1 as a server reads and writes it: bytes in, requests out; replies in, bytes out. Pure.

Knows what clients send to an API: keep-alive, pipelining, Content-Length and chunked bodies. No files, no
ranges, no compression.
"""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus

MAX_HEAD = 64 * 1024
MAX_BODY = 64 * 1024 * 1024
_PHRASES = {status.value: status.phrase for status in HTTPStatus}


class BadRequest(Exception):
    """The client does not speak HTTP as we know it; the connection cannot be used any more."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Head:
    """The header lines of a request, searched rather than parsed: few of them are ever looked at."""

    __slots__ = ("_lines", "_lowered")

    def __init__(self, lines: bytes) -> None:
        self._lines = lines
        self._lowered = lines.lower()

    def get(self, name: bytes) -> bytes:
        """The value of a header, its name given in lower case; empty when it is not there."""
        start = self._lowered.find(b"\r\n" + name + b":")
        if start < 0:
            return b""
        start += len(name) + 3
        end = self._lines.find(b"\r\n", start)
        return self._lines[start : end if end >= 0 else None].strip()


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One request, complete."""

    method: str
    path: str
    head: Head
    body: bytes
    keeps_alive: bool


class RequestReader:
    """Collects bytes until they make a request."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._head: tuple[str, str, Head, bool] | None = None
        self._chunked = bytearray()
        self._wants_continue = False

    def __len__(self) -> int:
        return len(self._buffer)

    def feed(self, data: bytes) -> None:
        self._buffer += data

    def next_request(self) -> HttpRequest | None:
        """The next complete request, or None when more bytes are needed. Raises BadRequest."""
        if self._head is None and not self._read_head():
            return None
        assert self._head is not None
        method, path, head, keeps_alive = self._head
        body = self._read_body(head)
        if body is None:
            return None
        self._head = None
        self._wants_continue = False
        return HttpRequest(method, path, head, body, keeps_alive)

    def take_continue(self) -> bool:
        """True, once, when the client waits for a `100 Continue` before it sends its body."""
        wanted, self._wants_continue = self._wants_continue, False
        return wanted

    def _read_head(self) -> bool:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(self._buffer) > MAX_HEAD:
                raise BadRequest(431, f"headers exceed {MAX_HEAD} bytes")
            return False
        lines = self._take(end + 4)[:end].lstrip(b"\r\n")
        first, _, _ = lines.partition(b"\r\n")
        try:
            method, target, version = first.decode("ascii").split(" ")
        except ValueError:
            raise BadRequest(400, "the request line is not `METHOD PATH HTTP/1.1`") from None
        head = Head(lines[len(first) :])
        connection = head.get(b"connection").lower()
        keeps_alive = connection == b"keep-alive" if version == "HTTP/1.0" else connection != b"close"
        self._head = (method, target.partition("?")[0], head, keeps_alive)
        self._wants_continue = head.get(b"expect").lower() == b"100-continue"
        return True

    def _read_body(self, head: Head) -> bytes | None:
        if head.get(b"transfer-encoding").lower() == b"chunked":
            return self._read_chunks()
        length = _number(head.get(b"content-length") or b"0", base=10)
        return self._take(length) if len(self._buffer) >= length else None

    def _read_chunks(self) -> bytes | None:
        while (line_end := self._buffer.find(b"\r\n")) >= 0:
            size = _number(bytes(self._buffer[:line_end]).partition(b";")[0], base=16)
            if len(self._buffer) < line_end + 2 + size + 2:
                return None
            self._take(line_end + 2)
            self._chunked += self._take(size)
            self._take(2)
            if size == 0:
                body, self._chunked = bytes(self._chunked), bytearray()
                return body
            if len(self._chunked) > MAX_BODY:
                raise BadRequest(413, f"the body exceeds {MAX_BODY} bytes")
        return None

    def _take(self, count: int) -> bytes:
        data = bytes(self._buffer[:count])
        del self._buffer[:count]
        return data


def _number(text: bytes, *, base: int) -> int:
    try:
        number = int(text.strip(), base)
    except ValueError:
        number = -1
    if number < 0:
        raise BadRequest(400, f"{text[:40]!r} is no length")
    if number > MAX_BODY:
        raise BadRequest(413, f"the body exceeds {MAX_BODY} bytes")
    return number


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
