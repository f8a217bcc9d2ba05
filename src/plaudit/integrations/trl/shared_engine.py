"""The engine of this process: reward functions with the same options share one, and with it its limits."""

from __future__ import annotations

import difflib
import logging
import os
from collections.abc import Iterable, Mapping
from typing import Any

from plaudit.config import EngineConfig
from plaudit.engine import Engine
from plaudit.errors import ConfigError
from plaudit.observers.log import Log
from plaudit.settings import ConfigOptions

log = logging.getLogger("plaudit")

CEILINGS = ("max_concurrent", "rpm", "tpm", "budget")
ENGINE_OPTIONS = ("url", *ConfigOptions.__annotations__, "transport", "ledger")
_engines: list[tuple[tuple[EngineConfig, dict[str, Any]], Engine]] = []


def check_options(options: Iterable[str], *, own: Iterable[str]) -> None:
    """Raise ConfigError for an option of reward_function that is neither its own nor one of Engine."""
    known = [*own, *ENGINE_OPTIONS]
    for name in options:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(known)}"
            raise ConfigError(f"is no option of reward_function; {hint}", setting=name)


def shared_engine(config: EngineConfig, live: Mapping[str, Any]) -> Engine:
    """The process's engine for these options. It starts with its first batch, and is closed at exit."""
    wanted = config, dict(live)
    for known, engine in _engines:
        if known == wanted:
            return engine
    _warn_of_processes(config)
    engine = Engine.from_config(config, **{**live, "observers": live["observers"] or [Log()]})
    _engines.append((wanted, engine))
    return engine


def _warn_of_processes(config: EngineConfig) -> None:
    """A ceiling holds in each process, and a trainer may have several."""
    count = int(os.environ.get("WORLD_SIZE") or 1)
    for name in CEILINGS:
        limit = getattr(config, name)
        if count > 1 and limit is not None:
            log.warning(
                "%s=%s holds in each of the %d training processes, which makes %s in all; divide it by %d",
                name,
                limit,
                count,
                limit * count,
                count,
            )
