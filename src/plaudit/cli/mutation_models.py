"""The models of query mutation by role, over the servers named or over the model on this machine."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from plaudit.cli.console import Console, asker
from plaudit.cli.options import Given, Running
from plaudit.config import Endpoint, EngineConfig
from plaudit.engine import Engine
from plaudit.errors import ConfigError
from plaudit.events import Observer
from plaudit.judges.check import check_samples
from plaudit.mutation.encoders import EndpointEncoder, StaticEncoder
from plaudit.mutation.episode import Rules
from plaudit.mutation.operators import builtin_operators, load_operators
from plaudit.mutation.questions import Item
from plaudit.mutation.task import Models, MutationTask
from plaudit.settings import Settings, endpoints_of, load, option
from plaudit.setup.endpoints import require_keys, with_models
from plaudit.setup.engines import engine_for, open_endpoints
from plaudit.setup.judges import judge_of
from plaudit.setup.model_list import ask_models
from plaudit.types import Sample, Status

SHOWN = 12
TRIAL = Sample("What is 2 + 2? Reply with the number.", "")
PATIENCE = 60.0
"""Seconds for a server's first answer: it may have to load its model first."""
WRITERS = ("mutate_model", "target_model", "judge_model")
"""Options for the models that write and judge; where one is left out, the general model does it."""


@dataclass(frozen=True, kw_only=True)
class ModelOptions(Running):
    """The operators and the models of query mutation, in training and afterwards."""

    operators: Path | None = option(None, "Your own operators, in TOML or JSON.", "Task", "FILE")
    base_url: tuple[str, ...] = option(
        (),
        "Ollama or OpenAI-compatible URL; repeat it or use commas for several (default: a model here)",
        "Models",
        "URL",
        flags=("--servers", "--base-url"),
    )
    mutate_model: str = option("", "Model that rewrites (default: --model)", "Models")
    target_model: str = option("", "Model that answers (default: --model)", "Models")
    judge_model: str = option("", "Model that judges (default: --model)", "Models")
    embed_model: str = option("", "Model that embeds (default: on this machine)", "Models")
    rewrite_tokens: int = option(256, "Maximum tokens of a rewrite.", "Models")
    answer_tokens: int = option(512, "Maximum tokens of an answer.", "Models")

    def settings(self, given: Given) -> Settings:
        """The settings, with every server that is named, also where several are given in one word."""
        urls = (url.strip() for value in self.base_url for url in value.split(","))
        return load({**given, "base_url": tuple(filter(None, urls)) or None})

    def task(self, models: Models, questions: Sequence[Item], rules: Rules) -> MutationTask:
        """What is to be rewritten. Raises ConfigError where the judge cannot judge a question."""
        samples = [Sample(item.question, "-", reference=item.reference) for item in questions]
        check_samples(models.judge, enumerate(samples))
        operators = load_operators(self.operators) if self.operators else builtin_operators()
        return MutationTask(models, questions, operators, rules)


@contextlib.contextmanager
def open_models(
    settings: Settings, options: ModelOptions, *, observer: Callable[[], Observer] | None = None
) -> Iterator[Models]:
    """The models of one training, each engine with its own observer. ConfigError: a server is missing."""
    with contextlib.ExitStack() as stack:

        def opened(endpoints: tuple[Endpoint, ...]) -> Engine:
            observers = () if observer is None else (observer(),)
            return stack.enter_context(engine_for(settings, endpoints, observers))

        judge = judge_of(settings, is_embedded=not settings.base_url)
        embedder = None
        if settings.base_url:
            if settings.local_model:
                raise ConfigError("both servers and a local model are given; leave one out")
            names = [getattr(options, role) or settings.model for role in WRITERS]
            _check_limits(settings, {*names, options.embed_model or names[0]})
            checked = {name: opened(_checked(replace(settings, model=name))) for name in dict.fromkeys(names)}
            rewriter, target, grader = (checked[name] for name in names)
            if options.embed_model:
                embedder = opened(_listed(replace(settings, model=options.embed_model)))
        else:
            for role in (*WRITERS, "embed_model"):
                if getattr(options, role):
                    raise ConfigError("needs a server to ask; name one with --servers URL", setting=role)
            ready = stack.enter_context(open_endpoints(settings, ask=asker(options.yes)))
            rewriter = target = grader = opened(ready.endpoints)
            if not options.quiet:
                Console().print(f"{ready.notice} The same model rewrites and answers.")
        yield Models(
            rewriter,
            target,
            grader,
            judge,
            EndpointEncoder(embedder) if embedder else StaticEncoder(),
            options.rewrite_tokens,
            options.answer_tokens,
            deadline=max(300.0, 2 * settings.timeout),
        )


def _check_limits(settings: Settings, models: Collection[str]) -> None:
    """A limit is held by an engine, and every model has its own: refuse what could not be held together."""
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
        answer = ask_models(endpoint, patience=min(PATIENCE, settings.timeout))
        answer.check(endpoint, settings)
        if answer.models and not {endpoint.model, f"{endpoint.model}:latest"} & set(answer.models):
            shown = ", ".join(answer.models[:SHOWN])
            raise ConfigError(f"{endpoint.url} has no model {endpoint.model!r}; it has {shown}")
    return endpoints
