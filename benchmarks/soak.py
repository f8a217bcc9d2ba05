"""Hours of mixed faults: does each sample get one outcome, does nothing hang, does memory stay flat?

    python benchmarks/soak.py                                a million calls, in virtual time
    python benchmarks/soak.py --calls 20000 --seed 3         fewer, and other ones
    python benchmarks/soak.py --calls 200000 --endpoints 1   nobody else to turn to in bad weather
    python benchmarks/soak.py --real --minutes 30 --speed 2  over real sockets: soak_sockets.py

One engine works on batch after batch over one to three endpoints whose weather changes every few minutes
(spells.py). Batches overlap; some of their samples repeat, some have a deadline, some are cancelled; between
them there are pauses, as a trainer makes. What must hold is in soak_checks.py. Between two batches everything
that the engine keeps for calls under way has to be empty, and every other container it owns may not grow.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import sys
import time
from collections import Counter
from collections.abc import Sequence
from random import Random

import soak_sockets
import table
from soak_checks import ALL, Order, Reading, Watch, memory, quarters, rounds
from spells import Forecast, spells
from workload import JUDGE, MODEL

from plaudit import Endpoint
from plaudit.config import EngineConfig, Price
from plaudit.scheduling.batch import Batch
from plaudit.scheduling.dispatcher import Dispatcher
from plaudit.scheduling.lane import Lane
from plaudit.scheduling.scorer import Scorer
from plaudit.simulator import Scenario, SimulatedTransport
from plaudit.testing import run

CALLS = 1_000_000
TIMEOUT = 60.0
MOST_AT_ONCE = 400
BOUND = 900.0
"""Seconds that a batch may take: a hundred times what it takes in fair weather."""
LATE = 0.5
"""Seconds by which a deadline may be missed."""
READINGS = 20
MOST_HELD = 20_000.0
"""Items in all containers of an idle engine: a minute's requests, and what the last calls took."""
LONGEST_PAUSE = 300.0
PRICE = Price(prompt=0.15, completion=0.60)
ENDPOINTS = (
    Endpoint("http://a/v1", model=MODEL, price=PRICE),
    Endpoint("http://b/v1", model=MODEL, price=PRICE, max_concurrent=48),
    Endpoint("http://c/v1", model=MODEL, price=PRICE, rpm=3000, tpm=50_000_000),
)
UNDER_WAY = ("queue", "flights", "_timers", "_asked", "_feeds", "_open", "_waiting", "_unsaved")
"""What the scorer, the dispatcher and their lanes keep for calls under way, by attribute."""


class Soak:
    """An engine without its thread, and the servers it works on."""

    def __init__(self, endpoints: Sequence[Endpoint], seed: int) -> None:
        self.watch = Watch(
            {ALL: MOST_AT_ONCE, ENDPOINTS[1].name: 48}, rpm={ENDPOINTS[2].name: ENDPOINTS[2].rpm or 0}
        )
        self.forecasts = [Forecast(one.url, slowest=15.0, fastest=80.0, seed=seed) for one in endpoints]
        self.transports = [SimulatedTransport(one.fair(), model=MODEL) for one in self.forecasts]
        self.lanes = [
            Lane(endpoint, transport, ceiling=MOST_AT_ONCE)
            for endpoint, transport in zip(endpoints, self.transports, strict=True)
        ]
        config = EngineConfig(timeout=TIMEOUT, max_concurrent=MOST_AT_ONCE, budget=1e9)
        self.scorer = Scorer(
            lambda on_room: Dispatcher(self.lanes, config, emit=self.watch, on_room=on_room), emit=self.watch
        )
        self.weather: Counter[str] = Counter()
        self.at_server: Counter[str] = Counter()

    async def change_weather(self, number: int) -> None:
        """One endpoint's weather, for ever."""
        for name, scenario, seconds in spells(self.forecasts[number]):
            self.weather[name] += 1
            self._become(number, scenario)
            await asyncio.sleep(seconds)

    def _become(self, number: int, scenario: Scenario) -> None:
        transport, ceiling = self.transports[number], self.lanes[number].ceiling
        stats = transport.server.stats
        self.at_server.update(stats.faults)
        self.at_server["requests"] += stats.requests
        self.at_server["over capacity"] += stats.over_capacity
        if stats.peak_in_flight > ceiling:
            self.watch.wrong(f"server {number} saw {stats.peak_in_flight} at once, {ceiling} allowed")
        transport.become(scenario)
        transport.server.stats = stats.reset()

    async def score(self, order: Order) -> None:
        """One batch, from its start to its last outcome."""
        await asyncio.sleep(order.after)
        loop = asyncio.get_running_loop()
        batch = Batch(order.samples, JUDGE, model=MODEL, deadline=order.deadline)
        done = asyncio.Event()
        batch.when_done(done.set)
        start = loop.time()
        self.scorer.start(batch)
        if order.cancel_after is not None:
            timer = loop.call_later(order.cancel_after, self.scorer.cancel, batch)
            batch.when_done(timer.cancel)
        called_off = [one + LATE for one in (order.deadline, order.cancel_after) if one is not None]
        bound = min([BOUND, *called_off])
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(2 * bound):
                await done.wait()
        self.watch.check(order, batch.verdicts, seconds=loop.time() - start, bound=bound)

    async def drain(self) -> None:
        """Wait for what is under way for nobody any more: it must end by its timeout."""
        for _ in range(round(TIMEOUT) + 5):
            if not self.watch.in_flight:
                break
            await asyncio.sleep(1.0)
        await asyncio.sleep(0.1)
        for name, size in held_by(self.scorer).items():
            if size and name.rsplit(".", 1)[-1] in UNDER_WAY:
                self.watch.wrong(f"{name} still holds {size} between two batches")
        promised = self.scorer._dispatcher._admission._spending.promised
        if promised > 1e-6:
            self.watch.wrong(f"${promised} promised for calls, though none is under way")

    def reading(self) -> Reading:
        """What is held now; the simulated servers forget what they have seen, or it would count as ours."""
        for number, forecast in enumerate(self.forecasts):
            self._become(number, forecast.fair())
        loop = asyncio.get_running_loop()
        timers = sum(not timer.cancelled() for timer in loop._scheduled)  # type: ignore[attr-defined]
        held = {"tasks": len(asyncio.all_tasks()), "timers": timers}
        containers = {"items the engine holds": sum(held_by(self.scorer).values())}
        figures = memory() | held | containers
        late = len(self.scorer._dispatcher._listening.late)  # a call that listens for a frozen server
        if (batches := sum(isinstance(thing, Batch) for thing in gc.get_objects())) > late:
            self.watch.wrong(f"{batches} batches in memory that are over")
        return Reading(self.watch.calls, figures)


def held_by(root: object) -> dict[str, int]:
    """How many items are in each container that belongs to an object of ours, or to one that it holds."""
    found: dict[str, int] = {}
    seen: set[int] = set()
    todo: list[tuple[str, object]] = [("scorer", root)]
    while todo:
        path, thing = todo.pop()
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        for name in dir(type(thing)) if hasattr(type(thing), "__slots__") else vars(thing):
            if name.startswith("__"):
                continue
            value = getattr(thing, name, None)
            where = f"{path}.{name}"
            if isinstance(value, (str, bytes, tuple)) or callable(value):
                continue
            if _is_ours(value):
                todo.append((where, value))
            elif hasattr(value, "__len__"):
                found[where] = len(value)
                items = value.values() if isinstance(value, dict) else value
                todo += [(f"{where}[{n}]", item) for n, item in enumerate(items) if _is_ours(item)]
    return found


def _is_ours(thing: object) -> bool:
    return type(thing).__module__.startswith(("plaudit.scheduling", "plaudit.policy"))


async def soak(calls: int, endpoints: Sequence[Endpoint], seed: int) -> tuple[Soak, list[Reading], float]:
    """Batch after batch until so many calls were made."""
    one = Soak(endpoints, seed)
    chance = Random(f"pauses {seed}")
    weather = [asyncio.create_task(one.change_weather(number)) for number in range(len(endpoints))]
    readings: list[Reading] = []
    began = time.perf_counter()
    for orders in rounds(seed):
        await asyncio.gather(*(one.score(order) for order in orders))
        await one.drain()
        if one.watch.calls >= (len(readings) + 1) * calls / READINGS:
            readings.append(one.reading())
            seconds = time.perf_counter() - began
            print(f"{one.watch.calls:,} calls, {seconds:.0f} s: {_said(readings[-1])}", file=sys.stderr)
        if one.watch.calls >= calls:
            break
        await asyncio.sleep(chance.choice((0.0, 0.0, 1.0, chance.uniform(0.0, LONGEST_PAUSE))))
    hours = asyncio.get_running_loop().time() / 3600
    for task in weather:
        task.cancel()
    await one.scorer.close()
    one.watch.check_lost()
    return one, readings, hours


def _said(reading: Reading) -> str:
    return ", ".join(f"{name} {value:,.0f}" for name, value in reading.figures.items())


def report(watch: Watch, readings: Sequence[Reading], bounds: dict[str, float] | None = None) -> None:
    """The tables that every soak ends with."""
    table.show("Calls", ("outcome", "count"), [(k, f"{n:,}") for k, n in watch.outcomes.most_common()])
    rows = [(name, f"{count:,}") for name, count in watch.verdicts.most_common()]
    table.show(f"{watch.samples:,} samples in {watch.batches:,} batches", ("outcome", "count"), rows)
    if watch.lost:
        rows = [(name, f"{count:,}") for name, count in watch.lost.most_common()]
        table.show("Without a verdict, though nobody called them off", ("cause", "count"), rows)
    header = ("between batches", "first quarter", "last quarter", "change", "most")
    table.show("Held", header, quarters(readings, watch, bounds))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--calls", type=int, default=CALLS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--endpoints", type=int, default=3, choices=(1, 2, 3), help="in virtual time")
    parser.add_argument("--real", action="store_true", help="over real sockets")
    parser.add_argument("--minutes", type=float, default=30.0, help="with --real")
    parser.add_argument("--speed", type=float, default=2.0, help="simulated seconds per second, with --real")
    parser.add_argument(
        "--rate", type=float, default=150.0, help="samples a second, at the most, with --real"
    )
    options = parser.parse_args()
    if options.real:
        watch = soak_sockets.soak(
            minutes=options.minutes, speed=options.speed, rate=options.rate, seed=options.seed, report=report
        )
    else:
        cpu = time.process_time()
        one, readings, hours = run(soak(options.calls, ENDPOINTS[: options.endpoints], options.seed))
        watch, cpu = one.watch, time.process_time() - cpu
        print(
            f"{watch.calls:,} calls ({watch.hedges:,} twins) in {hours:.1f} hours of virtual time, "
            f"{cpu:.0f} s of CPU ({1e6 * cpu / watch.calls:.0f} µs a call); "
            f"longest batch {watch.longest:.0f} s"
        )
        print(f"Spells of weather: {', '.join(f'{name} {n}' for name, n in one.weather.most_common())}")
        print(f"Counted at the servers: {', '.join(f'{k} {n:,}' for k, n in one.at_server.most_common())}")
        print(f"Most calls at once: {', '.join(f'{n} to {k}' for k, n in watch.peak.items())}")
        report(watch, readings, {"items the engine holds": MOST_HELD})
    print(f"{len(watch.violations)} violations")
    return 2 if watch.violations else 0


if __name__ == "__main__":
    sys.exit(main())
