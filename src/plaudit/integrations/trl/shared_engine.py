"""The engine of this process: reward functions with the same options share one, and with it its limits."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from plaudit.config import Endpoint, EngineConfig
from plaudit.engine import Engine, shared_engine
from plaudit.errors import ConfigError
from plaudit.observers.log import Log
from plaudit.settings import ConfigOptions
from plaudit.value_check import check_known

log = logging.getLogger("plaudit")

COUNTED = ("max_concurrent", "rpm", "tpm")
CEILINGS = (*COUNTED, "budget")
ENGINE_OPTIONS = ("url", *ConfigOptions.__annotations__, "transport", "ledger")


def check_options(options: Iterable[str], *, own: Iterable[str]) -> None:
    """Raise ConfigError for an option of reward_function that is neither its own nor one of Engine."""
    for name in options:
        check_known(name, [*own, *ENGINE_OPTIONS], "option of reward_function")


def engine_of(config: EngineConfig, live: Mapping[str, Any]) -> Engine:
    """The process's engine for these options. It starts with its first batch, and is closed at exit."""

    def opened() -> Engine:
        return Engine.from_config(rank_share(config), **{**live, "observers": live["observers"] or [Log()]})

    return shared_engine(("a rank's part", config, dict(live)), opened)


def rank_share(config: EngineConfig) -> EngineConfig:
    """A rank's part of every limit, so that all ranks together keep it. Ranks have equally many rows."""
    rank, count = int(os.environ.get("RANK") or 0), int(os.environ.get("WORLD_SIZE") or 1)
    if count <= 1:
        return config
    limits = {name: getattr(config, name) for name in CEILINGS if getattr(config, name) is not None}
    if limits:
        log.info(
            "each of %d ranks has its part of %s", count, ", ".join(f"{n}={v}" for n, v in limits.items())
        )
    endpoints = tuple(replace(one, **_parts(one, rank, count)) for one in config.endpoints)
    budget = None if config.budget is None else config.budget / count
    return replace(config, **_parts(config, rank, count), budget=budget, endpoints=endpoints)


def _parts(limited: EngineConfig | Endpoint, rank: int, count: int) -> dict[str, Any]:
    """This rank's part of the limits that are whole numbers; the first ranks have one more."""
    parts: dict[str, Any] = {}
    for name in COUNTED:
        limit = getattr(limited, name)
        if limit is not None and limit < count:
            raise ConfigError(
                f"is less than one for each of the {count} ranks; start one `plaudit serve` with this limit, "
                "and give reward_function its URL without a limit",
                setting=name,
                value=limit,
            )
        if limit is not None:
            parts[name] = limit // count + (rank < limit % count)
    return parts
