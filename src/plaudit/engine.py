"""Samples in, verdicts out: the engine that trainers, commands and services call.

Everything happens on a thread of the engine's own: the caller's thread and the GPU wait only if asked to.
`submit` returns at once; `Pending.result` collects.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import NoReturn

from plaudit.caches import Cache, default_path
from plaudit.config import Endpoint, Price, Secret, home
from plaudit.errors import ConfigError, EngineClosed
from plaudit.events import Observer
from plaudit.judges.base import Judge, Panel
from plaudit.judges.check import check_samples
from plaudit.pending import Pending
from plaudit.scheduling.batch import Batch
from plaudit.scheduling.dispatcher import DispatcherConfig
from plaudit.scheduling.panel import panel_batch
from plaudit.session import Plan, Session
from plaudit.settings import Settings, load
from plaudit.submits import Submits, checked_deadline
from plaudit.transports import Transport, open_transport
from plaudit.types import Sample

DEFAULT_CACHE = "default"


class Engine(Submits):
    """Judges samples over one or more endpoints. A context manager; threads may share it.

    Nothing is started before the first batch. In a forked child the engine starts afresh.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        model: str = "",
        endpoints: Sequence[Endpoint] = (),
        api_key: Secret | str | None = None,
        max_concurrent: int | None = None,
        rpm: int | None = None,
        tpm: int | None = None,
        budget: float | None = None,
        timeout: float | None = None,
        hedge: bool = True,
        cache: Cache | str | os.PathLike[str] | None = DEFAULT_CACHE,
        client: str | None = None,
        observers: Sequence[Observer] = (),
        transport: Callable[[Endpoint], Transport] | None = None,
        ledger: Callable[[float], None] | None = None,
    ) -> None:
        """
        url             `http://host/v1`, or `http://host:11434` for Ollama
        model, api_key  what to ask for at that URL, and the key to it
        endpoints       several servers, in place of these three
        max_concurrent  calls at once, never crossed; by default the engine finds what each endpoint bears
        rpm, tpm        requests and tokens a minute, over all endpoints, never crossed
        budget          US dollars this engine may spend; needs a price for each endpoint
        timeout         seconds for one attempt of one call
        hedge           whether a call that takes far too long gets a twin
        cache           a file, a Cache (which stays open), `memory`, or None for none
        client          `httptools`, `aiohttp` or `pyreqwest`
        observers       called with every event, on the engine's thread
        transport       how to reach an endpoint, in place of HTTP
        ledger          with a budget: is told, before it is so, which sum of dollars this engine may have
                        spent; keep the last one, and nothing is spent twice after a crash. Raises
                        BudgetSpent where it cannot be kept

        What is left out comes from the environment (OPENAI_BASE_URL, OPENAI_API_KEY, PLAUDIT_RPM, ...) or
        from plaudit.toml, as `plaudit doctor` shows it; the cache is then the user's own verdict file.
        """
        settings = load({})
        self.endpoints = _endpoints(url, model, endpoints, api_key, settings)
        dispatch = DispatcherConfig(
            timeout=settings.timeout if timeout is None else timeout,
            max_concurrent=settings.max_concurrent if max_concurrent is None else max_concurrent,
            rpm=settings.rpm if rpm is None else rpm,
            tpm=settings.tpm if tpm is None else tpm,
            budget=settings.budget if budget is None else budget,
            hedge=hedge,
        )
        _check(dispatch, self.endpoints)
        if transport is None:
            name = client or settings.client
            transport = functools.partial(open_transport, client=name, timeout=dispatch.timeout)
            for endpoint in self.endpoints:
                transport(endpoint)  # says now what is wrong with a key or a client
        if cache == DEFAULT_CACHE:
            cache = settings.cache or default_path()
        self.model = "+".join(sorted({endpoint.model for endpoint in self.endpoints}))
        self._plan = Plan(
            self.endpoints, dispatch, cache, tuple(observers), home() / "limits.json", transport, ledger
        )
        self._session: Session | None = None
        self._is_closed = False

    def __repr__(self) -> str:
        return f"Engine({', '.join(endpoint.url for endpoint in self.endpoints)}, model={self.model!r})"

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "an Engine holds a thread and connections, and cannot be pickled or copied; "
            "open one in each process (Endpoint and judges can be pickled)"
        )

    # -- scoring ------------------------------------------------------------------------------------------

    def submit(
        self, samples: Iterable[Sample], judge: Judge | Panel, *, deadline: float | None = None
    ) -> Pending:
        """Hand samples over and return at once. `deadline`: seconds from now, after which none is missing."""
        deadline = checked_deadline(deadline)
        samples = list(samples)
        check_samples(judge, enumerate(samples))
        if isinstance(judge, Panel):
            batch = panel_batch(samples, judge, model=self.model, deadline=deadline)
        else:
            batch = Batch(samples, judge, model=self.model, deadline=deadline)
        with _gate:  # so that no batch arrives after `close` has counted those it has to end
            session = self._started()
            session.start(batch)
        return Pending(batch, session)

    # -- life ---------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Stop: finished verdicts are stored, the rest of every batch fails. Safe to call twice."""
        with _gate:
            self._is_closed = True
        if self._session is not None:
            self._session.close()

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _started(self) -> Session:
        """The session, begun by the first batch; in a forked child, a new one."""
        if self._is_closed:
            raise EngineClosed("the engine is closed; open a new one")
        if self._session is None or not self._session.is_alive:
            self._session = Session(self._plan)
        return self._session


def _endpoints(
    url: str | None,
    model: str,
    endpoints: Sequence[Endpoint],
    api_key: Secret | str | None,
    settings: Settings,
) -> tuple[Endpoint, ...]:
    if endpoints:
        if url or model or api_key:
            raise ConfigError(
                "endpoints= come with their own URL, model and key; leave out url=, model= and api_key="
            )
        return tuple(endpoints)
    urls = (url,) if url else settings.base_url
    if not urls:
        raise ConfigError(
            "no endpoint: pass url= (like http://localhost:8000/v1), or set OPENAI_BASE_URL; "
            "for a model on this machine see plaudit.local.LocalServer"
        )
    key = api_key if api_key is not None else settings.api_key
    price = Price(*settings.price) if settings.price else None
    return tuple(Endpoint(base, model=model or settings.model, api_key=key, price=price) for base in urls)


def _check(config: DispatcherConfig, endpoints: Sequence[Endpoint]) -> None:
    for name in ("max_concurrent", "rpm", "tpm"):
        value = getattr(config, name)
        if value is not None and value < 1:
            raise ConfigError(
                "allows no call at all; use 1 or more, or leave it out", setting=name, value=value
            )
    if not config.timeout > 0:
        raise ConfigError(
            "leaves no time to answer; give seconds, above 0", setting="timeout", value=config.timeout
        )
    if config.budget is not None:
        if not config.budget >= 0:
            raise ConfigError(
                "is no sum of money; give US dollars, 0 or more", setting="budget", value=config.budget
            )
        free = [endpoint.url for endpoint in endpoints if endpoint.price is None]
        if free:
            raise ConfigError(
                f"a budget needs prices, and {free[0]} has none; give its Endpoint a price, "
                "like Price(prompt=0.15, completion=0.60) in dollars for a million tokens"
            )


# Held for microseconds at a time, and across a fork: no child finds an engine half started.
_gate = threading.RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_gate.acquire, after_in_parent=_gate.release, after_in_child=_gate.release)
