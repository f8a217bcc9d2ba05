"""The HTTP client of pyreqwest (Rust), whose work is done in threads of its own. Extra `fast`.

One thing it cannot do: a call that is cancelled here goes on in its own threads until the server answers.
Its connection is never reused half-read, but it is not closed either; `timeout` bounds how long it lives.
Where that matters (a server that stops generating when the client hangs up), the others are better.
"""

from __future__ import annotations

import os
from datetime import timedelta

from pyreqwest.client import Client, ClientBuilder
from pyreqwest.exceptions import (
    ClientClosedError,
    ConnectError,
    ConnectTimeoutError,
    DetailedPyreqwestError,
    RequestTimeoutError,
)
from pyreqwest.proxy import ProxyBuilder
from pyreqwest.response import Response

from plaudit.config import Endpoint
from plaudit.errors import ConfigError, EngineClosed, PlauditError, TimedOut
from plaudit.transports.client import (
    CONNECT_TIMEOUT,
    KEEP_ALIVE,
    MAX_BODY,
    PROBE_AFTER,
    Answer,
    OnChunk,
    headers_for,
    is_passed_on,
)
from plaudit.transports.descriptors import OUT_OF_FILES
from plaudit.transports.http_errors import (
    broken,
    dropped,
    out_of_files,
    proxy_refused,
    too_large,
    unreachable,
)
from plaudit.transports.unpacking import unpacked


class PyreqwestClient:
    """Posts to one endpoint. The client is built by the first call."""

    def __init__(self, endpoint: Endpoint, *, proxy: str | None = None, timeout: float) -> None:
        self._endpoint = endpoint
        self._headers = headers_for(endpoint)
        self._proxy = proxy
        self._timeout = timeout
        self._client: Client | None = None

    async def post(self, path: str, body: bytes, on_chunk: OnChunk | None = None) -> Answer:
        client = self._client or self._open()
        request = client.post(self._endpoint.route(path)).body_bytes(body)
        if on_chunk is not None:
            request = request.streamed_read_buffer_limit(0)  # else it waits for more before it gives any
        try:
            async with request.build_streamed() as response:
                if on_chunk is not None and not is_passed_on(response.status, response.headers):
                    on_chunk = None
                answer = Answer(response.status, response.headers, await self._read(response, on_chunk))
        except DetailedPyreqwestError as error:
            failure = self._on(error)
        else:
            return unpacked(self._endpoint, answer) if "content-encoding" in answer.headers else answer
        raise failure

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    def _open(self) -> Client:
        builder = (
            ClientBuilder()
            .default_headers(self._headers)
            .follow_redirects(False)
            .gzip(False)
            .deflate(False)
            .brotli(False)
            .zstd(False)
            .connect_timeout(timedelta(seconds=CONNECT_TIMEOUT))
            .tcp_keepalive(timedelta(seconds=PROBE_AFTER))
            .pool_idle_timeout(timedelta(seconds=KEEP_ALIVE))
            .timeout(timedelta(seconds=self._timeout))
            .no_proxy()  # chosen by us, so that both clients read the environment alike
        )
        if self._proxy is not None:
            builder = builder.proxy(ProxyBuilder.all(self._proxy))
        try:
            self._client = builder.build()
        except RuntimeError as error:
            raise ConfigError(
                "pyreqwest was used before this process forked, and its threads are gone; "
                "use client 'aiohttp', or start processes with 'spawn'"
            ) from error
        return self._client

    async def _read(self, response: Response, on_chunk: OnChunk | None) -> bytes:
        reader = response.body_reader
        chunks: list[bytes] = []
        size = 0
        while (chunk := await reader.read_chunk()) is not None:
            size += len(chunk)
            if size > MAX_BODY:
                raise too_large(self._endpoint)
            chunks.append(chunk.to_bytes())
            if on_chunk is not None:
                on_chunk(chunks[-1])
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    def _on(self, error: DetailedPyreqwestError) -> PlauditError:
        causes = [cause["message"] for cause in error.details["causes"] or ()]
        cause = causes[-1] if causes else error.message
        is_sent = not any("(Connect)" in message for message in causes)
        if any(os.strerror(code) in message for code in OUT_OF_FILES for message in causes):
            return out_of_files(self._endpoint)
        match error:
            case ConnectTimeoutError():
                cause = f"no answer within {CONNECT_TIMEOUT:g} s"
                return unreachable(self._endpoint, cause, proxy=self._proxy)
            case RequestTimeoutError():
                return TimedOut(f"{self._endpoint.name}: no whole reply within {self._timeout:g} s")
            case ClientClosedError():
                return EngineClosed(f"{self._endpoint.name}: closed while a call was in flight")
            case ConnectError() if is_sent:
                return dropped(self._endpoint)
            case ConnectError() if self._proxy is not None and "auth" in cause.lower():
                return proxy_refused(self._endpoint, 407, self._proxy)
            case ConnectError():
                return unreachable(self._endpoint, cause, proxy=self._proxy)
            case _:
                return broken(self._endpoint, f"the reply broke off ({cause})")
