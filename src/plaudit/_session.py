"""An engine at work: its thread, the scorer on it and what they opened, from the first batch to the end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from plaudit.caches import Cache, open_cache
from plaudit.config import Endpoint, EngineConfig
from plaudit.errors import JournalError
from plaudit.events import CacheTrouble, Event, Observer
from plaudit.files import make_private_folder
from plaudit.journal.activity import Activity, EndpointActivity
from plaudit.policy.budget import Spending
from plaudit.scheduling import learned_limits
from plaudit.scheduling.batch import Batch
from plaudit.scheduling.dispatcher import Dispatcher
from plaudit.scheduling.lane import Lane
from plaudit.scheduling.learned_limits import Learned
from plaudit.scheduling.scorer import Scorer
from plaudit.transports import Transport
from plaudit.transports.descriptors import connections_left
from plaudit.types import Cause, Verdict

if TYPE_CHECKING:
    from plaudit.journal.writer import JournalWriter

log = logging.getLogger("plaudit")

REMEMBER_EVERY = 5.0
"""Seconds between two writes of what was learned: a trainer may submit its samples one by one."""


class EngineWork:
    """What runs on the engine's thread. Closing stores what is finished and fails the rest."""

    def __init__(
        self,
        config: EngineConfig,
        *,
        cache: Cache | str | os.PathLike[str] | None,
        observers: Iterable[Observer],
        limits_file: Path,
        transport: Callable[[Endpoint], Transport],
        ledger: Callable[[float], None] | None,
    ) -> None:
        self._config = config
        self._observers = list(observers)
        self._limits_file = limits_file
        self._transports = [transport(endpoint) for endpoint in config.endpoints]
        self._ledger = ledger
        self._lanes: list[Lane] = []
        self._scorer: Scorer | None = None
        self._named_cache = cache
        self._cache: Cache | None = None
        self._journal: JournalWriter | None = None
        self._remembered_at = float("-inf")

    def start(self, batch: Batch) -> None:
        try:
            scorer = self._scorer = self._scorer or self._open()
            scorer.start(batch)
        except Exception as bug:  # or those who wait for this batch would never know
            log.exception("a bug while starting batch %d", batch.id)
            error = f"a bug in plaudit: {bug!r}"
            batch.deliver([(i, Verdict.failed(Cause.CODE, error)) for i in batch.missing()])

    def expire(self, batch: Batch) -> None:
        if self._scorer is not None:
            self._scorer.expire(batch)

    def cancel(self, batch: Batch, *, abort: bool) -> None:
        if self._scorer is not None:
            self._scorer.cancel(batch, abort=abort)

    async def close(self) -> None:
        if self._scorer is not None:
            await self._scorer.close()
            self._remember()
        if self._cache is not None and self._cache is not self._named_cache:
            await self._cache.close()  # opened here, closed here; a cache of the caller's stays open
        if self._journal is not None:
            await asyncio.to_thread(self._journal.close)

    def _open(self) -> Scorer:
        """The scorer, made on the session's own loop."""
        with contextlib.suppress(OSError):  # where the home cannot be made, nothing is kept there
            make_private_folder(self._limits_file.parent)
        known = learned_limits.load(self._limits_file, now=time.time())
        config = _within_files(self._config)
        self._lanes = [
            self._lane(endpoint, transport, known.get(endpoint.name, Learned(at=0.0)), config.max_concurrent)
            for endpoint, transport in zip(config.endpoints, self._transports, strict=True)
        ]
        where = self._named_cache
        if where is None or isinstance(where, str | os.PathLike):
            self._cache = open_cache(where, on_trouble=self._on_cache_trouble)
        else:
            self._cache = where
        self._journal = _open_journal(self._config, self._activity)
        emit = self._emit if self._observers else None
        return Scorer(
            lambda on_room: Dispatcher(self._lanes, config, emit=emit, on_room=on_room, ledger=self._ledger),
            self._cache,
            sampling=config.sampling,
            emit=emit,
            journal=self._journal,
            on_finished=self._on_finished,
        )

    def _lane(self, endpoint: Endpoint, transport: Transport, known: Learned, ceiling: int | None) -> Lane:
        lane = Lane(endpoint, transport, start=known.start, ceiling=ceiling)
        if known.rate is not None:
            lane.begin_pace(known.rate, now=asyncio.get_running_loop().time(), burst=known.burst)
        if known.needs_room:
            lane.needs_room = True
        return lane

    def _on_finished(self) -> None:
        if asyncio.get_running_loop().time() >= self._remembered_at + REMEMBER_EVERY:
            self._remember()

    def _remember(self) -> None:
        self._remembered_at = asyncio.get_running_loop().time()
        now = time.time()
        learned = {lane.name: learned_limits.learned_of(lane, now=now) for lane in self._lanes}
        news = {name: entry for name, entry in learned.items() if entry is not None}
        learned_limits.save(self._limits_file, news, now=now)

    def _activity(self) -> Activity:
        """What goes on, for the journal, whose thread asks."""
        batches = self._scorer.open_batches if self._scorer is not None else []
        spending = self._scorer.spending if self._scorer is not None else Spending()
        return Activity(
            open_batches=len(batches),
            waiting=sum(batch.remaining for batch in batches),
            oldest_s=batches[0].age_s if batches else 0.0,
            spent=spending.spent,
            assumed=spending.assumed,
            budget=self._config.budget,
            endpoints={
                lane.name: EndpointActivity(
                    in_flight=len(lane.flights),
                    limit=int(lane.limit.limit),
                    pace=lane.pace.rate,
                    ok=lane.answered,
                    rate_limited=lane.rate_limited,
                    failed=lane.failed,
                    state=lane.breaker.state.value,
                )
                for lane in self._lanes
            },
        )

    def _emit(self, event: Event) -> None:
        for observer in self._observers:
            try:
                observer(event)
            except (Exception, SystemExit) as error:  # user code, which must not stop the engine
                # A new list: the old one is being gone through.
                self._observers = [other for other in self._observers if other is not observer]
                called = getattr(observer, "__qualname__", type(observer).__qualname__)
                with contextlib.suppress(Exception):  # it may have failed at logging, as this may
                    log.exception("the observer %s failed and is dropped: %r", called, error)

    def _on_cache_trouble(self, message: str) -> None:
        log.warning("%s", message)
        self._emit(CacheTrouble(asyncio.get_running_loop().time(), message))


def _open_journal(config: EngineConfig, look: Callable[[], Activity]) -> JournalWriter | None:
    """The journal that the configuration names. One that cannot be written costs no verdict."""
    if not config.journal:
        return None
    from plaudit.journal.writer import JournalWriter, settings_shown

    try:
        return JournalWriter(
            config.journal,
            max_mb=config.journal_max_mb,
            run=config.run,
            has_text=config.journal_text,
            look=look,
            settings=settings_shown(config),
        )
    except JournalError as error:
        log.warning("%s; going on without a journal", error)
        return None


def _within_files(config: EngineConfig) -> EngineConfig:
    """No more calls at once than this process can open connections for."""
    room = connections_left()
    wanted = config.max_concurrent
    if room is None or (wanted is not None and wanted <= room):
        return config
    return replace(config, max_concurrent=room)
