"""Servers that an engine does badly on if it takes every refusal for a matter of load."""

from __future__ import annotations

from dataclasses import dataclass

from workload import SAMPLES

from plaudit.simulator import Drawn, Fault, Knee, Latency, Rate, Reject, Scenario
from plaudit.simulator.scenario import Capacity


@dataclass(frozen=True, slots=True)
class Case:
    """A server to be measured."""

    drawn: Drawn
    samples: int = SAMPLES
    warm: Scenario | None = None
    """What the server is like in the second run; None: the same."""


def _named(
    about: str,
    capacity: Capacity,
    *faults: Fault,
    mean: float = 1.0,
    count: int = SAMPLES,
    heals: bool = False,
) -> Case:
    scenario = Scenario(latency=Latency().scaled_to(mean), capacity=capacity, faults=faults)
    return Case(Drawn(-1, about, scenario), count, scenario.replace(faults=()) if heals else None)


def _shut(length: float, every: float) -> Fault:
    return Fault("error", status=503, during=(1.0, 1.0 + length), every=every, before_limits=True)


BAD_CASES = (
    _named(
        "503 for 0.9 s in every 4.6 s, 278 slots, 0.4 s calls",
        Reject(278),
        _shut(0.9, 4.6),
        mean=0.4,
        count=4096,
    ),
    _named("503 for 1 s in every 6 s, 64 slots, 0.25 s calls", Reject(64), _shut(1.0, 6.0), mean=0.25),
    _named(
        "14% 429 at random, 200 slots; the next run without",
        Reject(200),
        Fault("error", 0.14, status=429, before_limits=True),
        mean=0.4,
        heals=True,
    ),
    _named("51/s, burst 2, Retry-After: 1", Rate(51.0, burst=2, hints="retry-after")),
    _named("372/s, burst 18, headers", Rate(372.0, burst=18)),
    _named("372/s, burst 18, headers and Retry-After: 1", Rate(372.0, burst=18, retry_after=1.0)),
    _named("106/s, burst 5, headers", Rate(106.0, burst=5)),
    _named("106/s, burst 5, headers and Retry-After: 1", Rate(106.0, burst=5, retry_after=1.0)),
    _named("235/s, burst 1, no headers, 0.8 s calls", Rate(235.0, hints="none"), mean=0.8),
    _named("235/s, burst 14,100, no headers, 0.8 s calls", Rate(235.0, burst=14_100, hints="none"), mean=0.8),
    _named(
        "five 429s that ask for an hour, 64 slots, 200 samples",
        Reject(64),
        Fault("error", status=429, retry_after=3600.0, requests=(10, 15), before_limits=True),
        count=200,
    ),
    _named(
        "3% 500, 1% reset, 0.4% hang, 1% garbage, 18 slots, Retry-After: 2",
        Reject(18, retry_after=2.0),
        Fault("error", 0.03, status=500),
        Fault("reset", 0.01),
        Fault("hang", 0.004),
        Fault("bad_json", 0.005),
        Fault("babble", 0.005),
    ),
    _named("230 slots", Reject(230)),
    _named("500 slots", Reject(500)),
    _named("1,000 slots", Reject(1000)),
    _named("knee at 24", Knee(24)),
    _named("knee at 40", Knee(40)),
)
