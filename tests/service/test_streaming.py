"""Streams: handed on as they come, never sent again after the first byte, recorded whole or not at all."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest
from service_client import CHAT, QUESTION, ScriptedClient, scripted
from wire_server import Exchange, Step, answer, hang_up, reply

STREAM = {**QUESTION, "stream": True}
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
EVENTS = [b'data: {"choices":[{"delta":{"content":"%d"}}]}\n\n' % number for number in range(3)]
DONE = b"data: [DONE]\n\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def streaming(*pieces: bytes | asyncio.Event, is_whole: bool = True) -> Step:
    """Writes the pieces, waiting at each event; then ends the reply, or hangs up in the middle of it."""

    async def step(exchange: Exchange) -> None:
        await exchange.write(HEAD)
        for piece in pieces:
            if isinstance(piece, asyncio.Event):
                await piece.wait()
            else:
                await exchange.write(chunk(piece))
        if is_whole:
            await exchange.write(chunk(b""))
        else:
            exchange.writer.close()

    return step


@asynccontextmanager
async def opened(client: ScriptedClient, body: object) -> AsyncIterator[aiohttp.ClientResponse]:
    async with client.session.post(f"{client.url}/v1/chat/completions", json=body) as response:
        yield response


@pytest.mark.parametrize("http", ["httptools", "aiohttp", "pyreqwest"])
def test_the_first_piece_is_there_before_the_second_is_written(http: str) -> None:
    go_on = asyncio.Event()

    async def test(client: ScriptedClient) -> None:
        async with opened(client, STREAM) as response:
            assert response.headers["Content-Type"] == "text/event-stream"
            assert response.headers["x-plaudit-source"] == "call"
            assert response.headers["x-request-id"].startswith("req_")
            assert await response.content.readany() == EVENTS[0]
            go_on.set()
            assert await response.read() == b"".join([*EVENTS[1:], DONE])

    scripted(test, streaming(EVENTS[0], go_on, *EVENTS[1:], DONE), engine={"client": http})


def test_a_stream_is_recorded_and_replayed_byte_for_byte() -> None:
    whole = b"".join([*EVENTS, DONE])

    async def test(client: ScriptedClient) -> None:
        assert await client.asking(STREAM) == (200, whole)
        async with opened(client, STREAM) as response:
            assert await response.read() == whole
            assert response.headers["x-plaudit-source"] == "cache"
            assert response.headers["Content-Type"] == "text/event-stream"
        assert len(client.endpoint.requests) == 1

    scripted(test, streaming(*EVENTS, DONE))


@pytest.mark.parametrize("is_whole", [True, False])
def test_a_stream_that_breaks_off_ends_in_an_error_and_is_neither_sent_again_nor_kept(is_whole: bool) -> None:
    async def test(client: ScriptedClient) -> None:
        status, body = await client.asking(STREAM)
        assert status == 200 and body.startswith(EVENTS[0])
        last = body.removeprefix(EVENTS[0]).removeprefix(b"data: ")
        assert json.loads(last)["error"]["code"] == "server_error"
        assert len(client.endpoint.requests) == 1
        assert await client.asking(STREAM) == (200, EVENTS[1] + DONE)

    scripted(test, streaming(EVENTS[0], is_whole=is_whole), streaming(EVENTS[1], DONE))


def test_a_stream_without_done_is_whole_once_every_choice_has_its_reason_to_finish() -> None:
    def event(index: int, reason: str | None) -> bytes:
        choice = {"index": index, "delta": {}, "finish_reason": reason}
        return b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"

    half = event(0, None) + event(1, "stop")
    whole = half + event(0, "length")

    async def test(client: ScriptedClient) -> None:
        assert b'"error"' in (await client.asking(STREAM))[1]
        assert await client.asking(STREAM) == (200, whole)
        assert await client.asking(STREAM) == (200, whole)
        assert len(client.endpoint.requests) == 2

    scripted(test, streaming(half), streaming(whole))


def test_before_the_first_byte_it_is_tried_again_like_any_request() -> None:
    async def test(client: ScriptedClient) -> None:
        assert await client.asking(STREAM) == (200, EVENTS[0] + DONE)
        assert len(client.endpoint.requests) == 3

    scripted(test, answer(500), hang_up(HEAD), streaming(EVENTS[0], DONE))


def test_a_client_that_leaves_a_stream_frees_its_slot() -> None:
    async def test(client: ScriptedClient) -> None:
        async with opened(client, {**CHAT, "stream": True}) as response:
            await response.content.readany()
        await client.endpoint.until(lambda: client.endpoint.open_connections == 0)
        assert (await client.asking(QUESTION))[0] == 200

    async def endless(exchange: Exchange) -> None:
        await exchange.write(HEAD + chunk(EVENTS[0]))
        await exchange.until_client_leaves()

    scripted(test, endless, reply("7"), engine={"max_concurrent": 1})


def test_the_time_that_a_client_waits_is_that_until_the_first_byte() -> None:
    async def never(exchange: Exchange) -> None:
        await exchange.until_client_leaves()

    async def test(client: ScriptedClient) -> None:
        waits = {"x-stainless-read-timeout": "0.1"}
        url = f"{client.url}/v1/chat/completions"
        async with client.session.post(url, json=STREAM, headers=waits) as response:
            assert (response.status, response.headers["x-should-retry"]) == (500, "false")
            assert (await response.json())["error"]["code"] == "deadline"
        await client.endpoint.until(lambda: client.endpoint.open_connections == 0)

    scripted(test, never)


def test_a_reply_that_is_no_stream_is_handed_on_as_what_it_is() -> None:
    async def test(client: ScriptedClient) -> None:
        async with opened(client, STREAM) as response:
            assert response.headers["Content-Type"] == "application/json"
            assert (await response.json())["choices"]

    scripted(test, reply("7"))


@pytest.mark.parametrize(
    "instead",
    [
        b'{"error": {"message": "overloaded", "code": 503}}',
        b" \n<html>no stream</html>",
        b" \n",
        b'data: {"error": {"message": "overloaded", "code": 503}}\n\n' + DONE,
        b'data: {"id": "1", "error" : {"message": "overloaded"}, "choices": []}\r\n\r\n',
        b'event: error\ndata: {"type": "error", "code": "server_error", "message": "later"}\n\n',
    ],
)
def test_what_comes_in_place_of_a_stream_is_tried_again_like_any_failure(instead: bytes) -> None:
    async def test(client: ScriptedClient) -> None:
        assert await client.asking(STREAM) == (200, EVENTS[0] + DONE)
        assert len(client.endpoint.requests) == 2

    scripted(test, streaming(instead[:1], instead[1:]), streaming(EVENTS[0], DONE))


@pytest.mark.parametrize(
    "content", ['"error": {', "event: error", '{"error": "x"}', '\\"error\\": {'], ids=["1", "2", "3", "4"]
)
def test_a_stream_about_errors_is_none(content: str) -> None:
    event = json.dumps({"choices": [{"index": 0, "delta": {"content": content}}]}).encode()
    go_on = asyncio.Event()

    async def test(client: ScriptedClient) -> None:
        async with opened(client, STREAM) as response:
            assert await response.content.readany() == b"data: " + event + b"\n\n"
            go_on.set()

    scripted(test, streaming(b"data: " + event + b"\n\n", go_on, DONE))


def test_a_second_client_of_the_same_stream_gets_it_whole() -> None:
    go_on = asyncio.Event()

    async def test(client: ScriptedClient) -> None:
        async with opened(client, STREAM) as first:
            assert await first.content.readany() == EVENTS[0]
            second = client.asking(STREAM)
            await client.until_waiting(2)
            go_on.set()
            assert await second == (200, EVENTS[0] + DONE)
            assert await first.read() == DONE
        assert len(client.endpoint.requests) == 1

    scripted(test, streaming(EVENTS[0], go_on, DONE))


@pytest.mark.parametrize(
    "stream",
    [
        b"\r\n".join(EVENTS[0].split(b"\n")) + b"data: [DONE]\r\n\r\n",
        b"data: {}\r\rdata: [DONE]\r\r",
        b": OPENROUTER PROCESSING\n\nevent: message\nid: 1\nretry: 10\n" + EVENTS[0] + DONE,
        b'data: {"choices":\ndata: [{"index":0,\ndata: "delta":{}}]}\n\n' + DONE,
        b'data:{"choices":[]}\n\ndata:[DONE]\n\n',
        EVENTS[0] + b"data: [DONE]",
        EVENTS[0] + DONE + b": bye\n\n",
    ],
)
def test_events_in_any_form_that_the_standard_allows_are_handed_on_and_kept(stream: bytes) -> None:
    async def test(client: ScriptedClient) -> None:
        assert await client.asking(STREAM) == (200, stream)
        assert await client.asking(STREAM) == (200, stream)
        assert len(client.endpoint.requests) == 1

    scripted(test, streaming(stream[:7], stream[7:]))


def test_a_client_that_waits_for_anothers_stream_asks_itself_when_that_breaks_off() -> None:
    go_on = asyncio.Event()

    async def test(client: ScriptedClient) -> None:
        async with opened(client, STREAM) as first:
            assert await first.content.readany() == EVENTS[0]
            second = client.asking(STREAM)
            await client.until_waiting(2)
            go_on.set()
            assert b'"error"' in await first.read()
        assert await second == (200, EVENTS[1] + DONE)
        assert len(client.endpoint.requests) == 2

    scripted(test, streaming(EVENTS[0], go_on, is_whole=False), streaming(EVENTS[1], DONE))
