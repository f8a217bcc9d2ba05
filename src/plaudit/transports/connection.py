"""One kept-alive HTTP/1.1 connection: a request is written, llhttp (httptools) reads what comes back.

Connections do not pipeline: one request is under way at a time, and unrequested data closes the
connection, so that it can never pass for the answer to a later request.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from functools import lru_cache
from typing import cast

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from plaudit.config import Endpoint
from plaudit.errors import PlauditError
from plaudit.transports.client import MAX_BODY, Answer, OnChunk, is_passed_on
from plaudit.transports.http_errors import broken, dropped, too_large

MAX_HEAD = 64 * 1024
"""Bytes of a response that are neither its body nor the usual wrapping of one."""
LARGE_BODY = 1 << 20
"""Bytes from which a request is written in pieces, no faster than they leave."""
_PIECE = 1 << 18
_WRAPPING = 8
"""Bytes that a byte of body may come wrapped in: one byte a chunk takes five."""


class Connection(asyncio.Protocol):
    """Carries one exchange after another. Its owner is told when it is free, and when it is lost."""

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        on_free: Callable[[Connection], None],
        on_lost: Callable[[Connection], None],
    ) -> None:
        self.free_since = 0.0
        self._is_kept_alive = False
        self._endpoint = endpoint
        self._on_free = on_free
        self._on_lost = on_lost
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._is_over = False
        self._parser = HttpResponseParser(self)
        self._waiter: asyncio.Future[Answer] | None = None
        self._writable: asyncio.Future[None] | None = None
        self._is_written = True
        self._received = 0
        self._headers: dict[str, str] = {}
        self._has_headers = False
        self._keeps_alive = False
        self._body: list[bytes] = []
        self._size = 0
        self._answer: Answer | None = None
        self._on_chunk: OnChunk | None = None

    @property
    def is_open(self) -> bool:
        return self._transport is not None and not self._is_over and not self._transport.is_closing()

    async def exchange(self, head: bytes, body: bytes, on_chunk: OnChunk | None = None) -> Answer:
        """Send one request and read its answer; see `HttpClient.post`. Cancelling it ends the connection."""
        transport = self._transport
        if transport is None or self._is_over:
            raise dropped(self._endpoint, is_kept_alive=self._is_kept_alive)
        waiter: asyncio.Future[Answer] = self._loop.create_future()
        self._waiter = waiter
        self._received = self._size = 0
        self._has_headers = False
        self._on_chunk = on_chunk
        try:
            if len(body) < LARGE_BODY:
                transport.write(head + body)
            else:
                await self._write_large(transport, head, body)
            return await waiter
        except BaseException:  # cancelled in mid-reply: half a reply must not go to the next request
            self.abort()
            raise

    def abort(self) -> None:
        """Close the connection now. An exchange under way fails."""
        self._is_over = True
        if self._transport is not None:
            self._transport.abort()

    # -- called by the event loop -------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if self._is_over:  # behind a tunnel it may be lost, or be talked to, before it is handed over
            cast("asyncio.Transport", transport).abort()
            return
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is one without saying so

    def data_received(self, data: bytes) -> None:
        waiter = self._waiter
        if waiter is None or waiter.done():
            self.abort()
            return
        self._received += len(data)
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as error:
            if self._answer is None:
                self._fail(self._unreadable(error))
                return
            self._keeps_alive = False  # the answer was whole, and something else followed it
        if self._size > MAX_BODY:
            self._fail(too_large(self._endpoint))
        elif self._answer is not None:
            self._finish(self._answer)
        elif self._received - _WRAPPING * self._size > MAX_HEAD:
            self._fail(broken(self._endpoint, f"the answer's headers are larger than {MAX_HEAD >> 10} KiB"))

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_over = True
        self._on_lost(self)
        self._transport = None
        self.resume_writing()
        waiter = self._waiter
        if waiter is None or waiter.done():
            return
        if self._has_headers and exc is None and not _LENGTHS & self._headers.keys():
            self._finish(self._whole())  # its end is the connection's, as in HTTP/1.0
        elif isinstance(exc, ssl.SSLError):
            self._fail(broken(self._endpoint, f"TLS failed ({exc})"))
        elif not self._received:
            self._fail(dropped(self._endpoint, is_kept_alive=self._is_kept_alive))
        elif not self._has_headers:
            self._fail(broken(self._endpoint, "the reply broke off in its headers"))
        else:
            cause = "closed too early" if exc is None else type(exc).__name__
            self._fail(broken(self._endpoint, f"the reply broke off ({cause})"))

    def pause_writing(self) -> None:
        self._writable = self._loop.create_future()

    def resume_writing(self) -> None:
        writable, self._writable = self._writable, None
        if writable is not None and not writable.done():
            writable.set_result(None)

    # -- called by the parser -----------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        if self._answer is not None:
            self._keeps_alive = False  # a second answer to one request
            return
        self._headers = {}
        self._has_headers = False
        self._body = []

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._has_headers:  # else it is a trailer
            self._headers.setdefault(_lowered(name), value.decode("latin-1"))

    def on_headers_complete(self) -> None:
        if self._answer is not None:
            return
        self._has_headers = True
        self._keeps_alive = self._parser.should_keep_alive()
        if self._on_chunk is not None:
            status = self._parser.get_status_code()
            if status >= 200 and not is_passed_on(status, self._headers):
                self._on_chunk = None
        length = self._headers.get("content-length")
        if length is not None and int(length) > MAX_BODY:
            self._size = int(length)

    def on_body(self, data: bytes) -> None:
        self._size += len(data)
        self._body.append(data)
        if self._on_chunk is not None and self._answer is None:
            self._on_chunk(data)

    def on_message_complete(self) -> None:
        if self._answer is not None:
            return
        if self._parser.get_status_code() < 200:  # 100 Continue and its like come before the answer
            self._has_headers = False
        else:
            self._answer = self._whole()

    # -- ends ---------------------------------------------------------------------------------------------

    def _whole(self) -> Answer:
        body = self._body
        whole = body[0] if len(body) == 1 else b"".join(body)
        return Answer(self._parser.get_status_code(), self._headers, whole, self._is_kept_alive)

    def _finish(self, answer: Answer) -> None:
        waiter, transport = self._waiter, self._transport
        self._waiter = self._answer = None
        if self._writable is not None:
            self.resume_writing()
        if transport is not None:
            if self._keeps_alive and self._is_written and not transport.get_write_buffer_size():
                self._is_kept_alive = True
                self.free_since = self._loop.time()
                self._on_free(self)
            else:
                transport.abort()
        if waiter is not None:
            waiter.set_result(answer)

    def _fail(self, error: PlauditError) -> None:
        waiter, self._waiter = self._waiter, None
        self.resume_writing()
        self.abort()
        if waiter is not None and not waiter.done():
            waiter.set_exception(error)

    def _unreadable(self, error: Exception) -> PlauditError:
        if self._has_headers and not isinstance(error, HttpParserUpgrade):
            return broken(self._endpoint, f"the reply's body is not HTTP ({error})")
        reason = "an upgrade" if isinstance(error, HttpParserUpgrade) else error
        return broken(self._endpoint, f"the answer is not HTTP ({reason}); check the URL's scheme and port")

    # -- large requests -----------------------------------------------------------------------------------

    async def _write_large(self, transport: asyncio.Transport, head: bytes, body: bytes) -> None:
        """Write no faster than it leaves, and stop if an answer comes before the end."""
        waiter = self._waiter
        assert waiter is not None
        self._is_written = False
        transport.write(head)
        view = memoryview(body)
        for start in range(0, len(body), _PIECE):
            if waiter.done():
                return
            transport.write(view[start : start + _PIECE])
            if self._writable is not None:
                await self._writable
            else:
                await asyncio.sleep(0)
        self._is_written = True


_LENGTHS = {"content-length", "transfer-encoding"}


@lru_cache(maxsize=512)
def _lowered(name: bytes) -> str:
    return name.lower().decode("latin-1")
