"""What an engine has spent and when it last called, kept where its death does not reach.

An engine that takes the place of one that died must not spend the budget once more, nor the requests of the
minute. It goes on with what is left of the budget, and where requests or tokens a minute are limited, it
holds its calls back until the minute of the last one is over.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

import msgspec

from plaudit.core.quota import MARGIN, WINDOW
from plaudit.events import CallFinished, CallStarted, Event

EVERY = 0.25
"""Seconds between two entries: what was spent in the last of them before a death is not known."""


class Store(Protocol):
    """One value that outlives the process."""

    def get(self) -> bytes | None: ...

    def put(self, value: bytes) -> None: ...

    def delete(self) -> None: ...


class Entry(msgspec.Struct, frozen=True):
    """What is written down."""

    spent: float = 0.0
    """US dollars."""
    last_call: float = 0.0
    """Seconds since 1970."""


class Ledger:
    """An observer that adds up, on top of what an earlier engine left. `write` puts it down."""

    def __init__(self, store: Store, *, clock: Callable[[], float] = time.time) -> None:
        found = store.get()
        self._store = store
        self._clock = clock
        self.entry = msgspec.json.decode(found, type=Entry) if found else Entry()
        self._written = self.entry

    @property
    def hold(self) -> float:
        """Seconds from now until the minute of the last call is over."""
        return max(0.0, self.entry.last_call + WINDOW + MARGIN + EVERY - self._clock())

    def __call__(self, event: Event) -> None:
        entry = self.entry
        if isinstance(event, CallStarted):
            self.entry = Entry(entry.spent, self._clock())
        elif isinstance(event, CallFinished) and event.usage.cost:
            self.entry = Entry(entry.spent + event.usage.cost, entry.last_call)

    def write(self) -> None:
        """Put the latest down, if it is not there yet."""
        entry = self.entry
        if entry is not self._written:
            self._store.put(msgspec.json.encode(entry))
            self._written = entry

    def end(self) -> None:
        """The engine was stopped for good: the next one begins afresh."""
        self._store.delete()
