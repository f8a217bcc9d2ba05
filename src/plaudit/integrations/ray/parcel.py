"""What travels between a process and the shared engine: many small things in one call, both ways.

Samples, judges and payloads travel as bytes: one that cannot be read fails alone, and what one member of a
group brings to the others is nobody's business on the way. Tuples, because they pickle in half the time.
"""

from __future__ import annotations

from typing import NamedTuple

from plaudit.types import Verdict


class Ask(NamedTuple):
    """Samples to be judged."""

    id: int
    """Unique in its process."""
    judge: bytes
    samples: bytes
    places: tuple[int, ...]
    """Where each sample stands in its batch: answers come back by these."""
    deadline: float | None
    """Seconds from the moment of sending."""


class Join(NamedTuple):
    """A member comes to its group's meeting."""

    id: int
    group: str
    member: str
    payload: bytes
    size: int
    timeout: float


class Drop(NamedTuple):
    """Nobody waits for this Ask any more."""

    id: int


Parcel = Ask | Join | Drop


class Answers(NamedTuple):
    """What has become final since the last time."""

    verdicts: list[tuple[int, int, Verdict]]
    """The id of the Ask, the sample's place, its verdict."""
    meetings: list[tuple[int, dict[str, bytes] | str]]
    """The id of the Join, and what each member brought, or why they cannot meet."""
