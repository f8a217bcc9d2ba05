"""From settings to an engine."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from plaudit.caches import SqliteCache
from plaudit.config import Endpoint
from plaudit.engine import Engine
from plaudit.events import Observer
from plaudit.settings import Settings


def engine_for(settings: Settings, endpoints: tuple[Endpoint, ...], observers: Sequence[Observer]) -> Engine:
    """The engine that the settings describe."""
    cache: dict[str, Any] = {"cache": settings.cache} if settings.cache else {}
    return Engine(
        endpoints=endpoints,
        max_concurrent=settings.max_concurrent,
        rpm=settings.rpm,
        tpm=settings.tpm,
        budget=settings.budget,
        timeout=settings.timeout,
        client=settings.client,
        observers=observers,
        **cache,
    )


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
