"""A client that goes away: its slot is free again, and what it leaves behind is what the settings say."""

from __future__ import annotations

import asyncio

import pytest
from service_client import CHAT, QUESTION, ScriptedClient, scripted
from wire_server import Exchange, reply


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
