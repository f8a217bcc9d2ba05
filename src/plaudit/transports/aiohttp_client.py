"""The HTTP client of aiohttp, on the engine's own event loop.

What costs time per request is switched off here: cookies, timers (the scheduler keeps time), the pool's limit
(so does it), and the lookup of proxies, which is done once.
"""

from __future__ import annotations

import io
import socket
import ssl
from functools import cache
from typing import Any

import aiohttp
from yarl import URL

from plaudit.config import Endpoint
from plaudit.errors import PlauditError
from plaudit.transports.client import (
    CONNECT_TIMEOUT,
    KEEP_ALIVE,
    MAX_BODY,
    Answer,
    OnChunk,
    headers_for,
    is_passed_on,
    probe,
)
from plaudit.transports.descriptors import is_out_of_files
from plaudit.transports.http_errors import (
    broken,
    dropped,
    out_of_files,
    proxy_refused,
    system_words,
    too_large,
    unreachable,
)
from plaudit.transports.unpacking import unpacked

_LARGE_BODY = 1 << 20
"""Bytes from which a body is streamed, so that writing it does not hold up the loop."""
_DNS_CACHE = 300


class AiohttpClient:
    """Posts to one endpoint. The session is opened by the first call."""

    def __init__(self, endpoint: Endpoint, *, proxy: str | None = None) -> None:
        self._endpoint = endpoint
        self._proxy = proxy
        # Not the session's default headers: aiohttp sends those to the proxy too, and with them the key.
        self._options: dict[str, Any] = {"headers": headers_for(endpoint), "allow_redirects": False}
        if proxy is not None:
            self._options["proxy"] = URL(proxy)
        self._url = cache(lambda path: URL(endpoint.route(path)))
        self._session: aiohttp.ClientSession | None = None

    async def post(self, path: str, body: bytes, on_chunk: OnChunk | None = None) -> Answer:
        session = self._session or self._open()
        data = body if len(body) < _LARGE_BODY else io.BytesIO(body)
        try:
            response = await session.post(self._url(path), data=data, **self._options)
        except (aiohttp.ClientError, OSError) as error:
            failure = self._on_sending(error)
        else:
            try:
                if on_chunk is not None and not is_passed_on(response.status, response.headers):
                    on_chunk = None
                answer = Answer(response.status, response.headers, await self._read(response, on_chunk))
            except (aiohttp.ClientError, OSError) as error:
                response.close()
                failure = broken(self._endpoint, f"the reply broke off ({_words(error)})")
            except BaseException:
                response.close()  # cancelled in mid-reply: half a reply must not go back to the pool
                raise
            else:
                return unpacked(self._endpoint, answer) if "content-encoding" in answer.headers else answer
        raise failure  # outside the handlers: the foreign exception holds the headers, and so the key

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _open(self) -> aiohttp.ClientSession:
        secure = self._endpoint.url.startswith("https:") or (self._proxy or "").startswith("https:")
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=0,
                ttl_dns_cache=_DNS_CACHE,
                keepalive_timeout=KEEP_ALIVE,
                socket_factory=_socket,
                # Made now and not by aiohttp at import, so that SSL_CERT_FILE counts whenever it was set.
                ssl=ssl.create_default_context() if secure else True,
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            skip_auto_headers=["Accept-Encoding"],
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT),
        )
        return self._session

    async def _read(self, response: aiohttp.ClientResponse, on_chunk: OnChunk | None) -> bytes:
        length = response.content_length
        if length is not None and length > MAX_BODY:
            raise too_large(self._endpoint)
        if length is not None and on_chunk is None:
            return await response.read()
        chunks: list[bytes] = []
        size = 0
        async for chunk in response.content.iter_any():
            size += len(chunk)
            if size > MAX_BODY:
                raise too_large(self._endpoint)
            chunks.append(chunk)
            if on_chunk is not None:
                on_chunk(chunk)
        return b"".join(chunks)

    def _on_sending(self, error: Exception) -> PlauditError:
        match error:
            case OSError() if is_out_of_files(error):
                return out_of_files(self._endpoint)
            case aiohttp.ClientHttpProxyError() if self._proxy is not None:
                return proxy_refused(self._endpoint, error.status, self._proxy)
            case aiohttp.ClientConnectorError() | aiohttp.ServerTimeoutError():
                return unreachable(self._endpoint, _words(error), proxy=self._proxy)
            case aiohttp.ServerDisconnectedError() if isinstance(error.message, str):
                return dropped(self._endpoint)
            case aiohttp.ServerDisconnectedError():
                return broken(self._endpoint, "the reply broke off in its headers")
            case aiohttp.ClientOSError() | ConnectionError():
                return dropped(self._endpoint)
            case aiohttp.ClientResponseError():
                return broken(self._endpoint, "the answer is not HTTP; check the URL's scheme and port")
            case _:
                return broken(self._endpoint, _words(error))


def _socket(address: aiohttp.AddrInfoType) -> socket.socket:
    family, kind, protocol, *_ = address
    made = socket.socket(family, kind, protocol)
    probe(made)
    return made


def _words(error: Exception) -> str:
    """What the system said, without aiohttp's wrapping (which may show addresses and headers)."""
    match error:
        case aiohttp.ClientConnectorCertificateError():
            return f"TLS certificate not accepted ({error.certificate_error})"
        case aiohttp.ClientConnectorError():
            return system_words(error.os_error)
        case aiohttp.ServerTimeoutError():
            return f"no answer within {CONNECT_TIMEOUT:g} s"
        case _:
            return type(error).__name__
