"""Simulated judges apart from their clients, so that the two never share an interpreter."""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
import tempfile
import threading
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from plaudit.simulator import Scenario, SimulatedServer
from plaudit.simulator.http_server import serving


@dataclass(frozen=True, slots=True)
class Simulator:
    """One running `plaudit simulate`."""

    root: str

    @property
    def url(self) -> str:
        """The base URL of OpenAI's routes."""
        return f"{self.root}/v1"

    def stats(self) -> dict[str, Any]:
        """What it has seen since the last reset."""
        return self._call("GET", "/stats")

    def reset(self) -> None:
        self._call("POST", "/stats/reset")

    def become(self, scenario: Scenario) -> None:
        """Follow another scenario, whose time zero is the next request."""
        self._call("POST", "/scenario", msgspec.json.encode(scenario))
        self.reset()

    def _call(self, method: str, path: str, body: bytes | None = None) -> dict[str, Any]:
        request = urllib.request.Request(self.root + path, data=body, method=method)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=600) as reply:
            found: dict[str, Any] = json.load(reply)
        return found


@contextlib.contextmanager
def simulators(scenarios: Sequence[Scenario], *, speed: float = 1.0) -> Iterator[list[Simulator]]:
    """A simulator for each scenario, on free ports, until the block ends."""
    processes: list[subprocess.Popen[bytes]] = []
    running = []
    with tempfile.TemporaryDirectory(prefix="plaudit-bench-") as folder:
        try:
            for number, scenario in enumerate(scenarios):
                file = Path(folder) / f"{number}.json"
                file.write_bytes(msgspec.json.encode(scenario))
                command = [sys.executable, "-m", "plaudit", "simulate", "--port", "0", "--speed", str(speed)]
                process = subprocess.Popen(
                    [*command, "--scenario", str(file)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
                )
                processes.append(process)
                assert process.stdout is not None
                words = process.stdout.readline().decode().split()
                if words[:2] != ["listening", "on"]:
                    raise RuntimeError(f"plaudit simulate did not start: {' '.join(words)!r}")
                running.append(Simulator(words[2]))
            yield running
        finally:
            for process in processes:
                process.terminate()
            for process in processes:
                process.wait()
                if process.stdout is not None:
                    process.stdout.close()


@contextlib.contextmanager
def on_a_thread(scenario: Scenario) -> Iterator[tuple[str, SimulatedServer]]:
    """A simulator on a thread of this process, for clients in others: its base URL, and its books."""
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
        yield urls[0], server
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()
