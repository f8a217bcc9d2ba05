"""A simulated judge on a real socket, on a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from plaudit.simulator import Latency, Scenario, SimulatedServer
from plaudit.simulator.http_server import serving

FAST = Latency(mean_tokens=10, seconds_per_token=0.0, first_token=0.0, round_trip=0.0)


@dataclass
class Simulator:
    """Where the server answers, and what it has seen."""

    url: str
    server: SimulatedServer


@contextmanager
def simulated(scenario: Scenario) -> Iterator[Simulator]:
    server = SimulatedServer(scenario)
    loop, ready, stop = asyncio.new_event_loop(), threading.Event(), asyncio.Event()
    urls: list[str] = []

    async def serve() -> None:
        async with serving(server) as url:
            urls.append(f"{url}/v1")
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    ready.wait()
    try:
        yield Simulator(urls[0], server)
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()
