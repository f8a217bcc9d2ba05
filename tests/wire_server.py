"""A server on a raw socket that plays a script, with good manners or bad: what transports are tested against.

async with WireServer(reply("7"), hang_up()) as server:   # the last step repeats for ever
    transport = open_transport(Endpoint(server.url("openai")))
"""

from __future__ import annotations

import asyncio
import gzip
import json
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from until import PATIENCE_S

from plaudit.config import Kind


@dataclass(frozen=True, slots=True)
class Received:
    """One request as it came in."""

    method: str
    target: str
    headers: Mapping[str, str]
    """By lower-case name."""
    body: bytes
    connection: int
    """Connections are counted from 1."""

    def json(self) -> Any:
        """The body, decoded."""
        return json.loads(self.body)


class Exchange:
    """A request waiting for its answer, and the means to give one."""

    def __init__(self, request: Received, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.request = request
        self.reader = reader
        self.writer = writer

    async def write(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def answer(self, status: int, body: bytes = b"", headers: Mapping[str, str] | None = None) -> None:
        lines = {"Content-Type": "application/json", "Content-Length": str(len(body)), **(headers or {})}
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        await self.write(f"HTTP/1.1 {status} Whatever\r\n{head}\r\n".encode() + body)

    async def until_client_leaves(self) -> None:
        while await self.reader.read(65536):
            pass


Step = Callable[[Exchange], Awaitable[None]]
"""Answers one request, or fails to."""


class WireServer:
    """Answers each request with the next step of its script, over any number of connections."""

    def __init__(self, *script: Step, tls: ssl.SSLContext | None = None) -> None:
        self._script = list(script) or [reply()]
        self._tls = tls
        self._handlers: set[asyncio.Task[None]] = set()
        self._writers: list[asyncio.StreamWriter] = []
        self._changed = asyncio.Condition()
        self.requests: list[Received] = []
        self.connections = 0
        self.open_connections = 0
        self.port = 0

    def url(self, kind: Kind, *, host: str = "127.0.0.1") -> str:
        """The base URL for an endpoint of this kind."""
        root = f"{'https' if self._tls else 'http'}://{host}:{self.port}"
        return root if kind == "ollama" else root + "/v1"

    async def until(self, is_so: Callable[[], bool]) -> None:
        """Wait until something is so, for as long as patience lasts."""
        async with asyncio.timeout(PATIENCE_S), self._changed:
            await self._changed.wait_for(is_so)

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._tls, backlog=1024)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        for handler in list(self._handlers):
            handler.cancel()
        await asyncio.gather(*self._handlers, return_exceptions=True)
        for writer in self._writers:
            writer.transport.abort()
        await asyncio.gather(*(writer.wait_closed() for writer in self._writers), return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        handler = asyncio.current_task()
        assert handler is not None
        self._handlers.add(handler)
        self._writers.append(writer)
        self.connections += 1
        self.open_connections += 1
        connection = self.connections
        try:
            while not writer.is_closing():
                request = await _receive(reader, connection)
                self.requests.append(request)
                await self._tell()
                step = self._script.pop(0) if len(self._script) > 1 else self._script[0]
                await step(Exchange(request, reader, writer))
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError, ssl.SSLError):
            pass  # the client has left, or the test is over
        finally:
            self._handlers.discard(handler)
            self.open_connections -= 1
            writer.close()
            await self._tell()

    async def _tell(self) -> None:
        async with self._changed:
            self._changed.notify_all()


def reply(text: str = "7", *, headers: Mapping[str, str] | None = None) -> Step:
    """A good reply, in the form that the route calls for."""

    async def step(exchange: Exchange) -> None:
        await exchange.answer(200, good_body(exchange.request, text), headers)

    return step


def answer(status: int, body: object = b"", *, headers: Mapping[str, str] | None = None) -> Step:
    """Any status with any body: bytes as they are, all else as JSON."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()

    async def step(exchange: Exchange) -> None:
        await exchange.answer(status, data, headers)

    return step


def zipped(text: str = "7") -> Step:
    """A good reply, compressed."""

    async def step(exchange: Exchange) -> None:
        body = gzip.compress(good_body(exchange.request, text))
        await exchange.answer(200, body, {"Content-Encoding": "gzip"})

    return step


def chunked(text: str = "7", *, size: int = 11) -> Step:
    """A good reply in many small chunks, of unstated length."""

    async def step(exchange: Exchange) -> None:
        body = good_body(exchange.request, text)
        pieces = [body[start : start + size] for start in range(0, len(body), size)]
        await exchange.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for piece in pieces:
            await exchange.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        await exchange.write(b"0\r\n\r\n")

    return step


def hang_up(*pieces: bytes, reset: bool = False) -> Step:
    """Write these bytes, if any, and close the connection: politely, or with a reset."""

    async def step(exchange: Exchange) -> None:
        for piece in pieces:
            await exchange.write(piece)
        if reset:
            await asyncio.sleep(0.01)  # let the client read what came before
            exchange.writer.transport.abort()
        exchange.writer.close()

    return step


def stall(*pieces: bytes) -> Step:
    """Write these bytes, if any, and then nothing until the client leaves."""

    async def step(exchange: Exchange) -> None:
        for piece in pieces:
            await exchange.write(piece)
        await exchange.until_client_leaves()
        exchange.writer.close()

    return step


def reply_and_close(text: str = "7") -> Step:
    """A good reply, after which the server closes the connection without having said so."""

    async def step(exchange: Exchange) -> None:
        await exchange.answer(200, good_body(exchange.request, text))
        exchange.writer.close()

    return step


def gather(count: int) -> Step:
    """Answer no request until so many have arrived."""
    barrier = asyncio.Barrier(count)

    async def step(exchange: Exchange) -> None:
        await barrier.wait()
        await exchange.answer(200, good_body(exchange.request, "7"))

    return step


def good_body(request: Received, text: str) -> bytes:
    """A reply in the form of the route: OpenAI's or Ollama's."""
    target = request.target.partition("?")[0]
    route = target.partition("//")[2].partition("/")[2] or target.lstrip("/")
    count = len(request.json().get("input", ()))
    vectors: Sequence[Sequence[float]] = [[float(index), 0.5] for index in range(count)]
    usage = {"prompt_tokens": 12, "completion_tokens": 3}
    counts = {"prompt_eval_count": 12, "eval_count": 3, "done": True, "done_reason": "stop"}
    bodies: dict[str, object] = {
        "v1/chat/completions": {
            "choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
            "model": "wire",
            "usage": usage,
        },
        "v1/completions": {"choices": [{"text": text, "finish_reason": "stop"}], "usage": usage},
        "v1/embeddings": {
            "data": [{"index": index, "embedding": vector} for index, vector in enumerate(vectors)][::-1],
            "usage": usage,
        },
        "api/chat": {"model": "wire", "message": {"role": "assistant", "content": text}, **counts},
        "api/generate": {"model": "wire", "response": text, **counts},
        "api/embed": {"model": "wire", "embeddings": vectors, "prompt_eval_count": 12},
    }
    return json.dumps(bodies[route]).encode()


async def _receive(reader: asyncio.StreamReader, connection: int) -> Received:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.rstrip().split("\r\n")
    method, target, _ = first.split(" ", 2)
    headers = {
        name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)
    }
    if headers.get("transfer-encoding") == "chunked":
        body = b""
        while size := int(await reader.readuntil(b"\r\n"), 16):
            body += (await reader.readexactly(size + 2))[:-2]
        await reader.readexactly(2)
    else:
        body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Received(method, target, headers, body, connection)
