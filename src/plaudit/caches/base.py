"""What the engine needs of a cache: many keys in one look-up, many values in one write."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

KEY_BYTES = 32
"""A key is a sha256 digest."""


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


def check_keys(keys: Iterable[bytes]) -> None:
    """Refuse what is no digest, before it is stored where nobody will ever find it."""
    for key in keys:
        if len(key) != KEY_BYTES:
            raise ValueError(f"a cache key is a sha256 digest of {KEY_BYTES} bytes, not {len(key)} bytes")
