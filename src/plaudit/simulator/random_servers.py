"""Servers drawn at random: a kind of capacity, crossed with the weather that every API has.

    for number in range(300):
        drawn = draw(number)
        print(drawn.number, drawn.about, drawn.scenario)

The same number gives the same server. Sizes and times are drawn evenly over their orders of magnitude.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from msgspec.structs import replace

from plaudit.simulator.ideal import ideal_makespan
from plaudit.simulator.scenario import (
    Capacity,
    Fault,
    FaultKind,
    Hints,
    Knee,
    Latency,
    Queue,
    Rate,
    Reject,
    Scenario,
    SlotHints,
    Tenant,
    WrongHeaders,
)

MEAN_TOKENS = 200.0
BATCH = 1024
"""How many requests a batch has: what comes but once is placed where it strikes in the midst of them."""
JITTER = (0.01, 0.3)
"""Share of a round trip by which a request is late on average."""
NO_WEATHER = 1 / 3
TWO_KINDS = 0.4
"""Share of the servers with weather that have two kinds of it."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """One server drawn at random."""

    number: int
    about: str
    """What it is like, in one line."""
    scenario: Scenario


def draw(number: int) -> Drawn:
    """The server of this number."""
    chance = Random(f"server {number}")
    mean = _between(chance, 0.1, 8.0)
    latency = _latency(chance, mean)
    jitter = latency.round_trip * _between(Random(f"jitter {number}"), *JITTER)
    latency = replace(latency, jitter=jitter)
    capacity, size, about = chance.choice((_reject, _queue, _knee, _rate, _rate))(chance)
    about += (
        f", {mean:.2f} s calls (sigma {latency.sigma:.2f}), round trip {1000 * latency.round_trip:.0f} ms"
    )
    calm = Scenario(seed=number, latency=latency, capacity=capacity)
    if chance.random() < NO_WEATHER:
        return Drawn(number, about, calm)
    place = _ServerFacts(size, mean, _last_start(calm))
    while True:
        scenario, parts = calm, [about]
        for weather in _weather(chance):
            scenario, part = weather(chance, scenario, place)
            parts.append(part)
        if _is_fair(scenario):
            return Drawn(number, "; ".join(parts), scenario)


@dataclass(frozen=True, slots=True)
class _ServerFacts:
    """What weather has to know of the server it falls on."""

    size: float
    """Slots, requests a second, or the knee."""
    mean: float
    """Seconds that an average call takes."""
    last_start: float
    """When the last request of a batch leaves, at best."""


def _last_start(scenario: Scenario) -> float:
    """When the last request of a batch of equal ones leaves, at best."""
    work = scenario.latency.work(round(scenario.latency.mean_tokens))
    return max(0.0, ideal_makespan(scenario, [work] * BATCH) - work - scenario.latency.round_trip)


def _is_fair(scenario: Scenario) -> bool:
    """Whether a client that is nearly as good as the ideal, but cannot see ahead, is not much slower."""
    if not scenario.faults:
        return True
    last_start = _last_start(scenario)
    return all(_allows_for(fault, scenario.latency, last_start) for fault in scenario.faults)


def _allows_for(fault: Fault, latency: Latency, last_start: float) -> bool:
    """Whether a fault leaves time to get over it, in a batch whose last request leaves then at best."""
    call = latency.round_trip + latency.work(round(latency.mean_tokens))
    if fault.kind in ("hang", "slow"):  # is found out after a call's time, and takes another to make up for
        return last_start >= 4.0 * call
    if fault.probability < 1.0:  # a request hit again and again makes a round trip for each time
        tries = math.log(BATCH) / -math.log(fault.probability)
        return tries * latency.round_trip <= 0.25 * (last_start + call)
    return fault.during is None or not _begins_too_late(
        fault, last_start, last_start + call * (1.0 + latency.sigma)
    )


def _begins_too_late(outage: Fault, last_start: float, end: float) -> bool:
    """Whether a long outage begins when the ideal has just sent its last request, and so escapes it."""
    start, stop = outage.during or (0.0, math.inf)
    if stop - start < 0.2 * end:
        return False
    while outage.every is not None and start <= 0.9 * last_start:
        start += outage.every
    return 0.0 < start <= 1.5 * end and start > 0.9 * last_start


def _between(chance: Random, low: float, high: float) -> float:
    """A number between two, its logarithm drawn evenly; three digits are enough."""
    return float(f"{low * (high / low) ** chance.random():.3g}")


def _latency(chance: Random, mean: float) -> Latency:
    first_token = mean * chance.uniform(0.02, 0.3)
    return Latency(
        mean_tokens=MEAN_TOKENS,
        sigma=round(chance.random(), 2),
        seconds_per_token=(mean - first_token) / MEAN_TOKENS,
        first_token=first_token,
        round_trip=_between(chance, 0.001, 0.2),
    )


def _reject(chance: Random) -> tuple[Capacity, float, str]:
    slots, status = round(_between(chance, 10, 2000)), chance.choice((429, 429, 503))
    hints: SlotHints = chance.choice(("none", "exact", "retry-after"))
    absurd = chance.choice((0.0, 1.0, 30.0, 3600.0)) if chance.random() < 0.35 else None
    told = _told(hints, absurd)
    return Reject(slots, status, absurd, hints), slots, f"{slots} slots, else {status} with {told}"


def _queue(chance: Random) -> tuple[Capacity, float, str]:
    slots = round(_between(chance, 10, 2000))
    return Queue(slots), slots, f"{slots} slots and a silent queue"


def _knee(chance: Random) -> tuple[Capacity, float, str]:
    knee, exponent = round(_between(chance, 10, 1000)), round(chance.uniform(0.0, 1.5), 2)
    return Knee(knee, exponent), knee, f"knee at {knee}, exponent {exponent}"


def _rate(chance: Random) -> tuple[Capacity, float, str]:
    per_second = _between(chance, 5, 2000)
    burst = round(_between(chance, 1, 60 * per_second))
    window = chance.choice((1.0, 10.0, 60.0)) if chance.random() < 0.2 else None
    hints: Hints = chance.choice(("none", "retry-after", "exact", "headers", "all", "all"))
    absurd = chance.choice((0.0, 30.0, 3600.0)) if hints != "none" and chance.random() < 0.25 else None
    wrong = _wrong(chance) if hints in ("headers", "all") and chance.random() < 0.4 else None
    room = f"burst {burst}" if window is None else f"counted in windows of {window:g} s"
    about = f"{per_second:g}/s, {room}, {_told(hints, absurd)}"
    if wrong is not None:
        about += f", wrong headers ({', '.join(_differences(wrong))})"
    return Rate(per_second, burst, window, None, hints, absurd, wrong), per_second, about


def _wrong(chance: Random) -> WrongHeaders:
    return chance.choice(
        (
            WrongHeaders(limit_factor=chance.choice((0.1, 0.5, 2.0, 10.0))),
            WrongHeaders(reset_factor=chance.choice((0.1, 0.5, 2.0, 60.0))),
            WrongHeaders(reset_factor=0.0),
            WrongHeaders(remaining=0),
            WrongHeaders(remaining=1_000_000),
        )
    )


def _differences(wrong: WrongHeaders) -> list[str]:
    found = []
    if wrong.limit_factor != 1.0:
        found.append(f"limit x {wrong.limit_factor:g}")
    if wrong.reset_factor != 1.0:
        found.append(f"reset x {wrong.reset_factor:g}")
    if wrong.remaining is not None:
        found.append(f"remaining always {wrong.remaining:,}")
    return found


def _told(hints: str, retry_after: float | None) -> str:
    if retry_after is not None:
        also = " and x-ratelimit headers" if hints in ("headers", "all") else ""
        return f"Retry-After: {retry_after:g} always{also}"
    return {
        "none": "no hints",
        "retry-after": "Retry-After in whole seconds",
        "exact": "a true Retry-After",
        "headers": "x-ratelimit headers",
        "all": "Retry-After and x-ratelimit headers",
    }[hints]


def _with_faults(scenario: Scenario, *faults: Fault) -> Scenario:
    return scenario.replace(faults=(*scenario.faults, *faults))


def _away(chance: Random) -> Fault:
    """How a server is away that is away for everybody."""
    kind: FaultKind = chance.choice(("error", "error", "error", "down", "reset"))
    return Fault(
        kind,
        status=chance.choice((503, 503, 500, 429)) if kind == "error" else 503,
        retry_after=chance.choice((None, None, 1.0, 5.0, 3600.0)) if kind == "error" else None,
        before_limits=True,
    )


def _manner(fault: Fault) -> str:
    text = str(fault.status) if fault.kind == "error" else fault.kind
    return text if fault.retry_after is None else f"{text} (Retry-After: {fault.retry_after:g})"


def _outages(chance: Random, scenario: Scenario, _: _ServerFacts) -> tuple[Scenario, str]:
    every = _between(chance, 3, 30)
    length = round(min(every * chance.uniform(0.05, 0.4), 5.0), 2)
    start = round(chance.uniform(0.0, every - length), 2)
    fault = replace(_away(chance), during=(start, start + length), every=every)
    return (
        _with_faults(scenario, fault),
        f"{_manner(fault)} for {length:g} s in every {every:g} s, from {start:g} s",
    )


def _long_outage(chance: Random, scenario: Scenario, place: _ServerFacts) -> tuple[Scenario, str]:
    start, length = round(place.last_start * chance.uniform(0.0, 0.7), 2), _between(chance, 5, 60)
    fault = replace(_away(chance), during=(start, start + length))
    return _with_faults(scenario, fault), f"{_manner(fault)} for {length:g} s from {start:g} s"


def _rolling_restart(chance: Random, scenario: Scenario, place: _ServerFacts) -> tuple[Scenario, str]:
    """One backend of a few is away, with its share of the capacity and of the requests, sent blindly."""
    backends = chance.choice((2, 3, 3, 4))
    length = _between(chance, 1, 10)
    every = length + _between(chance, 2, 20)
    fault = replace(_away(chance), probability=1 / backends, during=(0.0, length), every=every)
    gone = Tenant(place.size / backends, on=length, off=every - length)
    changed = _with_faults(scenario, fault).replace(tenants=(*scenario.tenants, gone))
    return (
        changed,
        f"one of {backends} backends away ({_manner(fault)}) for {length:g} s in every {every:.3g} s",
    )


def _random_429(chance: Random, scenario: Scenario, _: _ServerFacts) -> tuple[Scenario, str]:
    fault = Fault(
        "error",
        _between(chance, 0.01, 0.2),
        status=429,
        retry_after=chance.choice((None, None, 0.0, 1.0, 3600.0)),
        before_limits=True,
    )
    return _with_faults(scenario, fault), f"{100 * fault.probability:.3g}% {_manner(fault)} at random"


def _random_5xx(chance: Random, scenario: Scenario, _: _ServerFacts) -> tuple[Scenario, str]:
    fault = Fault(
        "error",
        _between(chance, 0.01, 0.2),
        status=chance.choice((500, 500, 502, 503)),
        retry_after=chance.choice((None, None, 2.0)),
        before_limits=chance.random() < 0.5,
    )
    return _with_faults(scenario, fault), f"{100 * fault.probability:.3g}% {_manner(fault)} at random"


def _hangs(chance: Random, scenario: Scenario, _: _ServerFacts) -> tuple[Scenario, str]:
    fault = Fault("hang", _between(chance, 0.001, 0.01))
    return _with_faults(scenario, fault), f"{100 * fault.probability:.3g}% hang"


def _slow_calls(chance: Random, scenario: Scenario, _: _ServerFacts) -> tuple[Scenario, str]:
    fault = Fault("slow", _between(chance, 0.002, 0.02), factor=_between(chance, 4, 25))
    return (
        _with_faults(scenario, fault),
        f"{100 * fault.probability:.3g}% take {fault.factor:g} times as long",
    )


def _broken_replies(chance: Random, scenario: Scenario, _: _ServerFacts) -> tuple[Scenario, str]:
    kinds: tuple[FaultKind, ...] = ("reset", "cut", "bad_json", "html", "babble")
    faults = [Fault(kind, _between(chance, 0.002, 0.02)) for kind in chance.sample(kinds, 2)]
    return _with_faults(scenario, *faults), " and ".join(
        f"{100 * fault.probability:.3g}% {fault.kind}" for fault in faults
    )


def _changes(chance: Random, scenario: Scenario, place: _ServerFacts) -> tuple[Scenario, str]:
    """More capacity or less; but not less where a batch fits in at once, for the ideal would never notice."""
    span, least = (place.last_start, 0.25) if place.last_start > place.mean else (place.mean, 1.0)
    times = sorted(round(span * chance.uniform(0.0, 0.8), 2) for _ in range(chance.choice((1, 1, 2, 3))))
    sizes = [max(1.0, round(place.size * _between(chance, least, 2.0))) for _ in times]
    schedule = tuple(zip(times, sizes, strict=True))
    text = ", ".join(f"{size:g} from {at:g} s" for at, size in schedule)
    return scenario.replace(schedule=schedule), f"capacity {text}"


def _neighbour(chance: Random, scenario: Scenario, place: _ServerFacts) -> tuple[Scenario, str]:
    load = max(1.0, math.floor(place.size * chance.uniform(0.1, 0.6)))
    comes_and_goes = chance.random() < 0.7
    on, off = (_between(chance, 1, 20), _between(chance, 1, 20)) if comes_and_goes else (None, 0.0)
    tenant = Tenant(load, on, off)
    changed = scenario.replace(tenants=(*scenario.tenants, tenant))
    return changed, f"a neighbour takes {load:g}" + (
        f", {on:g} s on, {off:g} s off" if comes_and_goes else ""
    )


def _weather(chance: Random) -> list[_Weather]:
    """One kind or two, of which at most one takes capacity away: two might leave nothing."""
    count = 2 if chance.random() < TWO_KINDS else 1
    while len(set(found := chance.sample(_WEATHER, count)) & {_rolling_restart, _changes, _neighbour}) > 1:
        pass
    return found


_Weather = Callable[[Random, Scenario, _ServerFacts], tuple[Scenario, str]]
_WEATHER: tuple[_Weather, ...] = (
    _outages,
    _long_outage,
    _rolling_restart,
    _random_429,
    _random_5xx,
    _hangs,
    _slow_calls,
    _broken_replies,
    _changes,
    _neighbour,
)
