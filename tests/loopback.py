"""A simulated judge on a real socket of this machine, on a thread of its own."""

from __future__ import annotations

import asyncio
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from plaudit import Rubric, Sample
from plaudit.simulator import Fault, Latency, Scenario, SimulatedServer
from plaudit.simulator.http_server import serving
from plaudit.simulator.server import Stats

JUDGE = Rubric("Is it correct and brief?")
PROMPT = "What is the capital of France?"


def taking(seconds: float) -> Latency:
    """Every answer takes so long."""
    return Latency(mean_tokens=20, sigma=0.0, seconds_per_token=0.0, first_token=seconds, round_trip=0.0)


INSTANT = Scenario(latency=taking(0.0))
LOSING_A_TENTH = (
    Fault("error", 0.04, status=400),
    Fault("refusal", 0.04),
    Fault("filtered", 0.02),
    Fault("error", 0.1, status=503),  # which is asked for again
)
HANGING = INSTANT.replace(faults=(Fault("hang"),))


def samples(count: int, word: str = "Paris") -> list[Sample]:
    return [Sample(PROMPT, f"{word} {number}", group=str(number % 4)) for number in range(count)]


@dataclass(frozen=True)
class Loopback:
    """Where the server answers, and what it has seen."""

    url: str
    server: SimulatedServer

    @property
    def stats(self) -> Stats:
        return self.server.stats


@contextmanager
def loopback(scenario: Scenario = INSTANT, *, speed: float = 1.0, port: int = 0) -> Iterator[Loopback]:
    server = SimulatedServer(scenario)
    ready = threading.Event()
    found: list[tuple[str, asyncio.AbstractEventLoop, asyncio.Event]] = []

    async def serve() -> None:
        stop = asyncio.Event()
        async with serving(server, speed=speed, port=port) as url:
            found.append((f"{url}/v1", asyncio.get_running_loop(), stop))
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=asyncio.run, args=(serve(),), name="loopback")
    thread.start()
    ready.wait()
    url, loop, stop = found[0]
    try:
        yield Loopback(url, server)
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()


@contextmanager
def reserved_port() -> Iterator[int]:
    """A port that refuses connections until a server listens there, and that nobody else is given."""
    with socket.socket() as reserved:
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reserved.bind(("127.0.0.1", 0))
        port: int = reserved.getsockname()[1]
        if sys.platform != "linux":
            reserved.close()  # elsewhere no server could listen there
        yield port
