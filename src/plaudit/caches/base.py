"""What the engine needs of a cache: many keys in one look-up, many values in one write."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

KEY_BYTES = 32
"""A key is a sha256 digest."""
LEASE_S = 5.0
"""Seconds for which a lease counts after its owner's last claim."""


class Cache(Protocol):
    """Bytes by 32-byte key. Called from the engine's event loop; must not block it.

    A cache that breaks (disk full, file damaged) raises CacheError; the engine reports it once and goes
    on without the cache: a verdict is never lost because it could not be stored.
    """

    async def get_many(self, keys: Sequence[bytes]) -> Mapping[bytes, bytes]:
        """The values of those keys that are there."""
        ...

    async def put_many(self, items: Sequence[tuple[bytes, bytes]]) -> None:
        """Store all; when this returns, they survive the death of the process."""
        ...

    async def close(self) -> None:
        """Free files and threads. Safe to call twice."""
        ...


@dataclass(frozen=True, slots=True)
class Claim:
    """What a cache knows of some keys."""

    values: Mapping[bytes, bytes]
    """Of those that are stored."""
    elsewhere: frozenset[bytes] = field(default=frozenset())
    """Not stored, and under way in another run. What is in neither is leased to the owner now."""
    wanted: frozenset[bytes] = field(default=frozenset())
    """Leases of the owner's for which another run waits that has nothing else to do."""


@runtime_checkable
class LeasingCache(Cache, Protocol):
    """A cache that also says what other runs are asking just now, so that nothing is asked twice.

    An owner is a number drawn at random by each run. Its leases end when a value is put, when they are
    released, and when it makes no claim for LEASE_S seconds or its process is gone. A lease that cannot be
    written is no error: it saves money, and nothing depends on it.
    """

    async def claim_many(self, keys: Sequence[bytes], *, owner: int, is_idle: bool = False) -> Claim:
        """Look keys up and lease those that are neither stored nor another's; renew all that are held.

        Args:
            keys: what to look up; none, to renew only.
            owner: who asks.
            is_idle: whether the owner has nothing to do but wait for what is under way elsewhere.
        """
        ...

    async def release_many(self, keys: Sequence[bytes] | None, *, owner: int) -> None:
        """Give up leases, and the wish for others'. An idle run that waits for one gets it. None: all."""
        ...


def check_keys(keys: Iterable[bytes]) -> None:
    """Refuse what is no digest, before it is stored where no look-up will ever find it."""
    for key in keys:
        if len(key) != KEY_BYTES:
            raise ValueError(f"a cache key is a sha256 digest of {KEY_BYTES} bytes, not {len(key)} bytes")
