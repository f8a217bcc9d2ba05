"""Servers whose weather changes every few minutes: what each is like next, drawn from a seed."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from random import Random

from plaudit.simulator import Fault, Knee, Queue, Rate, Reject, Scenario, Tenant, draw

SHORTEST, LONGEST = 45.0, 200.0
"""Simulated seconds that one spell of weather lasts."""
DRAWN_ANEW = 0.25
"""Share of the spells in which a server is another one altogether, with whatever weather that has."""


def size_of(scenario: Scenario) -> float:
    """Slots, requests a second, or the knee."""
    match scenario.capacity:
        case Rate() as capacity:
            return capacity.per_second
        case Knee() as capacity:
            return capacity.knee
        case Reject() | Queue() as capacity:
            return capacity.slots
    raise ValueError(f"{scenario.capacity} has no size")


def per_second(scenario: Scenario) -> float:
    """Requests a second that the server answers at best, in fair weather."""
    if isinstance(scenario.capacity, Rate):
        return scenario.capacity.per_second
    latency = scenario.latency
    return size_of(scenario) / latency.work(round(latency.mean_tokens))


class Forecast:
    """One endpoint: a server of a moderate size, then the same or another in ever new weather."""

    def __init__(self, name: str, *, slowest: float, fastest: float, seed: int = 0) -> None:
        """`slowest`, `fastest`: requests a second, in fair weather, of the servers that are drawn."""
        self._chance = Random(f"soak {seed} {name}")
        self._bounds = slowest, fastest
        self._numbers = itertools.count(self._chance.randrange(1_000_000))
        self._nature = self._fair(self._draw())

    def next(self) -> tuple[str, Scenario, float]:
        """What the next spell is called, what the server is like in it, and how long it lasts."""
        seconds = round(self._chance.uniform(SHORTEST, LONGEST), 1)
        if self._chance.random() < DRAWN_ANEW:
            drawn = self._draw()
            self._nature = self._fair(drawn)
            return "drawn anew", drawn, seconds
        weather = self._chance.choice(_WEATHER)
        return weather.__name__.strip("_").replace("_", " "), weather(self._chance, self._nature), seconds

    def fair(self) -> Scenario:
        """The server as it is now, without any weather."""
        return self._nature

    def _draw(self) -> Scenario:
        slowest, fastest = self._bounds
        for number in self._numbers:
            scenario = draw(number).scenario.replace(seed=0)  # one model: the same answers everywhere
            if slowest <= per_second(scenario) <= fastest:
                return scenario
        raise AssertionError("numbers do not end")

    @staticmethod
    def _fair(scenario: Scenario) -> Scenario:
        return scenario.replace(faults=(), tenants=(), schedule=())


def spells(forecast: Forecast) -> Iterator[tuple[str, Scenario, float]]:
    """All spells of an endpoint, one after another."""
    while True:
        yield forecast.next()


def _fair_weather(_: Random, server: Scenario) -> Scenario:
    return server


def _outages(chance: Random, server: Scenario) -> Scenario:
    every = chance.uniform(4.0, 20.0)
    status = chance.choice((429, 500, 503))
    return server.replace(
        faults=(
            Fault("error", status=status, during=(1.0, 1.0 + 0.2 * every), every=every, before_limits=True),
        )
    )


def _random_429(chance: Random, server: Scenario) -> Scenario:
    wait = chance.choice((None, 0.0, 1.0, 3600.0))
    return server.replace(
        faults=(Fault("error", chance.uniform(0.02, 0.2), status=429, retry_after=wait, before_limits=True),)
    )


def _random_5xx(chance: Random, server: Scenario) -> Scenario:
    return server.replace(
        faults=(Fault("error", chance.uniform(0.02, 0.2), status=chance.choice((500, 502, 503))),)
    )


def _hangs(chance: Random, server: Scenario) -> Scenario:
    return server.replace(faults=(Fault("hang", chance.uniform(0.001, 0.01)),))


def _slow_calls(chance: Random, server: Scenario) -> Scenario:
    return server.replace(faults=(Fault("slow", 0.02, factor=chance.uniform(4.0, 25.0)),))


def _all_slow(chance: Random, server: Scenario) -> Scenario:
    return server.replace(faults=(Fault("slow", factor=chance.uniform(2.0, 8.0)),))


def _garbage(_: Random, server: Scenario) -> Scenario:
    kinds = ("bad_json", "html", "cut", "babble", "plain_text")
    return server.replace(faults=tuple(Fault(kind, 0.01) for kind in kinds))


def _resets(chance: Random, server: Scenario) -> Scenario:
    return server.replace(faults=(Fault("reset", chance.uniform(0.01, 0.1)),))


def _rolling_restarts(chance: Random, server: Scenario) -> Scenario:
    length = chance.uniform(2.0, 10.0)
    every = 3.0 * length
    fault = Fault("error", 1 / 3, status=503, during=(0.0, length), every=every, before_limits=True)
    gone = Tenant(size_of(server) / 3, on=length, off=every - length)
    return server.replace(faults=(fault,), tenants=(gone,))


def _neighbour(chance: Random, server: Scenario) -> Scenario:
    load = max(1.0, size_of(server) * chance.uniform(0.2, 0.7))
    return server.replace(tenants=(Tenant(load, on=chance.uniform(3.0, 30.0), off=10.0),))


def _other_capacity(chance: Random, server: Scenario) -> Scenario:
    sizes = [max(2.0, round(size_of(server) * chance.choice((0.2, 0.5, 1.0, 2.0)))) for _ in range(3)]
    return server.replace(schedule=tuple(zip((0.0, 15.0, 40.0), sizes, strict=True)))


def _dead_for_a_minute(chance: Random, server: Scenario) -> Scenario:
    start = chance.uniform(0.0, 20.0)
    return server.replace(
        faults=(Fault(chance.choice(("down", "reset")), during=(start, start + 60.0), before_limits=True),)
    )


def _everything(_: Random, server: Scenario) -> Scenario:
    return server.replace(
        faults=(
            Fault("error", 0.03, status=500),
            Fault("error", 0.03, status=503, retry_after=1.0),
            Fault("error", 0.03, status=429, before_limits=True),
            Fault("reset", 0.01),
            Fault("cut", 0.01),
            Fault("hang", 0.003),
            Fault("slow", 0.01, factor=10.0),
            Fault("bad_json", 0.01),
            Fault("html", 0.01),
            Fault("babble", 0.01),
        )
    )


_WEATHER: tuple[Callable[[Random, Scenario], Scenario], ...] = (
    _fair_weather,
    _outages,
    _random_429,
    _random_5xx,
    _hangs,
    _slow_calls,
    _all_slow,
    _garbage,
    _resets,
    _rolling_restarts,
    _neighbour,
    _other_capacity,
    _dead_for_a_minute,
    _everything,
)
