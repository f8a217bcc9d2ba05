"""The default HTTP client: connections on the event loop's own transports, parsed by llhttp (httptools).

A request is one write, and a response one parse: there are no cookies, redirects, retries or timers, and
nothing of the environment is read here.
"""

from __future__ import annotations

import asyncio
from urllib.parse import quote, urlsplit
from weakref import WeakKeyDictionary, WeakSet

from plaudit.config import Endpoint
from plaudit.errors import OutOfFiles
from plaudit.transports.client import CONNECT_TIMEOUT, KEEP_ALIVE, Answer, OnChunk, headers_for
from plaudit.transports.connection import Connection
from plaudit.transports.connector import TELL_AFTER, Connector
from plaudit.transports.http_errors import dropped
from plaudit.transports.unpacking import unpacked

_CLIENTS: WeakKeyDictionary[asyncio.AbstractEventLoop, WeakSet[HttptoolsClient]] = WeakKeyDictionary()
"""Those that connect, by their event loop: they share the file descriptors of the process."""


class HttptoolsClient:
    """Posts to one endpoint. Connects when it has no free connection."""

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        proxy: str | None = None,
        connect_timeout: float = CONNECT_TIMEOUT,
        keep_alive: float = KEEP_ALIVE,
        tell_after: float = TELL_AFTER,
    ) -> None:
        self._endpoint = endpoint
        self._connector = Connector(endpoint, proxy=proxy, timeout=connect_timeout, tell_after=tell_after)
        self._keep_alive = keep_alive
        self._headers = headers_for(endpoint)
        self._heads: dict[str, bytes] = {}
        self._open: set[Connection] = set()
        self._free: dict[Connection, None] = {}  # those free for longest come first
        self._sweep: asyncio.TimerHandle | None = None
        self._is_closed = False
        self._all_lost: asyncio.Future[None] | None = None

    async def post(self, path: str, body: bytes, on_chunk: OnChunk | None = None) -> Answer:
        connection = self._take() or await self._connect()
        head = self._heads.get(path) or self._head(path)
        answer = await connection.exchange(b"%b%d\r\n\r\n" % (head, len(body)), body, on_chunk)
        if "content-encoding" in answer.headers:
            return unpacked(self._endpoint, answer)
        return answer

    async def close(self) -> None:
        self._is_closed = True
        self._connector.close()
        if self._sweep is not None:
            self._sweep.cancel()
            self._sweep = None
        if self._open:
            self._all_lost = self._all_lost or asyncio.get_running_loop().create_future()
            for connection in list(self._open):
                connection.abort()
            await asyncio.shield(self._all_lost)

    def _take(self) -> Connection | None:
        """The connection that was used last: the others may grow old and be closed."""
        while self._free:
            connection, _ = self._free.popitem()
            if connection.is_open:
                return connection
        return None

    async def _connect(self) -> Connection:
        clients = _CLIENTS.setdefault(asyncio.get_running_loop(), WeakSet())
        clients.add(self)
        try:
            connection = await self._connector.connect(self._new)
        except OutOfFiles:
            if not any(client._close_free() for client in clients):
                raise
            await asyncio.sleep(0.01)  # a closed one gives its descriptor back after a turn of the loop
            connection = await self._connector.connect(self._new)
        if self._is_closed:
            connection.abort()
        if not connection.is_open:
            raise dropped(self._endpoint, is_kept_alive=False)
        # Only now: one that is cancelled while it is made ends without a word to us.
        self._open.add(connection)
        return connection

    def _close_free(self) -> bool:
        """Close the connection that has been free for longest; False where there is none."""
        connection = next(iter(self._free), None)
        if connection is None:
            return False
        del self._free[connection]
        connection.abort()
        return True

    def _new(self) -> Connection:
        return Connection(self._endpoint, on_free=self._on_free, on_lost=self._on_lost)

    def _on_free(self, connection: Connection) -> None:
        self._free[connection] = None
        if self._sweep is None:
            self._sweep = asyncio.get_running_loop().call_later(self._keep_alive, self._close_idle)

    def _on_lost(self, connection: Connection) -> None:
        self._open.discard(connection)
        self._free.pop(connection, None)
        if self._all_lost is not None and not self._open and not self._all_lost.done():
            self._all_lost.set_result(None)

    def _close_idle(self) -> None:
        """Close what has been free for too long, and look again when the next one will have been."""
        loop = asyncio.get_running_loop()
        self._sweep = None
        for connection in list(self._free):
            age = loop.time() - connection.free_since
            if age < self._keep_alive:
                self._sweep = loop.call_later(self._keep_alive - age, self._close_idle)
                return
            del self._free[connection]
            connection.abort()

    def _head(self, path: str) -> bytes:
        """The request up to the value of Content-Length: the same for every request of a route."""
        connector = self._connector
        parts = urlsplit(self._endpoint.route(path))
        target = quote(parts.path, safe="/%:@!$&'()*+,;=~-._")
        if parts.query:
            target += "?" + quote(parts.query, safe="/%:@!$&'()*+,;=~-._?")
        if connector.is_relayed:
            target = f"http://{connector.host}{target}"
        lines = [f"POST {target} HTTP/1.1", f"Host: {connector.host}"]
        lines += [f"{name}: {value}" for name, value in self._headers.items()]
        if connector.is_relayed and connector.proxy_authorization is not None:
            lines.append(f"Proxy-Authorization: {connector.proxy_authorization}")
        head = "\r\n".join([*lines, "Content-Length: "]).encode("latin-1")
        self._heads[path] = head
        return head
