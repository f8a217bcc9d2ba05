"""How a connection to an endpoint comes about: name lookup, proxy, tunnel and TLS, within one timeout."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from base64 import b64encode
from collections.abc import Callable
from typing import TypeVar, cast
from urllib.parse import SplitResult, unquote, urlsplit

from aiohappyeyeballs import AddrInfoType, start_connection

from plaudit.config import Endpoint
from plaudit.errors import PlauditError
from plaudit.transports.client import CONNECT_TIMEOUT, probe
from plaudit.transports.connection import MAX_HEAD, Connection
from plaudit.transports.descriptors import is_out_of_files
from plaudit.transports.http_errors import out_of_files, proxy_refused, system_words, unreachable

log = logging.getLogger("plaudit")
P = TypeVar("P", bound=asyncio.Protocol)

TELL_AFTER = 3.0
"""Seconds without a first connection after which a warning says so: users should know what they wait for."""
_NEXT_ADDRESS_AFTER = 0.25
"""Seconds until the next of several addresses is tried beside one that has not answered."""
_ADDRESSES_FOR = 300.0
"""Seconds for which a looked-up address is used."""
_PORTS = {"http": 80, "https": 443}


class Connector:
    """Opens connections to one endpoint, directly or through a proxy. Lives on one event loop."""

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        proxy: str | None = None,
        timeout: float = CONNECT_TIMEOUT,
        tell_after: float = TELL_AFTER,
    ) -> None:
        self._endpoint = endpoint
        self._proxy = proxy
        self._timeout = timeout
        target = urlsplit(endpoint.url)
        self._is_secure = target.scheme == "https"
        self._target = _host_and_port(target)
        first_stop = target if proxy is None else urlsplit(proxy)
        self._host, self._port = _host_and_port(first_stop)
        self._is_first_stop_secure = first_stop.scheme == "https"
        self._tls: ssl.SSLContext | None = None
        self._lookup: asyncio.Task[list[AddrInfoType]] | None = None
        self._looked_up_at = 0.0
        self._attempts: set[asyncio.Timeout] = set()
        self._tell_after = tell_after
        self._is_told = False

    @property
    def host(self) -> str:
        """The endpoint, as a request's Host header names it."""
        host, port = self._target
        shown = f"[{host}]" if ":" in host else host
        return shown if port == _PORTS["https" if self._is_secure else "http"] else f"{shown}:{port}"

    @property
    def is_relayed(self) -> bool:
        """Whether a proxy reads the requests, and so wants to be told the whole URL."""
        return self._proxy is not None and not self._is_secure

    @property
    def proxy_authorization(self) -> str | None:
        """The header's value for the proxy, where its URL holds credentials."""
        parts = urlsplit(self._proxy or "")
        if parts.username is None:
            return None
        words = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        return f"Basic {b64encode(words.encode()).decode()}"

    async def connect(self, make: Callable[[], Connection]) -> Connection:
        """A connection ready for requests. Raises Unreachable, or EndpointRefused for a proxy's refusal."""
        attempt = asyncio.timeout(self._timeout)
        self._attempts.add(attempt)
        loop = asyncio.get_running_loop()
        told = None if self._is_told else loop.call_later(self._tell_after, self._tell)
        try:
            async with attempt:
                connection = await self._connect(make)
            self._is_told = True  # once there was a connection, slow ones are the scheduler's business
            return connection
        except OSError as error:
            failure = self._failed(error)
        except _RefusedByProxy as error:
            failure = proxy_refused(self._endpoint, error.status, self._proxy or "")
        finally:
            self._attempts.discard(attempt)
            if told is not None:
                told.cancel()
        raise failure

    def _tell(self) -> None:
        if not self._is_told:
            self._is_told = True
            cause = f"there was no answer within {self._tell_after:g} s"
            log.warning("%s. Still trying", unreachable(self._endpoint, cause, proxy=self._proxy))

    def _failed(self, error: OSError) -> PlauditError:
        if is_out_of_files(error):
            return out_of_files(self._endpoint)
        if self._lookup is not None and self._lookup.done():
            self._lookup = None  # there may be another address by now
        is_timeout = isinstance(error, TimeoutError) and error.errno is None
        cause = f"no answer within {self._timeout:g} s" if is_timeout else system_words(error)
        return unreachable(self._endpoint, cause, proxy=self._proxy)

    def close(self) -> None:
        """End every attempt under way."""
        now = asyncio.get_running_loop().time()
        for attempt in list(self._attempts):
            if not attempt.expired():
                attempt.reschedule(now)
        if self._lookup is not None:
            self._lookup.cancel()
            self._lookup = None

    async def _connect(self, make: Callable[[], Connection]) -> Connection:
        loop = asyncio.get_running_loop()
        if self._proxy is None or self.is_relayed:
            _, connection = await self._reach_first_stop(make)
            return connection
        transport, tunnel = await self._reach_first_stop(_Tunnel)
        try:
            await tunnel.open(self._opening())
            connection = make()
            secured = await loop.start_tls(
                transport, connection, self._context(), server_hostname=self._target[0].rstrip(".")
            )
            if secured is None:
                raise ConnectionResetError("the connection was lost during the TLS handshake")
        except BaseException:
            transport.abort()
            raise
        connection.connection_made(secured)
        return connection

    async def _reach_first_stop(self, make: Callable[[], P]) -> tuple[asyncio.Transport, P]:
        loop = asyncio.get_running_loop()
        tls = self._context() if self._is_first_stop_secure else None
        name = self._host.rstrip(".") if tls else None
        addresses = await self._addresses()
        try:
            if len(addresses) == 1 and addresses[0][0] == socket.AF_INET:  # in half the time
                host, port = addresses[0][4][:2]
                made = await loop.create_connection(make, host, port, ssl=tls, server_hostname=name)
            else:
                sock = await start_connection(addresses, happy_eyeballs_delay=_NEXT_ADDRESS_AFTER, loop=loop)
                made = await loop.create_connection(make, sock=sock, ssl=tls, server_hostname=name)
        except RuntimeError as error:  # uvloop's, where asyncio raises OSError
            raise OSError(str(error)) from error
        if (connected := made[0].get_extra_info("socket")) is not None:  # else it is lost again
            probe(connected)
        return made

    def _opening(self) -> bytes:
        """The request for a tunnel. The proxy learns where to, and no more: the key is not its business."""
        host, port = self._target
        where = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        lines = [f"CONNECT {where} HTTP/1.1", f"Host: {where}"]
        if self.proxy_authorization is not None:
            lines.append(f"Proxy-Authorization: {self.proxy_authorization}")
        return "\r\n".join([*lines, "", ""]).encode("latin-1")

    def _context(self) -> ssl.SSLContext:
        """Made when first used, so that SSL_CERT_FILE counts whenever it was set."""
        if self._tls is None:
            self._tls = ssl.create_default_context()
            self._tls.set_alpn_protocols(["http/1.1"])
        return self._tls

    async def _addresses(self) -> list[AddrInfoType]:
        """Looked up once for all the connections that want it, and again after some minutes."""
        loop = asyncio.get_running_loop()
        if self._lookup is None or (
            self._lookup.done() and loop.time() - self._looked_up_at > _ADDRESSES_FOR
        ):
            self._lookup = loop.create_task(self._look_up())
            self._lookup.add_done_callback(lambda task: task.cancelled() or task.exception())
            self._looked_up_at = loop.time()
        return await asyncio.shield(self._lookup)  # a call that is cancelled cancels no other

    async def _look_up(self) -> list[AddrInfoType]:
        found = await asyncio.get_running_loop().getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)
        return cast("list[AddrInfoType]", found)


class _RefusedByProxy(Exception):
    def __init__(self, status: int) -> None:
        super().__init__(f"the proxy answered {status}")
        self.status = status


class _Tunnel(asyncio.Protocol):
    """Waits for a proxy's answer to CONNECT."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._answered: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._buffer = b""

    async def open(self, opening: bytes) -> None:
        assert self._transport is not None
        self._transport.write(opening)
        head, _, more = (await self._answered).partition(b"\r\n\r\n")
        version, _, rest = head.partition(b" ")
        if not version.startswith(b"HTTP/1.") or not rest[:3].isdigit():
            raise OSError("the proxy's answer is not HTTP")
        if not 200 <= int(rest[:3]) < 300:
            raise _RefusedByProxy(int(rest[:3]))
        if more:
            raise OSError("the proxy sent data before the tunnel was used")

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if self._answered.done():
            return
        if b"\r\n\r\n" in self._buffer:
            self._answered.set_result(self._buffer)
        elif len(self._buffer) > MAX_HEAD:
            self._answered.set_exception(OSError("the proxy's answer does not end"))

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._answered.done():
            self._answered.set_exception(exc or ConnectionResetError("the proxy closed the connection"))
            self._answered.exception()  # there may be no waiter any more


def _host_and_port(parts: SplitResult) -> tuple[str, int]:
    host = parts.hostname or ""
    return host if host.isascii() else host.encode("idna").decode(), parts.port or _PORTS[parts.scheme]
