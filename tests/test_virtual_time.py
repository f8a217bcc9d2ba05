"""Virtual time: what a timer's callback sees of the clock."""

from __future__ import annotations

import asyncio

from plaudit.testing import run


def test_time_has_come_when_a_timer_fires() -> None:
    """asyncio fires timers up to a nanosecond early, and the clock would then stand still before them."""
    seen: list[float] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        for when in (0.9, 0.9 + 1e-12, 0.9 + 2e-10):
            loop.call_at(when, lambda: seen.append(loop.time()))
        await asyncio.sleep(1.0)

    run(main())
    assert seen == [0.9, 0.9 + 1e-12, 0.9 + 2e-10]


def test_a_callback_that_comes_again_until_its_time_is_there_ends_though_the_loop_is_busy() -> None:
    due = 0.9000000000000002  # a hair after the first timer: within asyncio's resolution
    looks: list[float] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        done = loop.create_future()

        def look() -> None:
            looks.append(loop.time())
            if loop.time() >= due or len(looks) == 100:
                done.set_result(None)
                return
            loop.call_at(due, look)
            loop.call_soon(lambda: loop.call_soon(lambda: None))  # what is ready keeps the loop from waiting

        loop.call_at(0.8999999999999999, look)
        await done

    run(main())
    assert looks == [0.8999999999999999, due]
