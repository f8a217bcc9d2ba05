"""Room for large bodies: never more than there is, in turn, and given back by whoever goes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
from service_client import QUESTION, ScriptedClient, scripted
from wire_server import Exchange, good_body

from plaudit.service import app
from plaudit.service.room import Room
from plaudit.testing import run


def test_there_is_never_more_taken_than_there_is_and_it_goes_in_turn() -> None:
    order: list[int] = []
    held = most = 0

    async def one(room: Room, number: int, size: int) -> None:
        nonlocal held, most
        await room.take(size)
        order.append(number)
        held += size
        most = max(most, held)
        await asyncio.sleep(1.0)
        held -= size
        room.give_back(size)

    async def main() -> None:
        room = Room(10)
        await asyncio.gather(*(one(room, number, size) for number, size in enumerate([6, 4, 7, 1, 2, 10, 3])))
        await room.take(10)

    run(main())
    assert most <= 10 and order == list(range(7))


@pytest.mark.parametrize("is_given", [False, True])
def test_who_goes_while_waiting_takes_nothing(is_given: bool) -> None:
    async def main() -> None:
        room = Room(10)
        await room.take(8)
        waiting = asyncio.create_task(room.take(5))
        behind = asyncio.create_task(room.take(2))
        await asyncio.sleep(0)
        if is_given:
            room.give_back(8)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        if not is_given:
            room.give_back(8)
        await behind
        await room.take(8)

    run(main())


@pytest.mark.parametrize("is_chunked", [False, True])
def test_large_bodies_beyond_the_room_wait_and_are_all_answered(
    monkeypatch: pytest.MonkeyPatch, is_chunked: bool
) -> None:
    monkeypatch.setattr(app, "MOST_HELD", 4 * 300_000)
    monkeypatch.setattr(app, "MOST_BYTES", 300_000)
    under_way = most = 0

    async def step(exchange: Exchange) -> None:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        for _ in range(20):
            await asyncio.sleep(0)
        under_way -= 1
        await exchange.answer(200, good_body(exchange.request, "7"))

    async def test(client: ScriptedClient) -> None:
        async def ask(number: int) -> int:
            body = json.dumps({**QUESTION, "seed": number, "filler": "x" * 290_000}).encode()

            async def pieces() -> AsyncIterator[bytes]:
                yield body[:100_000]
                yield body[100_000:]

            head = {"Content-Type": "application/json"}
            data = pieces() if is_chunked else body
            async with client.session.post(
                f"{client.url}/v1/chat/completions", data=data, headers=head
            ) as response:
                return response.status

        assert await asyncio.gather(*(ask(number) for number in range(20))) == [200] * 20

    scripted(test, step)
    assert 0 < most <= 4
