"""The connections of a server: how many, how long each may take to speak or to read, and their end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from plaudit.transports.descriptors import connections_left

if TYPE_CHECKING:
    from plaudit.service.app import Service

HEAD_WITHIN = 30.0
"""Seconds a connection may be idle, or take to send a request's head."""
UNREAD_WITHIN = 120.0
"""Seconds for which a client may leave what it is sent unread, beside the time that `LEAST_RATE` allows."""
LEAST_RATE = 1 << 16
"""Bytes of a long reply that a client has to read a second."""
MOST_CONNECTIONS = 25_000
"""Connections of clients at a time; more wait where the system keeps them."""
BACKLOG = 1024
"""Connections that the system keeps."""
LOOK_AGAIN = 0.05
"""Seconds after which it is seen whether there is room for another connection."""
MOST_FILES = 65_536
"""File descriptors that a server asks for, where it may: for its clients and as many calls."""
FILES_OF_MACOS = 10_240
"""What macOS gives at the most, though it says that there is no limit."""
DRAIN_WITHIN = 25.0
"""Seconds in which what is under way is answered at the end: container runtimes kill after 30."""


@contextlib.asynccontextmanager
async def serving(service: Service, *, host: str, port: int) -> AsyncIterator[str]:
    """Serve on a port (0: any free one) and give the root URL. At the end, what is under way is answered."""
    runner = web.AppRunner(
        service.app(),
        handler_cancellation=True,
        auto_decompress=False,
        keepalive_timeout=HEAD_WITHIN,
        access_log=None,
        logger=_http_log,
        shutdown_timeout=DRAIN_WITHIN / 2,  # it waits twice as long
    )
    await runner.setup()
    assert runner.server is not None
    try:
        listener = _Listener(service, runner.server, await _bound(host, port))
        try:
            yield listener.url
        finally:
            await listener.close()
    finally:
        await runner.cleanup()


async def _bound(host: str, port: int) -> list[socket.socket]:
    """Sockets that listen there, one for each address that the host has."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    trouble = OSError(f"{host} has no address")
    sockets: list[socket.socket] = []
    for family, address in dict.fromkeys((family, address[:2]) for family, _, _, _, address in found):
        try:
            one = socket.create_server(address, family=family, backlog=BACKLOG)
        except OSError as error:  # a host may have an address of a kind that this machine lacks
            trouble = error
            continue
        one.setblocking(False)
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            # Its connections have it too: what they still have to send when we are done with them ends by it.
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(UNREAD_WITHIN * 1000))
        sockets.append(one)
    if not sockets:
        raise trouble
    return sockets


class _Listener:
    """Accepts connections as long as there is room for them: half of the file descriptors at the most."""

    def __init__(self, service: Service, handlers: web.Server, sockets: list[socket.socket]) -> None:
        left = connections_left()
        self._most = MOST_CONNECTIONS if left is None else min(MOST_CONNECTIONS, max(1, left // 2))
        self._service = service
        self._handlers = handlers
        self._sockets = sockets
        self._loop = asyncio.get_running_loop()
        self._accepted: set[asyncio.Task[object]] = set()
        self._accepting = [self._loop.create_task(self._accept(one)) for one in sockets]

    @property
    def url(self) -> str:
        """Where clients find it."""
        host, port = self._sockets[0].getsockname()[:2]
        return f"http://{f'[{host}]' if ':' in host else host}:{port}"

    async def close(self) -> None:
        """Accept no more."""
        for task in self._accepting:
            task.cancel()
        await asyncio.gather(*self._accepting, *self._accepted, return_exceptions=True)
        for one in self._sockets:
            one.close()

    async def _accept(self, listening: socket.socket) -> None:
        while True:
            self._service.is_crowded = self._is_full
            if self._is_full:
                await asyncio.sleep(LOOK_AGAIN)
                continue
            try:
                connection, _ = await self._loop.sock_accept(listening)
            except OSError as error:
                _http_log.warning("no connection can be accepted: %s", error)
                await asyncio.sleep(LOOK_AGAIN)
                continue
            accepted = self._loop.create_task(
                self._loop.connect_accepted_socket(self._handlers, sock=connection)
            )
            self._accepted.add(accepted)
            accepted.add_done_callback(self._accepted.discard)

    @property
    def _is_full(self) -> bool:
        return len(self._handlers.connections) + len(self._accepted) >= self._most


def raise_file_limit() -> None:
    """Let this process have as many file descriptors as it may: a client takes one, or two."""
    try:
        from resource import RLIM_INFINITY, RLIMIT_NOFILE, getrlimit, setrlimit
    except ImportError:
        return  # Windows
    soft, hard = getrlimit(RLIMIT_NOFILE)
    for most in (MOST_FILES, FILES_OF_MACOS):
        wanted = most if hard == RLIM_INFINITY else min(most, hard)
        with contextlib.suppress(ValueError, OSError):  # it cannot be raised that far
            if soft != RLIM_INFINITY and soft < wanted:
                setrlimit(RLIMIT_NOFILE, (wanted, hard))
            return


@contextlib.asynccontextmanager
async def read_by(request: web.Request, size: int) -> AsyncIterator[None]:
    """A limit on the time in which a client takes so many bytes; beyond, its connection is closed."""
    try:
        async with asyncio.timeout(UNREAD_WITHIN + size / LEAST_RATE):
            yield
    except (TimeoutError, ConnectionError):
        if request.transport is not None:
            request.transport.abort()
        raise asyncio.CancelledError from None  # as where it goes away


def _in_one_line(record: logging.LogRecord) -> bool:
    """Log what is no HTTP without a word of it: it may be a prompt or a token."""
    if record.exc_info and isinstance(record.exc_info[1], HttpProcessingError):
        record.levelno, record.levelname = logging.INFO, "INFO"
        record.msg, record.args, record.exc_info = "a request that is not HTTP was refused", (), None
    return True


_http_log = logging.getLogger("plaudit.http")
_http_log.addFilter(_in_one_line)
