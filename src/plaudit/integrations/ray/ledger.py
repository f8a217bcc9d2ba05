"""What an engine has spent and when it last called, kept where its death does not reach.

An engine that takes the place of one that died must not spend the budget once more, nor the requests of the
minute. It goes on with what is left of the budget, and where requests or tokens a minute are limited, it
holds its calls back until the minute of the last one is over.

What may be spent is written down before it is: `reserve` is the engine's `ledger`. So is a call, unless one
was written down less than EVERY seconds ago.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Protocol

import msgspec

from plaudit.errors import BudgetSpent
from plaudit.events import CallFinished, CallStarted, Event
from plaudit.policy.quota import MARGIN, WINDOW

log = logging.getLogger("plaudit")

EVERY = 0.25
"""Seconds between two entries of calls: the last one before a death may be so much older than the call."""


class LedgerStore(Protocol):
    """One value that outlives the process."""

    def get(self) -> bytes | None: ...

    def put(self, value: bytes) -> None: ...

    def delete(self) -> None: ...


class Entry(msgspec.Struct, frozen=True):
    """What is written down."""

    spent: float = 0.0
    """US dollars, at the most."""
    last_call: float = 0.0
    """Seconds since 1970."""


class Ledger:
    """Adds up on top of what an earlier engine left: an observer of calls, and called for reserves.

    Used by the engine's thread, and by one that writes: each entry is put whole, the latest last.
    """

    def __init__(self, store: LedgerStore, *, clock: Callable[[], float] = time.time) -> None:
        found = store.get()
        self._store = store
        self._clock = clock
        self._lock = threading.Lock()
        self.entry = msgspec.json.decode(found, type=Entry) if found else Entry()
        self._before = self.entry.spent
        self._paid = 0.0
        self._written = self.entry

    @property
    def hold(self) -> float:
        """Seconds from now until the minute of the last call is over."""
        return max(0.0, self.entry.last_call + WINDOW + MARGIN + EVERY - self._clock())

    def reserve(self, dollars: float) -> None:
        """Put down that this engine may have spent so much. Raises BudgetSpent where that fails."""
        self.entry = Entry(self._before + dollars, self.entry.last_call)
        try:
            self.write()
        except Exception as error:  # Ray has many
            raise BudgetSpent(
                f"the amount spent cannot be saved ({error!r}), so nothing more is spent"
            ) from error

    def __call__(self, event: Event) -> None:
        entry = self.entry
        if isinstance(event, CallStarted):
            self.entry = Entry(entry.spent, self._clock())
            if self.entry.last_call - self._written.last_call > EVERY:
                try:
                    self.write()
                except Exception as error:  # noqa: BLE001 - as below; the next entry says it all again
                    log.warning("the time of a call could not be saved: %s", error)
        elif isinstance(event, CallFinished) and event.usage.cost:
            self._paid += event.usage.cost
            self.entry = Entry(max(entry.spent, self._before + self._paid), entry.last_call)

    def write(self) -> None:
        """Put the latest down, if it is not there yet."""
        with self._lock:
            entry = self.entry
            if entry is not self._written:
                self._store.put(msgspec.json.encode(entry))
                self._written = entry

    def end(self) -> None:
        """The engine was stopped for good: the next one begins afresh."""
        self._store.delete()
