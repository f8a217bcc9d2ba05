"""What a process waits for at the shared engine: samples without a verdict, members without their group."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from plaudit.errors import ConfigError, PlauditError
from plaudit.integrations.ray.parcel import Ask, Join
from plaudit.judges.base import Judge, Panel
from plaudit.scheduling.batch import Batch
from plaudit.types import Source, Verdict

Dumps = Callable[[Any], bytes]
CHUNK = 256
"""Samples of a batch that travel together. A panel sees its whole batch, so that travels whole."""


@dataclass(frozen=True, slots=True)
class Packed:
    """A judge ready to travel. Judges are pure, so one packing serves for as long as the judge is used."""

    judge: Judge | Panel
    pickled: bytes
    is_panel: bool


def packed(judge: Judge | Panel, *, dumps: Dumps) -> Packed:
    """Pack a judge. ConfigError where it cannot travel."""
    with _telling("the judge"):
        return Packed(judge, dumps(judge), isinstance(judge, Panel))


class Asked:
    """Samples of one batch that travel together."""

    def __init__(self, batch: Batch, places: Sequence[int], judge: Packed, *, dumps: Dumps) -> None:
        self.id = 0
        self.batch = batch
        self.due: float | None = None
        self.losses = 0
        """How often the engine was lost while this was open."""
        self.missing = dict.fromkeys(places)
        self._places = tuple(places)
        self._judge = judge
        self._dumps = dumps
        self._samples: bytes | None = dumps([batch.samples[place] for place in places])

    def parcel(self, *, now: float) -> Ask:
        """What to send, the second time as the first: of a plain judge's samples, those without a verdict."""
        places = self._places if self._judge.is_panel else tuple(self.missing)
        samples = self._samples
        if samples is None:
            samples = self._dumps([self.batch.samples[place] for place in places])
        self._samples = None  # rarely needed again, and then often not all of them
        deadline = None if self.due is None else max(self.due - now, 0.05)
        return Ask(self.id, self._judge.pickled, samples, places, deadline)

    def deliver(self, items: list[tuple[int, Verdict]]) -> None:
        for place, verdict in items:
            if place in self.missing:
                del self.missing[place]
                if verdict.source is Source.CALL:
                    self.batch.calls += verdict.attempts
                    self.batch.retries += max(verdict.attempts - 1, 0)
        self.batch.deliver(items)


class Joined:
    """A member that waits for its group."""

    def __init__(self, group: str, member: str, payload: bytes, *, size: int, timeout: float) -> None:
        self.id = 0
        self.group = group
        self.member = member
        self.payload = payload
        self.losses = 0
        self.due = 0.0
        self.found: Future[dict[str, Any]] = Future()
        self._size = size
        self._timeout = timeout

    def begin(self, *, now: float) -> None:
        self.due = now + self._timeout

    def parcel(self, *, now: float) -> Join:  # noqa: ARG002 - its time counts from its arrival
        return Join(self.id, self.group, self.member, self.payload, self._size, self._timeout)

    def tell(self, found: Mapping[str, bytes]) -> None:
        if not self.found.done():
            try:
                read = {member: pickle.loads(brought) for member, brought in found.items()}  # noqa: S301
                self.found.set_result(read)
            except Exception as error:  # noqa: BLE001 - another member's class, unknown here
                self.found.set_exception(
                    ConfigError(f"what a member of {self.group!r} brought cannot be read: {error!r}")
                )

    def refuse(self, error: PlauditError) -> None:
        if not self.found.done():
            self.found.set_exception(error)


def asked_of(batch: Batch, judge: Packed, *, dumps: Dumps) -> list[Asked]:
    """A batch in parts that can travel. ConfigError where a sample cannot."""
    size = max(len(batch.samples), 1) if judge.is_panel else CHUNK
    with _telling("a sample"):
        return [
            Asked(batch, range(start, min(start + size, len(batch.samples))), judge, dumps=dumps)
            for start in range(0, len(batch.samples), size)
        ]


@contextmanager
def _telling(what: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        raise ConfigError(
            f"{what} cannot travel to the shared engine: {error!r}; "
            "leave out what cannot be pickled (files, locks, clients), or use a plaudit.Engine right here"
        ) from error
