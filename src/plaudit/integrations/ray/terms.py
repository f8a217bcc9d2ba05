"""What all processes that share an engine agree on: its settings, resolved in full, and comparable."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Any, Unpack

from plaudit.config import Endpoint, Unset
from plaudit.engine import Engine
from plaudit.errors import ConfigError
from plaudit.events import Observer
from plaudit.settings import EngineOptions


@dataclass(frozen=True, slots=True)
class Terms:
    """Every setting with its value. What the caller left out was settled in the caller's process.

    So the engine does the same wherever it runs, and an environment that differs from node to node is found
    out when the second process comes, not by a bill.
    """

    endpoints: tuple[Endpoint, ...]
    max_concurrent: int | None
    rpm: int | None
    tpm: int | None
    budget: float | None
    timeout: float
    hedge: bool
    cache: str | None
    """A file, by its full path; `memory`; or None."""
    client: str

    @classmethod
    def of(cls, url: str | None = None, **options: Unpack[EngineOptions]) -> Terms:
        """Settle the options with this process's environment. Raises ConfigError as the engine would."""
        cache = options.get("cache")
        if not (cache is None or isinstance(cache, str | os.PathLike | Unset)):
            raise ConfigError(
                "lives in one process and cannot be shared; give the path of its file",
                setting="cache",
                value=cache,
            )
        config = Engine(url, **options).config  # checks everything, starts nothing
        return cls(**{field.name: getattr(config, field.name) for field in fields(cls)})

    @property
    def is_limited(self) -> bool:
        """Whether requests or tokens a minute are limited."""
        return bool(self.rpm or self.tpm or any(one.rpm or one.tpm for one in self.endpoints))

    def open(
        self,
        *observers: Observer,
        spent: float = 0.0,
        ledger: Callable[[float], None] | None = None,
    ) -> Engine:
        """The engine that was agreed on, less what another has `spent` in its place."""
        return Engine(
            endpoints=self.endpoints,
            max_concurrent=self.max_concurrent,
            rpm=self.rpm,
            tpm=self.tpm,
            budget=None if self.budget is None else max(0.0, self.budget - spent),
            timeout=self.timeout,
            hedge=self.hedge,
            cache=self.cache,
            client=self.client,
            observers=observers,
            ledger=ledger,
        )

    def differences(self, other: Terms) -> list[str]:
        """What `other` has otherwise, in words: `rpm is 60 there and 30 here`. Never a key's value."""
        return list(_differences("", self, other))


def _differences(prefix: str, there: Any, here: Any) -> Iterator[str]:
    for field in fields(there):
        name, one, other = prefix + field.name, getattr(there, field.name), getattr(here, field.name)
        if one == other:
            continue
        if field.name == "endpoints" and len(one) == len(other):
            for number, pair in enumerate(zip(one, other, strict=True)):
                yield from _differences(f"endpoints[{number}].", *pair)
        elif field.name == "endpoints":
            yield f"endpoints are {len(one)} there and {len(other)} here"
        elif field.name == "api_key":
            yield f"{name} differs" if one and other else f"{name} is set only {'there' if one else 'here'}"
        else:
            yield f"{name} is {one!r} there and {other!r} here"
