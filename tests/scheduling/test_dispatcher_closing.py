"""Closing at any moment: every call has its one outcome, and nothing is left running."""

from __future__ import annotations

import asyncio

import pytest
from dispatching import GOOD, NEVER, Bench, FakeServer, good, numbered
from test_dispatcher_ceilings import troubled

from plaudit.config import EngineConfig
from plaudit.errors import EngineClosed, RateLimited, TransportFailed
from plaudit.testing import run


@pytest.mark.parametrize("moment", [0.0, 0.05, 0.3, 1.0, 3.7, 10.0, 25.0, 31.0, 60.0])
def test_closing_at_any_moment_gives_every_call_its_outcome(moment: float) -> None:
    async def main() -> None:
        servers = [FakeServer(troubled), FakeServer(troubled)]
        config = EngineConfig(max_concurrent=20, timeout=30.0)
        async with Bench(*servers, config=config) as bench:  # which checks the outcomes as it closes
            bench.ask(*numbered(300))
            await asyncio.sleep(moment)
        assert len(bench.outcomes) == 300
        lost = [o[0] for o in bench.outcomes.values() if not isinstance(o[0], type(GOOD))]
        assert all(isinstance(outcome, EngineClosed) for outcome in lost)
        assert servers[0].gauge.now == servers[1].gauge.now == 0
        assert servers[0].closes == servers[1].closes == 1

    run(main())


def test_closing_takes_no_time_whatever_hangs_or_waits() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        hanging = FakeServer(lambda _: (NEVER, GOOD))
        waiting = FakeServer(RateLimited("not now", retry_after=3000.0), latency=0.1)
        async with Bench(hanging, waiting) as bench:
            bench.ask(*numbered(100))
            await asyncio.sleep(10.0)
        assert loop.time() == pytest.approx(10.0)
        assert len(bench.outcomes) == 100

    run(main())


def test_what_comes_after_the_close_is_told_so() -> None:
    async def main() -> None:
        bench = Bench(FakeServer(GOOD))
        await bench.dispatcher.close()
        bench.ask("late")
        assert isinstance(bench.outcomes["late"][0], EngineClosed)
        await bench.dispatcher.close()

    run(main())


def test_nothing_is_sent_after_the_close() -> None:
    async def main() -> None:
        server = FakeServer(TransportFailed("reset"))
        async with Bench(server) as bench:
            bench.ask(*numbered(50))
            await asyncio.sleep(1.2)
        asked = len(server.asked)
        await asyncio.sleep(1000.0)
        assert len(server.asked) == asked

    run(main())


def test_an_idle_dispatcher_leaves_no_timer_and_no_task() -> None:
    async def main() -> None:
        async with Bench(FakeServer(GOOD), FakeServer(GOOD)) as bench:
            assert good(await bench.ask_all(*numbered(100))) == 100
            loop = asyncio.get_running_loop()
            before = loop.time()
            await asyncio.sleep(1e6)
            assert loop.time() == pytest.approx(before + 1e6)
            assert asyncio.all_tasks() == {asyncio.current_task()}

    run(main())


def test_a_call_nobody_wants_any_more_is_not_sent() -> None:
    async def main() -> None:
        server = FakeServer(GOOD)
        async with Bench(server, config=EngineConfig(max_concurrent=4)) as bench:
            bench.ask(*numbered(40))
            for text in numbered(40)[20:]:
                bench.calls[text].is_wanted = lambda _: False
            outcomes = await bench.answers()
            assert good(outcomes) == 20
            assert sorted(server.texts()) == sorted(numbered(40)[:20])

    run(main())
