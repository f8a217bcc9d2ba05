"""A cache in memory with leases, on the loop's clock: several scorers share it under virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from plaudit.caches.base import LEASE_S, Claim, check_keys
from plaudit.caches.memory import MemoryCache


class LeasedMemory(MemoryCache):
    """MemoryCache with leases, which breaks when told to."""

    def __init__(self) -> None:
        super().__init__()
        self.owner_of: dict[bytes, int] = {}
        self.wanted_by: dict[bytes, int] = {}
        self.claims = 0
        self.error: Exception | None = None
        self._seen: dict[int, float] = {}

    async def claim_many(self, keys: Sequence[bytes], *, owner: int, is_idle: bool = False) -> Claim:
        values = await self.get_many(keys)
        self.claims += 1
        if self.error is not None:
            raise self.error
        self._seen[owner] = asyncio.get_running_loop().time()
        missing = [key for key in keys if key not in values]
        taken = frozenset(key for key in missing if self._is_anothers(self.owner_of.get(key), owner))
        self.owner_of.update((key, owner) for key in missing if key not in taken)
        if is_idle:
            self.wanted_by.update((key, owner) for key in taken)
        wanted = (
            key
            for key, by in self.wanted_by.items()
            if self.owner_of.get(key) == owner and self._is_anothers(by, owner)
        )
        return Claim(values, taken, frozenset(wanted))

    async def release_many(self, keys: Sequence[bytes] | None, *, owner: int) -> None:
        check_keys(keys or ())
        for key in list(self.owner_of) if keys is None else keys:
            if self.wanted_by.get(key) == owner:
                del self.wanted_by[key]
            if self.owner_of.get(key) == owner:
                del self.owner_of[key]
                heir = self.wanted_by.pop(key, None)
                if heir is not None and self._is_anothers(heir, owner):
                    self.owner_of[key] = heir

    async def put_many(self, items: Sequence[tuple[bytes, bytes]]) -> None:
        await super().put_many(items)
        for key, _ in items:
            self.owner_of.pop(key, None)
            self.wanted_by.pop(key, None)

    def _is_anothers(self, found: int | None, owner: int) -> bool:
        now = asyncio.get_running_loop().time()
        return found is not None and found != owner and now - self._seen.get(found, -LEASE_S) <= LEASE_S
