"""The engines of query mutation by role, over the servers named or over the model on this machine."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from plaudit.config import Endpoint, EngineConfig
from plaudit.engine import Engine
from plaudit.errors import ConfigError
from plaudit.events import Observer
from plaudit.judges.base import Judge, Panel
from plaudit.settings import Settings, endpoints_of
from plaudit.setup.endpoints import require_keys, with_models
from plaudit.setup.engines import Ask, engine_for, open_endpoints
from plaudit.setup.judges import judge_of
from plaudit.setup.model_list import ask_models
from plaudit.types import Sample, Status

SHOWN = 12
TRIAL = Sample("What is 2 + 2? Reply with the number.", "")
PATIENCE = 60.0
"""Seconds for a server's first answer: it may have to load its model first."""


@dataclass(frozen=True, slots=True)
class Roles:
    """The model for each role; an empty name stands for the general one."""

    mutate: str = ""
    target: str = ""
    judge: str = ""
    embed: str = ""
    """Empty: embeddings are made on this machine."""


@dataclass(frozen=True, slots=True)
class MutationEngines:
    """Engines by role, and the judge."""

    rewriter: Engine
    target: Engine
    grader: Engine
    embedder: Engine | None
    judge: Judge | Panel
    notice: str = ""
    """What the user has to know about a model on this machine."""

    @property
    def models(self) -> list[str]:
        """The models that write and judge, each once."""
        return list(dict.fromkeys(engine.model for engine in (self.rewriter, self.target, self.grader)))


@contextlib.contextmanager
def open_engines(
    settings: Settings,
    roles: Roles,
    *,
    ask: Ask | None = None,
    observer: Callable[[], Observer] | None = None,
) -> Iterator[MutationEngines]:
    """Engines for one training, each with its own observer. ConfigError where a server is missing."""

    def observers() -> tuple[Observer, ...]:
        return () if observer is None else (observer(),)

    with contextlib.ExitStack() as stack:
        if not settings.base_url:
            yield _embedded(settings, roles, stack, ask=ask, observers=observers())
            return
        if settings.local_model:
            raise ConfigError("both servers and a local model are given; leave one out")
        _check_limits(settings, roles)
        judge = judge_of(settings)
        engines: dict[str, Engine] = {}

        def engine(model: str) -> Engine:
            name = model or settings.model
            if name not in engines:
                endpoints = _checked(replace(settings, model=name))
                engines[name] = stack.enter_context(engine_for(settings, endpoints, observers()))
            return engines[name]

        rewriter, target, grader = engine(roles.mutate), engine(roles.target), engine(roles.judge)
        embedder = None
        if roles.embed:
            endpoints = _listed(replace(settings, model=roles.embed))
            embedder = stack.enter_context(engine_for(settings, endpoints, observers()))
        yield MutationEngines(rewriter, target, grader, embedder, judge)


def _embedded(
    settings: Settings,
    roles: Roles,
    stack: contextlib.ExitStack,
    *,
    ask: Ask | None,
    observers: Sequence[Observer],
) -> MutationEngines:
    for name in ("mutate", "target", "judge", "embed"):
        if getattr(roles, name):
            raise ConfigError("needs a server to ask; name one with --servers URL", setting=f"{name}_model")
    judge = judge_of(settings, is_embedded=True)
    ready = stack.enter_context(open_endpoints(settings, ask=ask))
    engine = stack.enter_context(engine_for(settings, ready.endpoints, observers))
    return MutationEngines(
        engine, engine, engine, None, judge, f"{ready.notice} The same model rewrites and answers."
    )


def _check_limits(settings: Settings, roles: Roles) -> None:
    """A limit is held by an engine, and every model has its own: refuse what could not be held together."""
    names = {roles.mutate or settings.model, roles.target or settings.model, roles.judge or settings.model}
    models = names | ({roles.embed} if roles.embed else set())
    given = [name for name in ("budget", "rpm", "tpm") if getattr(settings, name) is not None]
    if len(models) > 1 and given:
        raise ConfigError(
            f"cannot be held over {len(models)} models together; leave it out, or use one --model for "
            "everything, and embeddings of this machine",
            setting=given[0],
        )


def _checked(settings: Settings) -> tuple[Endpoint, ...]:
    """The endpoints of a model, each of which has answered once."""
    endpoints = _listed(settings)
    from plaudit.mutation.completion import Text

    for endpoint in endpoints:
        with Engine.from_config(EngineConfig(endpoints=(endpoint,), timeout=settings.timeout)) as engine:
            [verdict] = engine.score([TRIAL], Text(max_tokens=16), deadline=PATIENCE)
        if verdict.status is Status.FAILED:
            raise ConfigError(f"{endpoint.url} does not answer: {verdict.error}")
    return endpoints


def _listed(settings: Settings) -> tuple[Endpoint, ...]:
    """The endpoints of a model, which all list it where they list anything."""
    endpoints = endpoints_of(settings)
    require_keys(endpoints, settings)
    if not settings.model:
        return with_models(endpoints, settings)
    for endpoint in endpoints:
        models = ask_models(endpoint, patience=min(PATIENCE, settings.timeout))
        models.check(endpoint, settings)
        if models.names and not {endpoint.model, f"{endpoint.model}:latest"} & set(models.names):
            shown = ", ".join(models.names[:SHOWN])
            raise ConfigError(f"{endpoint.url} has no model {endpoint.model!r}; it has {shown}")
    return endpoints
