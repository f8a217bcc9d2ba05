"""Caches: verdicts already paid for."""

from __future__ import annotations

import os

from plaudit.caches.base import Cache, Claim, LeasingCache
from plaudit.caches.memory import MemoryCache
from plaudit.caches.sqlite import OnTrouble, SqliteCache
from plaudit.caches.store import CacheStats
from plaudit.config import default_cache as default_path

__all__ = [
    "Cache",
    "CacheStats",
    "Claim",
    "LeasingCache",
    "MemoryCache",
    "SqliteCache",
    "default_path",
    "open_cache",
]


def open_cache(
    where: str | os.PathLike[str] | None, *, on_trouble: OnTrouble | None = None
) -> MemoryCache | SqliteCache | None:
    """The cache a setting names: a file, `memory`, or none at all (`off`, None). No file is touched yet."""
    if where is None or where == "off":
        return None
    if where == "memory":
        return MemoryCache()
    return SqliteCache(where, on_trouble=on_trouble)
