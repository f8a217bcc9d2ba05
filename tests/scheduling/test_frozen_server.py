"""Requests a minute hold at a server that freezes: what it reads late counts when it is read."""

from __future__ import annotations

import asyncio
import random

import pytest
from dispatching import GOOD, Bench, FakeServer, good, numbered
from freezing import FreezingServer, most_in_a_window

from plaudit.config import Endpoint, EngineConfig
from plaudit.errors import RateLimited, TransportFailed, Unreachable
from plaudit.policy.quota import Quota
from plaudit.testing import run
from plaudit.transports import open_transport

RPM = 30


def score(
    *servers: FreezingServer, calls: int, timeout: float = 120.0, rpm: int = RPM, hedge: bool = True
) -> float:
    """Seconds that so many calls take; all of them must succeed."""

    async def main() -> float:
        config = EngineConfig(timeout=timeout, rpm=rpm, hedge=hedge)
        async with Bench(*servers, config=config) as bench:
            assert good(await bench.ask_all(*numbered(calls))) == calls
            return asyncio.get_running_loop().time()

    return run(main())


@pytest.mark.parametrize("begins", [0.0, 0.02, 5.0, 30.0, 59.0, 60.3, 61.0, 90.0])
@pytest.mark.parametrize("lasts", [2.0, 20.0, 55.0, 70.0, 130.0, 400.0])
@pytest.mark.parametrize("latency", [0.05, 8.0])
def test_no_minute_at_the_server_holds_more_than_allowed(begins: float, lasts: float, latency: float) -> None:
    server = FreezingServer(latency=latency, freezes=[(begins, lasts)])
    took = score(server, calls=100)
    assert server.busiest_minute <= RPM
    assert took <= 3 * 60.0 + lasts + 120.0  # twins of calls that hang in the freeze count as well


@pytest.mark.parametrize("error", [TransportFailed("502"), RateLimited("429"), Unreachable("gone")], ids=repr)
@pytest.mark.parametrize("is_own", [True, False])
def test_calls_that_look_whether_an_endpoint_is_back_count_as_well(error: Exception, is_own: bool) -> None:
    server = FakeServer(lambda asked: error if asked.at < 50.0 else GOOD, latency=0.01)

    async def main() -> None:
        endpoint = Endpoint("http://server/v1", model="m", rpm=RPM if is_own else None)
        config = EngineConfig(rpm=None if is_own else RPM)
        async with Bench(server, config=config, endpoints=[endpoint]) as bench:
            assert good(await bench.ask_all(*numbered(60))) == 60

    run(main())
    assert most_in_a_window(server.sent_at) <= RPM


@pytest.mark.parametrize("timeout", [3.0, 20.0])
@pytest.mark.parametrize(("begins", "lasts"), [(0.0, 70.0), (30.0, 40.0), (60.2, 100.0), (0.3, 300.0)])
def test_requests_that_timed_out_are_read_all_the_same(timeout: float, begins: float, lasts: float) -> None:
    server = FreezingServer(latency=0.5, freezes=[(begins, lasts)])
    took = score(server, calls=60, timeout=timeout)
    assert server.busiest_minute <= RPM
    assert took <= lasts + 4 * 60.0, "the thaw is noticed at once, by the call that still listens"


@pytest.mark.parametrize("seed", range(12))
def test_it_holds_over_freezes_that_come_again_and_again(seed: int) -> None:
    chance = random.Random(seed)
    freezes, at = [], 0.0
    while at < 3000.0:
        at += chance.expovariate(1 / 40.0)
        freezes.append((at, chance.expovariate(1 / 15.0)))
        at += freezes[-1][1]
    server = FreezingServer(latency=0.4, freezes=freezes)
    score(server, calls=150, timeout=chance.choice([5.0, 30.0, 120.0]))
    assert server.busiest_minute <= RPM


def test_a_lively_server_says_nothing_of_a_frozen_one() -> None:
    frozen, lively = FreezingServer(latency=0.5, freezes=[(0.2, 90.0)]), FreezingServer(latency=0.5)
    score(frozen, lively, calls=120, timeout=200.0)
    assert most_in_a_window(frozen.read_at + lively.read_at) <= RPM


@pytest.mark.parametrize("latency", [0.2, 5.0, 30.0])
def test_ordinary_calls_use_the_whole_allowance(latency: float) -> None:
    server = FreezingServer(latency=latency)
    score(server, calls=900, rpm=60, hedge=False)
    assert server.busiest_minute <= 60
    begun = server.read_at[59]
    assert 840 / (server.read_at[-1] - begun) > 0.95, "of one a second"


def test_a_server_that_never_answers_blocks_nobody_for_ever() -> None:
    server = FreezingServer(latency=1.0, freezes=[(0.0, 1e7)])

    async def main() -> None:
        config = EngineConfig(timeout=10.0, rpm=3)
        endpoint = Endpoint("http://server/v1", model="m", rpm=3)
        async with Bench(server, config=config, endpoints=[endpoint]) as bench:
            assert good(await bench.ask_all(*numbered(5))) == 0

    run(main())
    assert len(server.read_at) == 0


class SleepyServer:
    """Over real sockets: accepts and reads nothing while it sleeps, as a stopped process does.

    It falls asleep once, as soon as it has read so many requests, for so many seconds.
    """

    def __init__(self, *, after: int, lasts: float) -> None:
        self.read_at: list[float] = []
        self.awake = asyncio.Event()
        self.awake.set()
        self.tasks: set[asyncio.Task[None] | None] = set()
        self._after = after
        self._lasts = lasts

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.tasks.add(asyncio.current_task())
        try:
            while True:
                await self.awake.wait()
                head = await reader.readuntil(b"\r\n\r\n")
                await self.awake.wait()  # the bytes may have come meanwhile: a stopped process reads none
                length = int(head.lower().partition(b"content-length:")[2].split()[0])
                await reader.readexactly(length)
                loop = asyncio.get_running_loop()
                self.read_at.append(loop.time())
                if len(self.read_at) == self._after:
                    self.awake.clear()
                    loop.call_later(self._lasts, self.awake.set)
                body = b'{"choices": [{"message": {"content": "7"}}]}'
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()


@pytest.mark.parametrize("timeout", [0.4, 60.0])
def test_it_holds_over_real_sockets_at_a_server_that_stops_reading(timeout: float) -> None:
    window = 0.3

    async def main() -> list[float]:
        # It sleeps through the second five, and past the window after which the third five would be due.
        sleepy = SleepyServer(after=5, lasts=4 * window)
        server = await asyncio.start_server(sleepy.serve, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        transport = open_transport(Endpoint(url, model="m"), environ={})
        config = EngineConfig(timeout=timeout, hedge=False)
        async with Bench(transport, config=config, endpoints=[Endpoint(url, model="m")]) as bench:
            bench.strangers = sleepy.tasks
            bench.lanes[0].quota = Quota(rpm=5, window=window)
            assert good(await bench.ask_all(*numbered(15))) == 15
        server.close()
        return sleepy.read_at

    assert most_in_a_window(asyncio.run(main()), window=window) <= 5
