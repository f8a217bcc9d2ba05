"""How many requests one simulator process serves: it must never be what a benchmark of clients measures.

    python benchmarks/simulator.py [--requests 20000]

A client without any HTTP library sends the same request over 64 connections and reads each reply by its
length, so that it costs little itself. It and the server have a core each where there are two. Beside the
wall clock, the server's own CPU time says what it could serve if nobody took its core away.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
from typing import Any
from urllib.parse import urlsplit

import psutil
import table
import uvloop
from simulated import simulators
from workload import MODEL, requests_of, samples

from plaudit.simulator import PRESETS
from plaudit.transports.openai import OpenAI

GOAL = 5_000
CONNECTIONS = 64
ROUNDS = 5
TICK = 1 / os.sysconf("SC_CLK_TCK")
"""Seconds of CPU time that the system counts by: a short round on a fast machine may take less."""


class Connection(asyncio.Protocol):
    """Sends one request after another as long as there are any left to send."""

    def __init__(self, request: bytes, left: list[int], done: asyncio.Future[None]) -> None:
        self._request = request
        self._left = left
        self._done = done
        self._received = b""

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._next()

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, found, body = self._received.partition(b"\r\n\r\n")
        if not found:
            return
        if not head.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(head.decode())
        length = int(head.lower().partition(b"content-length:")[2].split(None, 1)[0])
        if len(body) >= length:
            self._received = b""
            self._next()

    def _next(self) -> None:
        if self._left[0]:
            self._left[0] -= 1
            self._transport.write(self._request)
        else:
            self._transport.close()
            self._done.set_result(None)


async def drive(host: str, port: int, request: bytes, count: int) -> float:
    """Seconds for so many requests."""
    loop = asyncio.get_running_loop()
    left = [count]
    ends = [loop.create_future() for _ in range(CONNECTIONS)]
    started = time.perf_counter()
    for end in ends:
        await loop.create_connection(lambda end=end: Connection(request, left, end), host, port)
    await asyncio.gather(*ends)
    return time.perf_counter() - started


def request_of(host: str) -> bytes:
    """What plaudit sends for a sample, with the headers that any client adds."""
    path, body = OpenAI(model=MODEL).encode(requests_of(samples(1))[0])
    head = f"POST /v1{path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
    return f"{head}Accept: */*\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--requests", type=int, default=20_000)
    count = parser.parse_args().requests
    with simulators([PRESETS["instant"]]) as (server,):
        place = urlsplit(server.root)
        assert place.hostname is not None and place.port is not None
        (process,) = [
            child for child in psutil.Process().children(recursive=True) if "simulate" in child.cmdline()
        ]
        request = request_of(place.netloc)
        uvloop.run(drive(place.hostname, place.port, request, 1_000))
        rows = []
        for number in range(1, ROUNDS + 1):
            before = sum(process.cpu_times()[:2])
            seconds = uvloop.run(drive(place.hostname, place.port, request, count))
            cpu = sum(process.cpu_times()[:2]) - before
            rows.append((number, count / seconds, count / max(cpu, TICK)))
    table.show(
        f"The simulator: {count:,} requests over {CONNECTIONS} connections, {ROUNDS} rounds",
        ("round", "requests a second", "requests a CPU second of the server"),
        [(str(number), f"{wall:,.0f}", f"{own:,.0f}") for number, wall, own in rows],
    )
    best = max(wall for _, wall, _ in rows)
    print(f"best {best:,.0f} a second; goal {GOAL:,}: {'met' if best >= GOAL else 'MISSED'}")
    return 0 if best >= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
