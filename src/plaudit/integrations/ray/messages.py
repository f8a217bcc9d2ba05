"""The messages between a process and the shared engine: many small ones in one call, both ways.

Samples, judges and payloads travel as bytes: one that cannot be unpickled fails alone, and a payload is
unpickled by its receivers only. Named tuples, because they pickle in half the time.
"""

from __future__ import annotations

from typing import NamedTuple

from plaudit.types import Verdict


class ScoreRequest(NamedTuple):
    """Samples to be judged."""

    id: int
    """Unique in its process."""
    judge: bytes
    samples: bytes
    places: tuple[int, ...]
    """Where each sample stands in its batch: verdicts are returned by these."""
    deadline: float | None
    """Seconds from the moment of sending."""
    job: str = ""


class JoinRequest(NamedTuple):
    """A member of a group waits for the others."""

    id: int
    group: str
    member: str
    payload: bytes
    size: int
    timeout: float


class CancelRequest(NamedTuple):
    """Nothing more has to be sent for this ScoreRequest."""

    id: int


Message = ScoreRequest | JoinRequest | CancelRequest


class Results(NamedTuple):
    """What has become final since the last call."""

    verdicts: list[tuple[int, int, Verdict]]
    """The id of the ScoreRequest, the sample's place, its verdict."""
    groups: list[tuple[int, dict[str, bytes] | str]]
    """The id of the JoinRequest, and each member's payload, or why they cannot meet."""
