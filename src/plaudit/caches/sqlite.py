"""A cache in a file: verdicts that outlive the process, shared by all processes of the machine."""

from __future__ import annotations

import asyncio
import functools
import logging
import os
import sqlite3
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from plaudit.caches import upkeep
from plaudit.caches.base import Claim, check_keys
from plaudit.caches.desk import Job, Report
from plaudit.caches.store import Store, connect
from plaudit.caches.upkeep import CacheStats, Writable
from plaudit.caches.worker import Worker
from plaudit.errors import CacheError

_log = logging.getLogger(__name__)


class SqliteCache:
    """Verdicts in one SQLite file, opened on first use by a thread of its own; awaits on any loop.

    What `put_many` has acknowledged survives kill -9. A power cut may cost the last writes (those not yet
    moved out of the write-ahead log), never the file. `on_trouble` hears, on the loop that waits, of damage
    that was set aside and of anything else a user should know; without it, the log does. `patience` is how
    many seconds another process may keep the file locked. `clock` and `connect` serve tests and odd set-ups.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        on_trouble: Report | None = None,
        patience: float = 30.0,
        clock: Callable[[], float] = time.time,
        connect: Callable[[Path], sqlite3.Connection] = connect,
    ) -> None:
        self.path = Path(path).expanduser().absolute()
        self._report = on_trouble or _log.warning
        self._patience = patience
        self._clock = clock
        self._connect = connect
        self._worker: Worker | None = None
        self._is_closed = False

    def __repr__(self) -> str:
        return f"SqliteCache({str(self.path)!r})"

    async def get_many(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """The values of those keys that are there."""
        check_keys(keys)
        if not keys:
            return {}
        found: dict[bytes, bytes] = await self._do(call=lambda store: store.get(keys))
        return found

    async def put_many(self, items: Sequence[tuple[bytes, bytes]]) -> None:
        """Store all; returns once they are committed."""
        check_keys(key for key, _ in items)
        if items:
            await self._do(items=items)

    async def claim_many(self, keys: Sequence[bytes], *, owner: int, is_idle: bool = False) -> Claim:
        """Look keys up, lease what nobody has under way, renew what is held: as LeasingCache says."""
        check_keys(keys)
        claim: Claim = await self._do(call=lambda store: store.claim(keys, owner=owner, is_idle=is_idle))
        return claim

    async def release_many(self, keys: Sequence[bytes] | None, *, owner: int) -> None:
        """Give up leases; None: all of this owner's."""
        check_keys(keys or ())
        await self._do(call=lambda store: store.release(keys, owner=owner))

    async def stats(self) -> CacheStats:
        """How many entries, how big, how old."""
        found: CacheStats = await self._do(
            call=lambda store: store.run(lambda connection: upkeep.stats(connection, store.path))
        )
        return found

    async def prune(
        self, *, max_entries: int | None = None, max_bytes: int | None = None, older_than: float | None = None
    ) -> int:
        """Drop what is older than so many seconds, then the oldest until the rest fits; how many went."""
        before = None if older_than is None else self._clock() - older_than
        return await self._shrink(
            lambda connection: upkeep.prune(
                connection, max_entries=max_entries, max_bytes=max_bytes, created_before=before
            )
        )

    async def clear(self) -> int:
        """Drop everything; how many went."""
        return await self._shrink(lambda connection: upkeep.prune(connection, max_entries=0))

    async def export(self, out: Writable) -> int:
        """Write every entry as a line of JSON; how many there were."""
        count: int = await self._do(
            call=lambda store: store.run(lambda connection: upkeep.export(connection, out))
        )
        return count

    async def close(self) -> None:
        """Finish what is waiting, close the file, end the thread. Safe to call twice."""
        worker, self._worker, self._is_closed = self._worker, None, True
        if worker is None or worker.pid != os.getpid():
            return
        await worker.stop()

    async def _shrink(self, work: Callable[[sqlite3.Connection], int]) -> int:
        count: int = await self._do(call=lambda store: store.run(work))
        if count:
            try:
                await self._do(call=lambda store: store.run(upkeep.compact))
            except CacheError as error:
                self._report(f"{count} entries dropped, but their space is still in the file: {error}")
        return count

    async def _do(
        self, *, call: Callable[[Store], object] | None = None, items: Sequence[tuple[bytes, bytes]] = ()
    ) -> Any:
        if self._is_closed:
            raise CacheError(f"the cache {self.path} is closed; open it anew")
        if self._worker is None or self._worker.pid != os.getpid():
            make_store = functools.partial(Store, self.path, clock=self._clock, connect=self._connect)
            self._worker = Worker(make_store)  # a forked child needs a thread and a connection of its own
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._worker.submit(Job(future, self._report, call, items, self._patience))
        return await future
