"""One connection, driven by hand: whatever comes, in whatever pieces, an exchange has exactly one end."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from plaudit.config import Endpoint
from plaudit.errors import TransportFailed
from plaudit.testing import run
from plaudit.transports.client import Answer
from plaudit.transports.connection import LARGE_BODY, Connection
from plaudit.transports.http_errors import Dropped

ENDPOINT = Endpoint("http://127.0.0.1:9/v1", model="m")
RESPONSES = (
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nRetry-After: 1\r\n\r\nhello",
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 429 Slow\r\nretry-AFTER: 7\r\nContent-Length: 2\r\n\r\n{}",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nhel\r\n2\r\nlo\r\n0\r\nA: b\r\n\r\n",
    b"HTTP/1.1 204 None\r\n\r\n",
    b"HTTP/1.0 200 OK\r\n\r\nuntil the end",
)


class FakeTransport:
    """Keeps what is written; tells the connection of its end as a loop would."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.written: list[bytes] = []
        self.is_aborted = False

    def write(self, data: bytes) -> None:
        self.written.append(bytes(data))

    def abort(self) -> None:
        if not self.is_aborted:
            self.is_aborted = True
            asyncio.get_running_loop().call_soon(self._connection.connection_lost, None)

    def is_closing(self) -> bool:
        return self.is_aborted

    def get_write_buffer_size(self) -> int:
        return 0


class Desk:
    """A connection over a fake transport, and what its owner was told."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.connection = Connection(
            ENDPOINT,
            on_free=lambda _: self.told.append("free"),
            on_lost=lambda _: self.told.append("lost"),
        )
        self.transport = FakeTransport(self.connection)

    def open(self) -> None:
        transport: Any = self.transport
        self.connection.connection_made(transport)

    async def hear(self, pieces: list[bytes]) -> Answer | TransportFailed:
        """What an exchange comes to when these bytes come back, and then the end."""
        call = asyncio.create_task(self.connection.exchange(b"head", b"body"))
        await asyncio.sleep(0)
        for piece in pieces:
            if not self.transport.is_aborted:
                self.connection.data_received(piece)
        if not call.done() and not self.transport.is_aborted and "free" not in self.told:
            self.connection.connection_lost(None)
        try:
            async with asyncio.timeout(1.0):
                return await call
        except TransportFailed as error:
            return error


def cut(data: bytes, at: list[int]) -> list[bytes]:
    edges = [0, *sorted({place % (len(data) + 1) for place in at}), len(data)]
    return [data[start:end] for start, end in pairwise(edges) if start < end]


def heard(pieces: list[bytes]) -> tuple[Answer | TransportFailed, Desk]:
    async def main() -> tuple[Answer | TransportFailed, Desk]:
        desk = Desk()
        desk.open()
        return await desk.hear(pieces), desk

    return run(main())


@given(st.sampled_from(RESPONSES), st.lists(st.integers(0, 300), max_size=30))
@settings(max_examples=200, deadline=None)
def test_how_a_response_is_cut_up_makes_no_difference(response: bytes, at: list[int]) -> None:
    whole, _ = heard([response])
    pieces, desk = heard(cut(response, at))
    assert isinstance(whole, Answer)
    assert pieces == whole
    assert desk.told.count("free") + desk.told.count("lost") == 1


@given(st.sampled_from(RESPONSES), st.integers(0, 300), st.binary(max_size=40), st.lists(st.integers(0, 300)))
@settings(max_examples=300, deadline=None)
def test_whatever_comes_an_exchange_ends_once(
    response: bytes, place: int, noise: bytes, at: list[int]
) -> None:
    place %= len(response) + 1
    outcome, desk = heard(cut(response[:place] + noise + response[place:], at))
    assert isinstance(outcome, Answer | TransportFailed)
    assert desk.told.count("free") <= 1
    if isinstance(outcome, TransportFailed):
        assert "free" not in desk.told


@given(st.sampled_from(RESPONSES[:4]), st.integers(0, 300))
def test_a_response_that_breaks_off_is_none(response: bytes, length: int) -> None:
    outcome, _ = heard([response[: length % len(response)]])
    assert isinstance(outcome, TransportFailed)
    assert isinstance(outcome, Dropped) == (length % len(response) == 0)


def test_a_connection_that_is_lost_before_it_is_handed_over_is_not_open() -> None:
    async def main() -> None:
        desk = Desk()
        desk.connection.connection_lost(None)
        desk.open()
        assert desk.told == ["lost"]
        assert not desk.connection.is_open

    run(main())


def test_a_server_that_speaks_before_it_is_asked_is_not_listened_to() -> None:
    async def main() -> None:
        desk = Desk()
        desk.connection.data_received(RESPONSES[0])
        desk.open()
        assert isinstance(await desk.hear([RESPONSES[0]]), Dropped)
        assert desk.transport.is_aborted

    run(main())


def test_a_large_request_waits_while_the_network_is_full() -> None:
    async def main() -> None:
        desk = Desk()
        desk.open()
        desk.connection.pause_writing()
        call = asyncio.create_task(desk.connection.exchange(b"head", b"x" * (4 * LARGE_BODY)))
        await asyncio.sleep(1.0)
        assert sum(map(len, desk.transport.written)) < LARGE_BODY
        desk.connection.resume_writing()
        await asyncio.sleep(1.0)
        assert b"".join(desk.transport.written) == b"head" + b"x" * (4 * LARGE_BODY)
        desk.connection.data_received(RESPONSES[0])
        assert (await call).body == b"hello"
        assert desk.told == ["free"]

    run(main())


def test_a_cancelled_exchange_ends_its_connection() -> None:
    async def main() -> None:
        desk = Desk()
        desk.open()
        call = asyncio.create_task(desk.connection.exchange(b"head", b"body"))
        await asyncio.sleep(0)
        call.cancel()
        desk.connection.data_received(RESPONSES[0])  # in the same turn of the loop
        await asyncio.gather(call, return_exceptions=True)
        await asyncio.sleep(0)
        assert call.cancelled()
        assert desk.told == ["lost"]

    run(main())
