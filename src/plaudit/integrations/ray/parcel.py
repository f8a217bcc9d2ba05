"""What travels between a process and the shared engine: many small things in one call, both ways.

Samples, judges and payloads travel as bytes: one that cannot be read fails alone, and what one member of a
group brings to the others is nobody's business on the way.
"""

from __future__ import annotations

from dataclasses import dataclass

from plaudit.types import Verdict


@dataclass(frozen=True, slots=True)
class Ask:
    """Samples to be judged."""

    id: int
    """Unique in its process."""
    judge: bytes
    samples: bytes
    places: tuple[int, ...]
    """Where each sample stands in its batch: answers come back by these."""
    deadline: float | None
    """Seconds from the moment of sending."""


@dataclass(frozen=True, slots=True)
class Join:
    """A member comes to its group's meeting."""

    id: int
    group: str
    member: str
    payload: bytes
    size: int
    timeout: float


@dataclass(frozen=True, slots=True)
class Drop:
    """Nobody waits for this Ask any more."""

    id: int


Parcel = Ask | Join | Drop


@dataclass(frozen=True, slots=True)
class Answers:
    """What has become final since the last time."""

    verdicts: list[tuple[int, int, Verdict]]
    """The id of the Ask, the sample's place, its verdict."""
    meetings: list[tuple[int, dict[str, bytes] | str]]
    """The id of the Join, and what each member brought, or why they cannot meet."""
