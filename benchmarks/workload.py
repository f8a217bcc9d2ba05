"""What the benchmarks have judged, and where: the samples, the servers, and the goal for each server."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from plaudit import ChatRequest, Rubric, Sample
from plaudit.simulator import (
    PRESETS,
    Knee,
    Latency,
    Queue,
    Rate,
    Reject,
    Scenario,
    ideal_makespan_of,
    works_of,
)
from plaudit.simulator.scenario import Capacity

SAMPLES = 1024
JUDGE = Rubric("Is the answer correct and brief?", scale=(0, 10), max_tokens=512)
"""Replies are cut off where they always were, so that the figures of different versions compare."""
MODEL = "simulated"


@dataclass(frozen=True, slots=True)
class Site:
    """One or more servers of one model, with the makespan over ideal that is to be reached on them."""

    name: str
    about: str
    servers: tuple[Scenario, ...]
    goal: float | None = None
    second_goal: float | None = None
    """The same for the second batch."""

    def seeded(self, seed: int) -> tuple[Scenario, ...]:
        """The servers with another seed: other reply lengths, but the same on all, for it is one model."""
        return tuple(server.replace(seed=seed) for server in self.servers)


SITES = (
    Site("rejecting", "64 at once, else 429", (PRESETS["rejecting"],), 1.10, 1.05),
    Site("queue", "16 at once, the rest wait in silence", (PRESETS["queue"],), 1.05, 1.05),
    Site("rate-headers", "20 a second, said in headers", (PRESETS["rate-headers"],), 1.08, 1.05),
    Site("rate-bare", "20 a second, not said", (PRESETS["rate-bare"],), 1.15),
    Site(
        "two-unequal",
        "64 at once, and 16 at half the speed",
        (
            Scenario(capacity=Reject(slots=64)),
            Scenario(capacity=Reject(slots=16), latency=Latency(seconds_per_token=0.04)),
        ),
        1.12,
    ),
    Site("knee", "thrashes past 128 at once", (PRESETS["knee"],), 1.20),
    Site("falling", "128 at once, after 8 s only 48", (PRESETS["falling"],), 1.20),
)


def samples(count: int, *, tag: str = "") -> list[Sample]:
    """So many different samples; another tag, other samples."""
    return [Sample(f"What is {number} + 1?{tag}", f"It is {number + 1}.") for number in range(count)]


def requests_of(batch: Sequence[Sample]) -> list[ChatRequest]:
    """What the judge asks about each sample: the very requests that the servers get."""
    return [request for sample in batch if isinstance(request := JUDGE.render(sample), ChatRequest)]


def ideal(servers: Sequence[Scenario], batch: Sequence[Sample]) -> float:
    """Seconds that nobody can beat."""
    requests = requests_of(batch)
    return ideal_makespan_of([(server, works_of(server, requests, model=MODEL)) for server in servers])


def settled(server: Scenario) -> Scenario:
    """The server as it is once its schedule has run out."""
    if not server.schedule:
        return server
    return server.with_capacity(server.schedule[-1][1]).replace(schedule=())


def wild_site(number: int, *, seed: int = 0) -> Site:
    """A server that nobody tuned for: kind, size, speed, spread and distance drawn at random."""
    draw = random.Random(1_000_003 * seed + number)
    slots = round(8 * 50 ** draw.random())
    mean = 0.2 * 25 ** draw.random()
    sigma, round_trip = draw.uniform(0.0, 1.0), 0.001 * 200 ** draw.random()
    first_token = mean * draw.uniform(0.02, 0.3)
    latency = Latency(
        sigma=sigma,
        seconds_per_token=(mean - first_token) / 200.0,
        first_token=first_token,
        round_trip=round_trip,
    )
    burst = max(1, round(slots * 2 * draw.random()))
    kinds: dict[str, Capacity] = {
        "reject": Reject(slots=slots),
        "reject+retry-after": Reject(slots=slots, retry_after=1.0),
        "queue": Queue(slots=slots),
        "rate+headers": Rate(per_second=slots / mean, burst=burst),
        "rate+retry-after": Rate(per_second=slots / mean, burst=burst, hints="retry-after"),
        "rate": Rate(per_second=slots / mean, burst=burst, hints="none"),
        "knee": Knee(knee=slots, exponent=draw.uniform(0.0, 1.5)),
    }
    kind = list(kinds)[number % len(kinds)]
    about = f"{slots} slots, {mean:.2f} s, sigma {sigma:.2f}, round trip {1000 * round_trip:.0f} ms"
    if kind.startswith("rate"):
        about = about.replace(" slots", f"/{mean:.2f} a second, burst {burst}", 1)
    return Site(kind, about, (Scenario(capacity=kinds[kind], latency=latency),))
