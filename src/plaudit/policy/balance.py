"""Which of several endpoints takes the next call: the least full for its size, if that is soonest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

MUCH = 1.4
"""How many times as long the slower of two endpoints takes before that counts."""


@dataclass(frozen=True, slots=True)
class Load:
    """How busy an endpoint is, and how long its calls take."""

    in_flight: int
    limit: int
    slow: float | None
    """Seconds that nine calls in ten do not exceed; None while too little is known."""
    typical: float | None
    """Seconds a call takes on average; None while too little is known."""


def least_loaded(loads: Sequence[Load], *, tie: int) -> int:
    """The index of the endpoint with the lowest in-flight share of its limit; `tie` picks among equals."""
    shares = [load.in_flight / load.limit for load in loads]
    best = min(shares)
    equals = [index for index, share in enumerate(shares) if share <= best]
    return equals[tie % len(equals)]


def is_worth_it(here: Load, others: Sequence[Load], *, backlog: int) -> bool:
    """Whether a call sent here now would end before the others had worked off the whole backlog.

    At the end of a batch a slow endpoint must not take a call that a fast one, though busy, finishes first.
    """
    if here.slow is None:
        return True
    for other in others:
        if other.typical is None or not is_much_faster(other, than=here):
            continue  # two alike differ by chance: to shun one of them for that would leave it idle
        assert other.slow is not None
        free = max(other.limit - other.in_flight, 0)
        wait = max(backlog - free, 0) * other.typical / other.limit
        if wait + other.slow < here.slow:
            return False
    return True


def is_much_faster(here: Load, *, than: Load, age: float = 0.0) -> bool:
    """Whether a call begun here now would likely end before one begun there `age` seconds ago."""
    return here.slow is not None and than.slow is not None and here.slow * MUCH < than.slow - age
