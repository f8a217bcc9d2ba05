"""Each call has its own time, though one timer serves them all."""

from __future__ import annotations

import asyncio
import random

import pytest
from dispatching import GOOD, NEVER, Bench, FakeServer, good, numbered

from plaudit.config import EngineConfig
from plaudit.errors import EngineClosed, TransportFailed
from plaudit.events import CallFinished
from plaudit.policy.retry import RetryPolicy
from plaudit.testing import run
from plaudit.types import Reply, Request

CONFIG = EngineConfig(timeout=20.0, hedge=False)
GATEWAY_TIMEOUT = TransportFailed("answered 504").with_facts(http_status=504)
ONCE = RetryPolicy(attempts=1)


def test_each_call_ends_after_its_own_time_on_every_endpoint() -> None:
    async def main() -> None:
        servers = [FakeServer(lambda _: (NEVER, GOOD)), FakeServer(lambda _: (NEVER, GOOD))]
        async with Bench(*servers, config=CONFIG, retry=ONCE) as bench:
            waves = []
            for wave in "abc":
                waves.append(asyncio.create_task(bench.ask_all(f"{wave}1", f"{wave}2")))
                await asyncio.sleep(7.0)
            for wave_of in waves:
                assert all(isinstance(outcome, TransportFailed) for outcome in (await wave_of).values())
            ended = [event.at for event in bench.seen(CallFinished)]
            assert [round(at) for at in ended[:6]] == [20, 20, 27, 27, 34, 34]
            assert all(event.latency_s == pytest.approx(20.0) for event in bench.seen(CallFinished))
            assert sum(server.cancelled for server in servers) == len(ended)

    run(main())


def test_a_call_that_comes_back_in_time_is_left_alone() -> None:
    async def main() -> None:
        server = FakeServer(lambda asked: (19.9 if asked.text == "a" else NEVER, GOOD))
        async with Bench(server, config=CONFIG, retry=ONCE) as bench:
            outcomes = await bench.ask_all("a", "b")
            assert outcomes["a"] == GOOD
            assert isinstance(outcomes["b"], TransportFailed)

    run(main())


def test_calls_that_are_late_already_are_watched_again_after_a_quiet_hour() -> None:
    async def main() -> None:
        server = FakeServer(lambda asked: (NEVER if asked.text == "b" else 1.0, GOOD))
        async with Bench(server, config=CONFIG, retry=ONCE) as bench:
            await bench.ask_all("a")
            await asyncio.sleep(3600.0)
            outcome = (await bench.ask_all("b"))["b"]
            assert isinstance(outcome, TransportFailed)
            assert bench.seen(CallFinished)[-1].latency_s == 20.0

    run(main())


def test_closing_at_the_very_moment_says_closed_and_leaves_nothing() -> None:
    async def main() -> None:
        server = FakeServer(lambda _: (NEVER, GOOD))
        async with Bench(server, config=CONFIG, retry=ONCE) as bench:
            asked = asyncio.create_task(bench.ask_all("a"))
            await asyncio.sleep(20.0)  # the timer is due now, too
            await bench.dispatcher.close()
            assert isinstance((await asked)["a"], EngineClosed | TransportFailed)
            assert server.gauge.now == 0

    run(main())


def test_prompts_that_always_hang_leave_the_places_to_the_others() -> None:
    async def main() -> None:
        server = FakeServer(lambda asked: (NEVER if int(asked.text[1:]) % 5 < 2 else 1.0, GOOD))
        async with Bench(server, config=EngineConfig(timeout=10.0)) as bench:
            assert good(await bench.ask_all(*numbered(500))) == 300

    run(main())


@pytest.mark.parametrize("seconds", [1.5, 2.0, 5.0, 30.0])
def test_a_server_that_drops_calls_at_random_is_sent_as_many_as_one_that_answers_all(seconds: float) -> None:
    async def main() -> None:
        dice = random.Random(3)
        server = FakeServer(lambda _: (seconds, GATEWAY_TIMEOUT) if dice.random() < 0.15 else (1.0, GOOD))
        async with Bench(server, config=EngineConfig(timeout=60.0)) as bench:
            assert good(await bench.ask_all(*numbered(1000))) == 1000
            assert asyncio.get_running_loop().time() < 3.0 * seconds + 30.0

    run(main())


@pytest.mark.parametrize("slots", [4, 16])
def test_a_queue_behind_a_gateway_that_gives_up_is_sent_what_it_answers_in_time(slots: int) -> None:
    free = asyncio.Semaphore(slots)

    class Queue(FakeServer):
        async def send(self, request: Request) -> Reply:
            try:
                async with asyncio.timeout(10.0), free:
                    return await super().send(request)
            except TimeoutError:
                raise GATEWAY_TIMEOUT from None

    async def main() -> None:
        server = Queue(latency=2.0)
        async with Bench(server, config=EngineConfig(timeout=60.0)) as bench:
            assert good(await bench.ask_all(*numbered(512))) == 512
            assert asyncio.get_running_loop().time() < 1.3 * 512 / slots * 2.0

    run(main())
