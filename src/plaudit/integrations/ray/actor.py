"""The Ray actor that holds the one engine."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Sequence
from dataclasses import dataclass

from ray.experimental import internal_kv

from plaudit.errors import EngineClosed
from plaudit.events import Summary
from plaudit.integrations.ray.desk import Desk
from plaudit.integrations.ray.ledger import EVERY, Ledger
from plaudit.integrations.ray.parcel import Answers, Parcel
from plaudit.integrations.ray.terms import Terms

log = logging.getLogger("plaudit")
NAMESPACE = "plaudit"


@dataclass(frozen=True, slots=True)
class Hello:
    """How the actor introduces itself."""

    differences: tuple[str, ...]
    started_by: str


class EngineActor:
    """One engine for all who know its name. Every method is quick, or waits without holding others up."""

    def __init__(self, name: str, terms: Terms, started_by: str) -> None:
        self._name = name
        self._terms = terms
        self._started_by = started_by
        self._desk: Desk | None = None
        self._ledger: Ledger | None = None
        self._writing: asyncio.Task[None] | None = None
        self._is_stopping = False

    def __repr__(self) -> str:
        return "plaudit"  # how Ray marks the lines this actor logs

    async def hello(self, terms: Terms) -> Hello:
        """Whether these terms are those the engine runs on. Raises what is wrong with its own."""
        if self._is_stopping:
            raise EngineClosed("the shared engine is stopping")
        self._opened()
        return Hello(tuple(self._terms.differences(terms)), self._started_by)

    async def receive(self, visitor: str, parcels: Sequence[Parcel], is_all: bool) -> bool:
        return self._opened().receive(visitor, parcels, is_all=is_all)

    async def collect(self, visitor: str) -> Answers | None:
        return await self._opened().collect(visitor)

    async def summary(self) -> Summary:
        return self._opened().summary()

    async def stop(self, is_for_good: bool) -> None:
        """Store what is finished and free everything, before the process goes.

        For good: an engine that is started later under this name begins with a whole budget.
        """
        self._is_stopping = True
        if self._desk is not None:
            await self._desk.close()
        if self._writing is not None and self._ledger is not None:
            self._writing.cancel()
            await asyncio.to_thread(self._ledger.end if is_for_good else self._ledger.write)

    def _opened(self) -> Desk:
        if self._desk is None:  # not in __init__, which has no event loop
            terms = self._terms
            if terms.budget is None and not terms.is_limited:
                self._desk = Desk(terms.open)
            else:
                ledger = self._ledger = Ledger(ClusterValue(self._name))
                open_engine = functools.partial(
                    terms.open, ledger, spent=ledger.entry.spent, ledger=ledger.reserve
                )
                self._desk = Desk(open_engine, hold=ledger.hold if terms.is_limited else 0.0)
                self._writing = asyncio.get_running_loop().create_task(_write(ledger))
        return self._desk


class ClusterValue:
    """A value that Ray keeps on the head node, under the actor's name."""

    def __init__(self, name: str) -> None:
        self._name = name

    def get(self) -> bytes | None:
        found: bytes | None = internal_kv._internal_kv_get(self._name, namespace=NAMESPACE)
        return found

    def put(self, value: bytes) -> None:
        internal_kv._internal_kv_put(self._name, value, overwrite=True, namespace=NAMESPACE)

    def delete(self) -> None:
        internal_kv._internal_kv_del(self._name, namespace=NAMESPACE)


async def _write(ledger: Ledger) -> None:
    while True:
        await asyncio.sleep(EVERY)
        try:
            await asyncio.to_thread(ledger.write)
        except Exception as error:  # noqa: BLE001 - Ray has many; the next entry says it all again
            log.warning("what was spent could not be written down: %s", error)
