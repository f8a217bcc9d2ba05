"""What was learned about endpoints, kept between processes: a small JSON file, written whole."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec.structs import replace

from plaudit.files import PRIVATE_FILE, write_whole
from plaudit.policy.limit import LimitConfig
from plaudit.scheduling.lane import NEVER, Lane

MAX_AGE = 7 * 86_400.0
"""Seconds after which what was learned is forgotten."""
BAD_WEATHER = 0.1
"""Share of the calls refused at any pace, above which a rate found meanwhile is not believed."""
AVERAGE = 0.9
"""Share of the calls that were answered a second, on average, below which no rate is believed."""
FAR_LESS = 0.25
"""Share of the most calls that were under way at once, below which no capacity is believed."""


class Learned(msgspec.Struct, omit_defaults=True):
    """How an endpoint was last found."""

    at: float
    """When, in seconds since 1970."""
    limit: Annotated[int, msgspec.Meta(ge=1)] | None = None
    refuses: bool = False
    """Whether it rate limits what is too much (429), rather than queueing it."""
    settled: bool = False
    """Whether more calls at once were tried, and brought no more."""
    collapses_at: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """Calls at once that brought it down."""
    seconds: Annotated[float, msgspec.Meta(gt=0.0)] | None = None
    """How long the quicker calls took then."""
    rate: Annotated[float, msgspec.Meta(gt=0.0)] | None = None
    """Requests a second, where it limits those."""
    burst: Annotated[int, msgspec.Meta(ge=0)] = 0
    """Requests that it takes at once before that."""
    needs_room: bool = False
    """Whether its replies were cut off at the tokens that judges ask for: it gets more from the start."""

    @property
    def start(self) -> LimitConfig | None:
        """Where the search for the limit begins another time; None where no limit is known."""
        if self.limit is None:
            return None
        if not (self.refuses or self.settled):  # the run ended in the midst of its climb: with the next level
            return LimitConfig(start=2 * self.limit, collapses_at=self.collapses_at)
        return LimitConfig(
            start=self.limit,
            is_known=True,
            refuses=self.refuses,
            is_settled=self.settled,
            usual=self.seconds,
            collapses_at=self.collapses_at,
        )


def load(path: Path, *, now: float) -> dict[str, Learned]:
    """What is known, by endpoint name. A missing, damaged or foreign file means: nothing."""
    try:
        everything = msgspec.json.decode(path.read_bytes(), type=dict[str, Learned])
    except (OSError, msgspec.DecodeError):
        return {}
    return {name: learned for name, learned in everything.items() if 0 <= now - learned.at < MAX_AGE}


def save(path: Path, news: Mapping[str, Learned], *, now: float) -> None:
    """Add what was learned. Lost if the disk says no: it is a convenience, and costs a few probes."""
    if not news:
        return
    merged = load(path, now=now)
    for name, learned in news.items():
        known = merged.get(name)
        has_limit = learned.limit is not None or learned.rate is not None
        keeps = known is not None and not has_limit  # the old limit with its old age, the news with it
        merged[name] = replace(known, needs_room=learned.needs_room) if keeps and known else learned
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, msgspec.json.encode(merged), mode=PRIVATE_FILE, is_synced=False)


def learned_of(lane: Lane, *, now: float) -> Learned | None:
    """What a lane has found out about its endpoint; None while it has only its starting guess."""
    found = _limit_of(lane, now=now)
    if found is None:
        return None if lane.needs_room is None else Learned(at=now, needs_room=lane.needs_room)
    return replace(found, needs_room=lane.needs_room is True)


def _limit_of(lane: Lane, *, now: float) -> Learned | None:
    if lane.pace.rate is not None:
        if not lane.pace.is_proven or lane.pace.weather > BAD_WEATHER:
            return None  # a guess, or found in weather that says little of the next run
        if lane.pace.rate < AVERAGE * lane.throughput:
            return None  # weather has brought it down: on average there was more
        return Learned(at=now, rate=lane.pace.rate, burst=lane.burst)
    if not lane.limit.is_learned or lane.limit.believed >= lane.ceiling:
        return None  # where the user's ceiling stopped the search, the endpoint may bear more
    limit = lane.limit
    if limit.refuses and limit.believed < FAR_LESS * limit.proven:
        return None  # weather has brought it down, or capacity comes and goes
    bent_at, crashed_at = limit.bent_at, lane.collapse.crashed_at
    return Learned(
        at=now,
        limit=int(min(bent_at or limit.believed, NEVER if crashed_at is None else lane.collapse.bound)),
        refuses=limit.refuses,
        settled=limit.is_settled or bent_at is not None or crashed_at is not None,
        collapses_at=crashed_at,
        seconds=limit.usual,
    )
