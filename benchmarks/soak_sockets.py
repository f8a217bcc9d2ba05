"""The soak over real sockets: the whole engine, its verdict file, and simulators in processes of their own.

Time is compressed for the servers and not for the engine, whose waits and timeouts are its own.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from simulated import Simulator, simulators
from soak_checks import (
    ALL,
    Order,
    Reading,
    Watch,
    memory,
    rounds,
    sample,
    threads_and_files,
)
from spells import Forecast
from workload import JUDGE, MODEL

from plaudit import Endpoint, Engine
from plaudit.pending import Pending
from plaudit.types import Source

SERVERS = 3
TIMEOUT = 20.0
MOST_AT_ONCE = 300
BOUND = 300.0
LATE = 2.0
"""Seconds by which a deadline may be missed, on a busy machine."""
READINGS = 20
KEPT = 10
"""One verdict in so many is asked for again at the end, and has to be in the file."""


class Weather:
    """Changes the servers from a thread of its own, until it is told to stop."""

    def __init__(self, servers: Sequence[Simulator], forecasts: Sequence[Forecast], *, speed: float) -> None:
        self.spells: Counter[str] = Counter()
        self.at_server: Counter[str] = Counter()
        self._servers = servers
        self._forecasts = forecasts
        self._speed = speed
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._change, name="weather")
        self._thread.start()

    def _change(self) -> None:
        due = [0.0] * len(self._servers)
        while not self._is_over.is_set():
            number = due.index(min(due))
            if self._is_over.wait(max(0.0, due[number] - time.monotonic())):
                break
            name, scenario, seconds = self._forecasts[number].next()
            self.spells[name] += 1
            self._note(self._servers[number])
            self._servers[number].become(scenario)
            due[number] = time.monotonic() + seconds / self._speed

    def _note(self, server: Simulator) -> None:
        stats = server.stats()
        self.at_server.update(stats["faults"])
        self.at_server["requests"] += stats["requests"]
        self.at_server["over capacity"] += stats["over_capacity"]

    def end(self) -> None:
        self._is_over.set()
        self._thread.join()
        for server in self._servers:
            self._note(server)


def soak(*, minutes: float, speed: float, rate: float, seed: int, report: Callable[..., None]) -> Watch:
    """Batch after batch for so many minutes, of so many samples a second on average."""
    # Together they take a little more than what is sent; compressed, each serves `speed` times as much.
    each = rate / speed / SERVERS
    forecasts = [
        Forecast(f"server {n}", slowest=1.0 * each, fastest=4.0 * each, seed=seed) for n in range(SERVERS)
    ]
    watch = Watch({ALL: MOST_AT_ONCE})
    with (
        tempfile.TemporaryDirectory(prefix="plaudit-soak-") as home,
        simulators([one.fair() for one in forecasts], speed=speed) as servers,
    ):
        os.environ["PLAUDIT_HOME"] = home  # nothing remembered from an earlier run
        weather = Weather(servers, forecasts, speed=speed)
        file = Path(home) / "verdicts.sqlite"
        endpoints = [Endpoint(server.url, model=MODEL) for server in servers]
        cpu = time.process_time()
        try:
            with Engine(
                endpoints=endpoints,
                timeout=TIMEOUT,
                max_concurrent=MOST_AT_ONCE,
                cache=file,
                observers=[watch],
            ) as engine:
                readings, kept = _work(engine, watch, seconds=60.0 * minutes, rate=rate, seed=seed)
                _check_kept(engine, watch, kept)
        finally:
            weather.end()
        cpu = time.process_time() - cpu
        size = sum(one.stat().st_size for one in Path(home).iterdir())
    print(
        f"{watch.calls:,} calls ({watch.hedges:,} twins) in {minutes:g} minutes over real sockets, servers "
        f"{speed:g} times as fast; {cpu:.0f} s of CPU ({1e6 * cpu / watch.calls:.0f} µs a call, the checks "
        f"included); longest batch {watch.longest:.0f} s; verdict file {size / 1e6:.1f} MB"
    )
    print(f"Spells of weather: {', '.join(f'{name} {n}' for name, n in weather.spells.most_common())}")
    print(f"Counted at the servers: {', '.join(f'{k} {n:,}' for k, n in weather.at_server.most_common())}")
    print(f"Most calls at once: {', '.join(f'{n} to {k}' for k, n in watch.peak.items())}")
    watch.check_lost()
    report(watch, readings, {"open files": SERVERS * MOST_AT_ONCE + 50.0})  # idle ones, of each endpoint
    return watch


def _work(
    engine: Engine, watch: Watch, *, seconds: float, rate: float, seed: int
) -> tuple[list[Reading], list[int]]:
    """The batches; what was held meanwhile, and samples whose verdicts are in the file."""
    start = time.monotonic()
    readings: list[Reading] = []
    kept: list[int] = []
    for orders in rounds(seed):
        under_way = [(order, *_submitted(engine, order)) for order in sorted(orders, key=_after)]
        for order, pending, began in under_way:
            kept += _finish(order, pending, began, watch=watch)
        _drain(watch)
        elapsed = time.monotonic() - start
        if elapsed >= (len(readings) + 1) * seconds / READINGS:
            readings.append(Reading(watch.calls, memory() | threads_and_files()))
            said = ", ".join(f"{name} {value:,.0f}" for name, value in readings[-1].figures.items())
            print(f"{watch.calls:,} calls, {elapsed:.0f} s: {said}", file=sys.stderr, flush=True)
        if elapsed >= seconds:
            return readings, kept
        time.sleep(max(0.0, watch.samples / rate - elapsed))
    raise AssertionError("rounds do not end")


def _after(order: Order) -> float:
    return order.after


def _submitted(engine: Engine, order: Order) -> tuple[Pending, float]:
    """A batch under way, and when it left. Batches of a round follow each other closely."""
    time.sleep(0.1 * order.after)
    pending = engine.submit(order.samples, JUDGE, deadline=order.deadline)
    if order.cancel_after is not None:
        timer = threading.Timer(order.cancel_after, pending.cancel)
        timer.daemon = True
        timer.start()
    return pending, time.monotonic()


def _finish(order: Order, pending: Pending, start: float, *, watch: Watch) -> list[int]:
    """Wait for a batch and check it; the answer is some of the samples that have a verdict now."""
    called_off = [one + LATE for one in (order.deadline, order.cancel_after) if one is not None]
    bound = min([BOUND, *called_off])
    verdicts = pending.result(timeout=max(0.0, start + 2 * BOUND - time.monotonic()))
    # One that waited for another batch of its round may have ended long before.
    watch.check(order, verdicts, seconds=min(time.monotonic() - start, pending.summary.seconds), bound=bound)
    numbers = [n for n, verdict in zip(order.numbers, verdicts, strict=False) if verdict.is_valid]
    return numbers[::KEPT]


def _drain(watch: Watch) -> None:
    """What is under way for nobody any more ends by its timeout."""
    until = time.monotonic() + TIMEOUT + 5.0
    while watch.in_flight:
        if time.monotonic() > until:
            watch.wrong(f"{watch.in_flight} calls under way that have outlived their timeout")
            return
        time.sleep(0.1)


def _check_kept(engine: Engine, watch: Watch, kept: Sequence[int]) -> None:
    """What was paid for is in the file."""
    kept = sorted(set(kept))
    verdicts = engine.score([sample(number) for number in kept], JUDGE)
    missing = sum(verdict.source is not Source.CACHE for verdict in verdicts)
    print(f"{len(kept):,} earlier verdicts asked for again: {missing} were not in the file")
    if missing:
        watch.wrong(f"{missing} of {len(kept)} verdicts were not in the file")
