"""The simulated server on a socket: the same behaviour as in memory, with real resets and real hangs."""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

import msgspec

from plaudit.simulator.ask import Outcome
from plaudit.simulator.live import LiveServer
from plaudit.simulator.openai_wire import error_reply
from plaudit.simulator.protocol import MAX_BODY, BadRequest, HttpRequest, RequestReader, Response
from plaudit.simulator.routes import ROUTES, bearer, control, render
from plaudit.simulator.scenario import Scenario
from plaudit.simulator.server import Job, SimulatedServer

BACKLOG = 4096
MID_REPLY_S = 0.005
"""How long half a reply is left on the wire before the reset: long enough to be read."""
_ABORT_AT_CLOSE = struct.pack("ii", 1, 0)
"""SO_LINGER with no time to linger: closing sends RST instead of FIN."""


@asynccontextmanager
async def serving(
    server: SimulatedServer | Scenario, *, host: str = "127.0.0.1", port: int = 0, speed: float = 1.0
) -> AsyncIterator[str]:
    """Serve on a port (0 for any free one) and give the root URL; add /v1 for OpenAI's routes.

    `speed` is simulated seconds per real second; the times told in headers shrink with it.
    """
    if isinstance(server, Scenario):
        server = SimulatedServer(server)
    live = LiveServer(server, speed=speed)
    connections: set[ServedConnection] = set()
    loop = asyncio.get_running_loop()
    listener = await loop.create_server(
        lambda: ServedConnection(live, connections), host, port, backlog=BACKLOG
    )
    bound_host, bound_port = listener.sockets[0].getsockname()[:2]
    try:
        yield f"http://{f'[{bound_host}]' if ':' in bound_host else bound_host}:{bound_port}"
    finally:
        listener.close()
        for connection in list(connections):
            connection.abort()
        await listener.wait_closed()


class ServedConnection(asyncio.Protocol):
    """One client's connection. Requests on it are answered one after another, in order."""

    def __init__(self, live: LiveServer, connections: set[ServedConnection]) -> None:
        self._live = live
        self._connections = connections
        self._reader = RequestReader()
        self._transport: asyncio.Transport | None = None
        self._job: Job | None = None
        self._is_busy = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is one without saying so
        self._connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self._transport = None
        self._connections.discard(self)
        if self._job is not None:
            self._live.withdraw(self._job)
            self._job = None

    def data_received(self, data: bytes) -> None:
        self._reader.feed(data)
        if not self._is_busy:
            self._serve()
        elif len(self._reader) > MAX_BODY:
            self.abort()  # a client that sends that much ahead will never read a reply

    def abort(self) -> None:
        """Reset the connection, as a crashing server or an impatient balancer does."""
        if self._transport is None:
            return
        number = os.dup(self._transport.get_extra_info("socket").fileno())
        with socket.socket(fileno=number) as handle:
            handle.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _ABORT_AT_CLOSE)
        self._transport.abort()

    def _serve(self) -> None:
        """Answer requests while there are complete ones and none is being worked on."""
        while not self._is_busy and self._transport is not None:
            try:
                request = self._reader.next_request()
            except BadRequest as error:
                self._write(Response(error.status, error_reply(error.status, str(error))), keeps_alive=False)
                return
            if request is None:
                if self._reader.take_continue():
                    self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                return
            self._answer(request)

    def _answer(self, request: HttpRequest) -> None:
        route = ROUTES.get(request.path) if request.method == "POST" else None
        if route is None:
            self._write(control(self._live, request), keeps_alive=request.keeps_alive)
            return
        try:
            body = route.decoder.decode(request.body)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            refusal = Response(400, route.write_error(400, f"the body cannot be used: {error}", ""))
            self._write(refusal, keeps_alive=request.keeps_alive)
            return

        def deliver(outcome: Outcome) -> None:
            self._job = None
            self._is_busy = False
            reply = render(route, outcome, streams=bool(body.stream), speed=self._live.speed)
            self._act(outcome.fault, reply, keeps_alive=request.keeps_alive)
            self._serve()

        self._is_busy = True
        self._job = self._live.submit(body.ask(), deliver, api_key=bearer(request))

    def _act(self, fault: str, reply: Response, *, keeps_alive: bool) -> None:
        """Send the reply, or act out what happens to it on its way."""
        if fault in ("down", "reset"):
            self.abort()
        elif fault == "cut" and self._transport is not None:
            self._is_busy = True
            whole = reply.encode()
            self._transport.write(whole[: len(whole) - max(1, len(reply.body) // 2)])
            asyncio.get_running_loop().call_later(MID_REPLY_S, self.abort)
        else:
            self._write(reply, keeps_alive=keeps_alive)

    def _write(self, reply: Response, *, keeps_alive: bool) -> None:
        if self._transport is None:
            return
        self._transport.write(reply.encode(keeps_alive=keeps_alive))
        if not keeps_alive:
            self._transport.close()
            self._transport = None
