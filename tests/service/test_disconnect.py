"""A client that goes away: its slot is free again, and what it leaves behind is what the settings say."""

from __future__ import annotations

import asyncio
import json

import aiohttp
import pytest
from service_client import CHAT, QUESTION, ScriptedClient, scripted
from wire_server import Exchange, reply

from plaudit.service import connections


async def endless(exchange: Exchange) -> None:
    """Never answers; ends when the client does."""
    await exchange.until_client_leaves()


async def left(client: ScriptedClient, body: object) -> None:
    """Ask, and go away while the endpoint is at work on it."""
    asked = client.asking(body)
    await client.endpoint.until(lambda: len(client.endpoint.requests) == 1)
    asked.cancel()
    await asyncio.gather(asked, return_exceptions=True)


def test_a_draw_under_way_is_aborted_upstream_and_its_slot_is_free() -> None:
    async def test(client: ScriptedClient) -> None:
        await left(client, CHAT)
        await client.endpoint.until(lambda: client.endpoint.open_connections == 0)
        status, _ = await client.asking(CHAT)
        assert status == 200

    scripted(test, endless, reply("7"), engine={"max_concurrent": 1})


def test_a_question_at_temperature_0_goes_on_into_the_cache() -> None:
    answer = asyncio.Event()

    async def slow(exchange: Exchange) -> None:
        await answer.wait()
        await reply("7")(exchange)

    async def test(client: ScriptedClient) -> None:
        await left(client, QUESTION)
        answer.set()
        status, _ = await client.asking(QUESTION)
        assert (status, len(client.endpoint.requests)) == (200, 1)

    scripted(test, slow)


def test_with_drop_abandoned_it_is_aborted_as_well() -> None:
    async def test(client: ScriptedClient) -> None:
        await left(client, QUESTION)
        await client.endpoint.until(lambda: client.endpoint.open_connections == 0)

    scripted(test, endless, finishes_abandoned=False)


@pytest.mark.parametrize("body", [CHAT, QUESTION])
def test_a_request_that_waits_for_its_turn_is_never_sent(body: object) -> None:
    async def test(client: ScriptedClient) -> None:
        blocking = client.asking({**CHAT, "seed": 1})
        await client.endpoint.until(lambda: len(client.endpoint.requests) == 1)
        waiting = client.asking(body)
        await client.until_waiting(2)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        await client.until_waiting(1)
        blocking.cancel()
        await asyncio.gather(blocking, return_exceptions=True)
        status, _ = await client.asking({**CHAT, "seed": 2})
        assert status == 200
        seeds = [request.json().get("seed") for request in client.endpoint.requests]
        assert seeds == [1, 2]

    scripted(test, endless, reply("7"), engine={"max_concurrent": 1}, finishes_abandoned=False)


def test_a_client_that_goes_away_at_any_moment_is_no_bug(caplog: pytest.LogCaptureFixture) -> None:
    body = json.dumps({"samples": [{"prompt": "1 + 1?", "response": "2"}], "stream": True}).encode()
    head = b"POST /score HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    request = head + b"Content-Length: %d\r\n\r\n" % len(body) + body

    async def test(client: ScriptedClient) -> None:
        host, port = client.url.removeprefix("http://").split(":")
        for turns in range(60):
            _, writer = await asyncio.open_connection(host, int(port))
            writer.write(request)
            for _ in range(turns % 12):
                await asyncio.sleep(0)
            writer.transport.abort()
        await client.until_waiting(0)

    scripted(test, reply('{"reason": "right", "score": 8}'))
    assert "Traceback" not in caplog.text


def test_what_never_ends_is_cut_off_when_the_server_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "DRAIN_WITHIN", 0.1)
    asked: list[asyncio.Task[tuple[int, bytes]]] = []

    async def test(client: ScriptedClient) -> None:
        asked.append(client.asking(CHAT))
        await client.endpoint.until(lambda: len(client.endpoint.requests) == 1)

    scripted(test, endless)
    assert asked[0].cancelled() or isinstance(asked[0].exception(), aiohttp.ClientError)
