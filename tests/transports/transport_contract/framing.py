"""What a transport promises about HTTP itself: a response is read however it is cut up, led in or ended."""

from __future__ import annotations

import asyncio
import zlib

from wire_server import Exchange, Step, WireServer, good_body, reply

from plaudit.errors import EndpointRefused, TransportFailed
from plaudit.types import Reply
from transport_contract.subject import ASK, Subject, outcome_of


async def a_reply_that_comes_byte_by_byte_is_read(subject: Subject) -> None:
    async def step(exchange: Exchange) -> None:
        whole = _whole(good_body(exchange.request, "slow"))
        for at in range(len(whole)):
            await exchange.write(whole[at : at + 1])
            await asyncio.sleep(0)

    await _answers(subject, step, reply("next"), expected=["slow", "next"], connections=1)


async def interim_responses_are_passed_over(subject: Subject) -> None:
    async def step(exchange: Exchange) -> None:
        await exchange.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        await exchange.write(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\nRetry-After: 9\r\n\r\n")
        await exchange.write(_whole(good_body(exchange.request, "then")))

    await _answers(subject, step, reply("next"), expected=["then", "next"], connections=1)


async def chunks_may_have_extensions_and_trailers(subject: Subject) -> None:
    async def step(exchange: Exchange) -> None:
        body = good_body(exchange.request, "trailed")
        await exchange.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: Retry-After\r\n\r\n")
        await exchange.write(b'%X;name="value"\r\n%b\r\n' % (len(body), body))
        await exchange.write(b"0\r\nRetry-After: 99\r\nX-Sum: 1\r\n\r\n")

    await _answers(subject, step, reply("next"), expected=["trailed", "next"], connections=1)


async def a_reply_of_unstated_length_ends_with_its_connection(subject: Subject) -> None:
    for version in (b"1.0", b"1.1"):

        async def step(exchange: Exchange, version: bytes = version) -> None:
            await exchange.write(b"HTTP/%b 200 OK\r\nContent-Type: application/json\r\n\r\n" % version)
            await exchange.write(good_body(exchange.request, "old"))
            exchange.writer.close()

        await _answers(subject, step, reply("next"), expected=["old", "next"], connections=2)


async def a_connection_that_the_server_will_close_is_not_used_again(subject: Subject) -> None:
    closing = reply("last", headers={"Connection": "close"})
    await _answers(subject, closing, reply("next"), expected=["last", "next"], connections=2)


async def a_deflated_reply_is_read(subject: Subject) -> None:
    async def step(exchange: Exchange) -> None:
        body = zlib.compress(good_body(exchange.request, "small"))
        await exchange.answer(200, body, {"Content-Encoding": "deflate"})

    await _answers(subject, step, expected=["small"], connections=1)


async def what_follows_a_reply_is_no_answer_to_the_next_request(subject: Subject) -> None:
    for extra in (_whole(b'{"choices": [{"message": {"content": "planted"}}]}'), b"garbage", b"\x00" * 100):

        async def step(exchange: Exchange, extra: bytes = extra) -> None:
            await exchange.write(_whole(good_body(exchange.request, "true")) + extra)

        async with WireServer(step, reply("next")) as server:
            async with subject.to(server.url(subject.kind)) as transport:
                found = await outcome_of(transport)
                assert isinstance(found, TransportFailed) or (
                    isinstance(found, Reply) and found.text == "true"
                )
                assert (await transport.send(ASK)).text == "next"
            assert server.connections == 2


async def a_reply_longer_than_it_says_is_cut_there_and_the_next_is_sound(subject: Subject) -> None:
    async def step(exchange: Exchange) -> None:
        await exchange.write(_whole(good_body(exchange.request, "too long"), length=20))

    async with WireServer(step, reply("next")) as server, subject.to(server.url(subject.kind)) as transport:
        assert type(await outcome_of(transport)) is TransportFailed
        assert (await transport.send(ASK)).text == "next"


async def a_status_without_a_body_is_not_waited_for(subject: Subject) -> None:
    for status, meaning in ((204, TransportFailed), (205, TransportFailed), (304, EndpointRefused)):

        async def step(exchange: Exchange, status: int = status) -> None:
            length = b"Content-Length: 0\r\n" if status == 205 else b""
            await exchange.write(b"HTTP/1.1 %d Nothing\r\n%b\r\n" % (status, length))

        async with WireServer(step, reply("next")) as server:
            async with subject.to(server.url(subject.kind)) as transport:
                assert type(await outcome_of(transport)) is meaning
                assert (await transport.send(ASK)).text == "next"
            assert server.connections == 1


async def endless_headers_are_not_read_to_their_end(subject: Subject) -> None:
    async def step(exchange: Exchange) -> None:
        await exchange.write(b"HTTP/1.1 200 OK\r\n")
        for number in range(1 << 20):
            await exchange.write(b"X-Header-%d: %b\r\n" % (number, b"x" * 1000))
        raise AssertionError("they were read to their end")

    assert type(await subject.outcome(step)) is TransportFailed


async def _answers(subject: Subject, *script: Step, expected: list[str], connections: int) -> None:
    """The texts that one request after another brings, and the connections that it takes."""
    async with WireServer(*script) as server, subject.to(server.url(subject.kind)) as transport:
        for text in expected:
            found = await outcome_of(transport)
            assert isinstance(found, Reply), found
            assert (found.text, found.rate) == (text, None)
        assert server.connections == connections


def _whole(body: bytes, *, length: int | None = None) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (
        len(body) if length is None else length,
        body,
    )
