"""From settings to an engine."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from plaudit.caches import SqliteCache
from plaudit.config import Endpoint
from plaudit.engine import Engine
from plaudit.events import Observer
from plaudit.settings import Settings, engine_config


def engine_for(settings: Settings, endpoints: tuple[Endpoint, ...], observers: Sequence[Observer]) -> Engine:
    """The engine that the settings describe."""
    return Engine.from_config(engine_config(settings, endpoints=endpoints), observers=observers)


def check_cache(settings: Settings) -> None:
    """Refuse a cache that was asked for and cannot be used: without it, every verdict is paid for twice."""
    if settings.cache in ("", "off", "memory"):
        return

    async def look() -> None:
        cache = SqliteCache(settings.cache)
        try:
            await cache.get_many([bytes(32)])
        finally:
            await cache.close()

    asyncio.run(look())
