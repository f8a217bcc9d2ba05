"""The connections of a server: how many, how long each may take to speak or to read, and their end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, cast

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

if TYPE_CHECKING:
    from plaudit.service.app import Service

HEAD_WITHIN = 30.0
"""Seconds a connection may be idle, or take to send a request's head."""
UNREAD_WITHIN = 120.0
"""Seconds for which a client may leave what it is sent unread, beside the time that `LEAST_RATE` allows."""
LEAST_RATE = 1 << 16
"""Bytes of a long reply that a client has to read a second."""
MOST_CONNECTIONS = 25_000
"""Connections at a time; more are closed at once."""
DRAIN_WITHIN = 25.0
"""Seconds in which what is under way is answered at the end: container runtimes kill after 30."""


@contextlib.asynccontextmanager
async def serving(service: Service, *, host: str, port: int) -> AsyncIterator[str]:
    """Serve on a port (0: any free one) and give the root URL. At the end, what is under way is answered."""
    runner = web.AppRunner(
        service.app(),
        handler_cancellation=True,
        keepalive_timeout=HEAD_WITHIN,
        access_log=None,
        logger=_http_log,
        shutdown_timeout=DRAIN_WITHIN / 2,  # it waits twice as long
    )
    await runner.setup()
    handlers = runner.server
    assert handlers is not None

    def accept() -> asyncio.BaseProtocol:
        return handlers() if len(handlers.connections) < MOST_CONNECTIONS else _Refused()

    listening = await asyncio.get_running_loop().create_server(accept, host, port, backlog=1024)
    for one in listening.sockets if hasattr(socket, "TCP_USER_TIMEOUT") else ():
        # Its connections have it too: what is left in their buffers when we are done with them ends by it.
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(UNREAD_WITHIN * 1000))
    try:
        bound_host, bound_port = listening.sockets[0].getsockname()[:2]
        yield f"http://{f'[{bound_host}]' if ':' in bound_host else bound_host}:{bound_port}"
    finally:
        listening.close()
        await runner.cleanup()


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


class _Refused(asyncio.Protocol):
    """A connection that is one too many."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast("asyncio.Transport", transport).abort()  # uvloop's is one without saying so


def _in_one_line(record: logging.LogRecord) -> bool:
    """Log what is no HTTP without a word of it: it may be a prompt or a token."""
    if record.exc_info and isinstance(record.exc_info[1], HttpProcessingError):
        record.levelno, record.levelname = logging.INFO, "INFO"
        record.msg, record.args, record.exc_info = "a request that is not HTTP was refused", (), None
    return True


_http_log = logging.getLogger("plaudit.http")
_http_log.addFilter(_in_one_line)
