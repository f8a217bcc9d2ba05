"""Chance derived from a seed and the question, never drawn: arrival order cannot change a result."""

from __future__ import annotations

import math
from hashlib import blake2b
from statistics import NormalDist

from plaudit.simulator.ask import Ask
from plaudit.simulator.scenario import Fault, Scenario

_NORMAL = NormalDist()


def uniform(seed: int, key: bytes, label: str) -> float:
    """A number in (0, 1), the same for the same arguments."""
    number = int.from_bytes(blake2b(f"{seed}:{label}:".encode() + key, digest_size=8).digest(), "big")
    return ((number >> 12) + 0.5) / 2.0**52  # 52 bits and a half: never 0, never 1


def output_tokens(scenario: Scenario, ask: Ask) -> int:
    """How long the answer is. A question asked again gets the same answer, hence the same length."""
    if ask.kind == "embed":
        return 0
    latency = scenario.latency
    z = _NORMAL.inv_cdf(uniform(scenario.seed, ask.key, "tokens"))
    drawn = latency.mean_tokens * math.exp(latency.sigma * z - latency.sigma**2 / 2)
    tokens = max(1, round(drawn)) + (scenario.reasoning_tokens if ask.kind == "chat" else 0)
    return tokens if ask.max_tokens is None else max(1, min(tokens, ask.max_tokens))


def lateness(scenario: Scenario, ask: Ask, *, arrival: int) -> float:
    """Seconds by which a request is late on its way."""
    jitter = scenario.latency.jitter
    return -jitter * math.log(uniform(scenario.seed, ask.key, f"late:{arrival}")) if jitter else 0.0


def fault_of(
    scenario: Scenario, ask: Ask, *, attempt: int, at: float, arrival: int, comes_first: bool = False
) -> Fault | None:
    """What goes wrong with this attempt, if anything: the first fault that applies.

    Faults that come first, before the capacity is looked at, are drawn apart from those that come after.
    """
    for number, fault in enumerate(scenario.faults):
        if fault.comes_first != comes_first or not fault.is_active(at):
            continue
        if fault.requests is not None and not fault.requests[0] <= arrival < fault.requests[1]:
            continue
        if fault.probability >= 1.0:
            return fault
        if uniform(scenario.seed, ask.key, f"fault:{number}:{attempt}") < fault.probability:
            return fault
    return None
