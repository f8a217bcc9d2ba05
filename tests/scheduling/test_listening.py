"""A reply that comes in the very moment in which its call is given up."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from plaudit.scheduling.listening import Listening
from plaudit.types import Reply


def test_a_reply_that_comes_in_the_moment_of_its_timeout_is_used() -> None:
    async def main() -> Reply:
        reply: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()

        async def send(_: object) -> Reply:
            return await reply

        lane = SimpleNamespace(transport=SimpleNamespace(send=send))
        flight: Any = SimpleNamespace(lane=lane, request=None, is_overdue=True)
        unused: Any = None
        listening = Listening(unused, finish=unused, pump=unused)
        sending = asyncio.create_task(listening.send(flight))
        for _ in range(3):
            await asyncio.sleep(0)  # until it waits for the reply
        reply.set_result(Reply("7"))
        sending.cancel()
        return await sending

    assert asyncio.run(main()) == Reply("7")
