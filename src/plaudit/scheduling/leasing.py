"""What other runs on the same cache are asking: wait for their verdicts, and take over what they drop.

While one run has a question under way, another does not send it: it works on the rest, and looks again every
quarter of a second, for all that it waits for in one look-up. A run that has nothing to send says so in the
cache, and those that still have calls in their queue pass half of them on.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence

from plaudit.caches.base import LEASE_S, Claim, LeasingCache
from plaudit.scheduling.batch import SharedRequest
from plaudit.scheduling.call import Call
from plaudit.scheduling.dispatcher import Dispatcher

log = logging.getLogger("plaudit")

POLL_S = 0.25
"""Seconds between two looks at what other runs have stored, dropped or wish for."""
PATIENCE_S = 60.0
"""A run that only waits, and to which nothing came for so many seconds, asks for itself."""


class Leasing:
    """One run's leases, and its calls that wait for other runs."""

    def __init__(
        self,
        cache: LeasingCache,
        asked: MutableMapping[bytes, SharedRequest],
        dispatcher: Dispatcher,
        *,
        on_found: Callable[[Mapping[bytes, bytes]], set[bytes]],
        on_trouble: Callable[[Exception], None],
    ) -> None:
        """
        Args:
            cache: where the leases are.
            asked: all that is under way or waits, by key.
            dispatcher: who sends.
            on_found: settles what another run has stored, and names the keys whose values are of no use.
            on_trouble: is told why the cache cannot be used any more.
        """
        self._cache = cache
        self._asked = asked
        self._dispatcher = dispatcher
        self._on_found = on_found
        self._on_trouble = on_trouble
        self._owner = secrets.randbits(63)
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[bytes, Call] = {}
        self._released: set[bytes] = set()
        self._task: asyncio.Task[None] | None = None
        self._is_over = False
        self._has_claimed = False
        self._last_look = self._last_news = 0.0
        self._has_told = False

    async def claim(self, keys: Sequence[bytes]) -> Claim:
        """Look up, and lease what nobody has under way."""
        self._released.difference_update(keys)
        self._has_claimed = True
        return await self._cache.claim_many(keys, owner=self._owner)

    def watch(self, calls: Iterable[Call]) -> None:
        """Hold calls back that are under way elsewhere; from now on leases are renewed."""
        if self._is_over:
            self._dispatcher.enqueue(calls)
            return
        self._waiting.update((call.key, call) for call in calls)
        if self._waiting and not self._has_told:
            self._has_told = True
            log.info(
                "another run with the same cache has sent some of these requests; waiting for its verdicts"
            )
        if self._task is None:
            self._last_look = self._last_news = self._loop.time()
            self._task = self._loop.create_task(self._watch())

    def release(self, keys: Iterable[bytes]) -> None:
        """Let others ask what has failed here, or is not wanted any more: with the next look."""
        self._released.update(keys)

    def give_up(self) -> None:
        """The cache is gone: ask what was waited for."""
        self._is_over = True
        calls, self._waiting = list(self._waiting.values()), {}
        self._dispatcher.enqueue(calls)

    async def close(self) -> None:
        """Stop waiting, and release everything."""
        is_lost, self._is_over = self._is_over, True
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if not self._has_claimed or is_lost:
            return
        try:
            await self._cache.release_many(None, owner=self._owner)
        except Exception as error:  # noqa: BLE001 - a cache may be the user's own, and closed already
            log.info("leases in the cache were not released (%s); they run out in %g s", error, LEASE_S)

    async def _watch(self) -> None:
        try:
            while (self._asked or self._released) and not self._is_over:
                await asyncio.sleep(POLL_S)
                try:
                    await self._look()
                except Exception as error:  # noqa: BLE001 - as above
                    self._on_trouble(error)
        finally:
            self._task = None

    async def _look(self) -> None:
        """Renew and release leases; take what is stored, free, or passed on; pass on what others wait for."""
        if self._loop.time() - self._last_look > LEASE_S:  # stopped for so long that others have taken over
            self._hold_back([call for call in self._dispatcher.queue if not call.sends])
        self._last_look = self._loop.time()
        self._drop_unwanted()
        if self._released:
            released, self._released = self._released, set()
            await self._cache.release_many(list(released), owner=self._owner)
        keys, is_idle = list(self._waiting), self._is_idle()
        claim = await self._cache.claim_many(keys, owner=self._owner, is_idle=is_idle)
        if self._is_over:
            return  # the cache was lost meanwhile
        self._take(keys, claim)
        if claim.wanted:
            await self._pass_on(claim.wanted)

    def _drop_unwanted(self) -> None:
        for key in list(self._waiting):
            if not self._asked[key].is_wanted:
                del self._waiting[key], self._asked[key]
                self._released.add(key)

    def _is_idle(self) -> bool:
        """Whether there is nothing to send, because the rest is with others."""
        return bool(self._waiting) and not self._dispatcher.backlog

    def _take(self, keys: Sequence[bytes], claim: Claim) -> None:
        """Settle what is stored, and send what is nobody else's any more."""
        found = {key: claim.values[key] for key in keys if key in claim.values}
        useless = self._on_found(found)
        free = [key for key in keys if key in useless or (key not in found and key not in claim.elsewhere)]
        now = self._loop.time()
        if found or free or self._dispatcher.backlog or self._in_flight():
            self._last_news = now
        elif keys and now - self._last_news >= PATIENCE_S:
            free = list(keys)
        calls = [self._waiting[key] for key in free]
        for key in (*found, *free):
            self._waiting.pop(key, None)
        if calls:
            self._dispatcher.enqueue(calls)

    async def _pass_on(self, wanted: frozenset[bytes]) -> None:
        """Leave the later half of what waits to be sent to a run that has nothing to send."""
        unsent = [call for call in self._dispatcher.queue if call.key in wanted and not call.sends]
        calls = unsent[(len(unsent) + 1) // 2 :]
        if calls:
            self._hold_back(calls)
            await self._cache.release_many([call.key for call in calls], owner=self._owner)

    def _hold_back(self, calls: Iterable[Call]) -> None:
        """Take calls out of the queue again: they wait for another run."""
        held = {call.key: call for call in calls}
        for call in held.values():
            self._dispatcher.queue.remove(call)
        self._waiting.update(held)
        self._dispatcher.pump()  # there is room

    def _in_flight(self) -> int:
        return sum(lane.in_flight for lane in self._dispatcher.lanes)
