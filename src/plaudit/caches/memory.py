"""A cache in memory: bounded, and the least recently used goes first."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence

from plaudit.caches.base import KEY_BYTES, check_keys
from plaudit.value_check import check_value

ENTRY_BYTES = 250
"""What Python spends on an entry besides the value's own bytes: two objects, a key, a place in the order."""


class MemoryCache:
    """Keeps at most `max_entries` entries and `max_bytes` bytes (overhead included) of what was used last.

    Gone with the process. Engines of one process may share one, whichever threads they run on.
    """

    def __init__(self, *, max_entries: int = 100_000, max_bytes: int = 256 * 2**20) -> None:
        check_value("max_entries", max_entries, int)
        check_value("max_bytes", max_bytes, int)
        self._max_entries = max_entries
        self._max_bytes = max_bytes
        self._entries: OrderedDict[bytes, bytes] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._entries)

    async def get_many(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """The values of those keys that are there; each now counts as just used."""
        check_keys(keys)
        found = {}
        with self._lock:
            for key in keys:
                value = self._entries.get(key)
                if value is not None:
                    self._entries.move_to_end(key)
                    found[key] = value
        return found

    async def put_many(self, items: Sequence[tuple[bytes, bytes]]) -> None:
        """Store all that fit; what was used longest ago makes room."""
        check_keys(key for key, _ in items)
        with self._lock:
            for key, value in items:
                self._forget(key)
                self._entries[key] = value
                self._bytes += _size(value)
                while len(self._entries) > self._max_entries or self._bytes > self._max_bytes:
                    self._forget(next(iter(self._entries)))

    async def close(self) -> None:
        """Nothing to free: the entries stay for other holders of this cache."""

    def _forget(self, key: bytes) -> None:
        value = self._entries.pop(key, None)
        if value is not None:
            self._bytes -= _size(value)


def _size(value: bytes) -> int:
    return KEY_BYTES + len(value) + ENTRY_BYTES
