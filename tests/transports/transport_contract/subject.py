"""The transport under test, and one request to try it with."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from until import PATIENCE_S
from wire_server import Step, WireServer

from plaudit.config import Endpoint, Kind
from plaudit.errors import PlauditError, SendAgain
from plaudit.transports.base import Transport
from plaudit.types import ChatRequest, Reply, Request

KEY = "sk-contract-0123456789abcdef"
ASK = ChatRequest(messages=({"role": "user", "content": "Is it right?"},))
HALF = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 400\r\n\r\n{"choices": [{"mes'
"""The beginning of a reply."""


class Open(Protocol):
    """Makes the transport under test. `environ` names proxies; `timeout` ends what cancelling cannot."""

    def __call__(self, endpoint: Endpoint, *, environ: Mapping[str, str], timeout: float) -> Transport: ...


@dataclass(frozen=True, slots=True)
class Subject:
    """What is put to the test."""

    kind: Kind
    open: Open

    @asynccontextmanager
    async def to(
        self,
        url: str,
        *,
        key: str | None = KEY,
        environ: Mapping[str, str] | None = None,
        timeout: float = 30.0,
    ) -> AsyncIterator[Transport]:
        """A transport to this URL, closed afterwards."""
        endpoint = Endpoint(url, model="wire", api_key=key, kind=self.kind)
        transport = self.open(endpoint, environ=environ or {}, timeout=timeout)
        try:
            yield transport
        finally:
            await transport.close()

    async def outcome(self, step: Step) -> Reply | PlauditError:
        """What one chat request comes to when the server does this."""
        async with WireServer(step) as server, self.to(server.url(self.kind)) as transport:
            return await outcome_of(transport)


Promise = Callable[[Subject], Coroutine[Any, Any, None]]
"""Raises AssertionError when the transport does not keep it."""


async def outcome_of(transport: Transport) -> Reply | PlauditError:
    """The reply to one chat request, or the error in its place."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            return await transport.send(ASK)
    except PlauditError as error:
        return error


async def persist(transport: Transport, request: Request = ASK) -> Reply:
    """The reply to a request that is sent again as often as the transport says so."""
    for _ in range(8):
        try:
            return await transport.send(request)
        except SendAgain:
            continue
    raise AssertionError("the transport never stops asking for one more send")


def everything_in(error: BaseException | None) -> str:
    """An error with all that hangs on it, as a traceback or a debugger would show it."""
    shown = ""
    while error is not None:
        shown += f"{error} {error!r} {error.args!r} {vars(error)!r}\n"
        error = error.__cause__ or error.__context__
    return shown
