"""Samples in, verdicts out: the engine that trainers, commands and services call.

Everything happens on a thread of the engine's own: the caller's thread, and the GPU, wait only if they ask to.
`submit` returns at once; `Pending.result` collects.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import time
import weakref
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from plaudit.blocking import LoopThread
from plaudit.caches import Cache, default_path, open_cache
from plaudit.config import Endpoint, Secret, home
from plaudit.core.limit import LimitConfig
from plaudit.errors import ConfigError, EngineClosed
from plaudit.events import CacheTrouble, Event, Observer
from plaudit.judges.base import Judge
from plaudit.pending import Pending
from plaudit.scheduler import remembered
from plaudit.scheduler.batch import Batch
from plaudit.scheduler.dispatcher import Dispatcher, DispatcherConfig
from plaudit.scheduler.lane import Lane
from plaudit.scheduler.scorer import Scorer
from plaudit.settings import load
from plaudit.transports import Transport, open_transport
from plaudit.types import Sample, Verdict

log = logging.getLogger("plaudit")

DEFAULT_CACHE = "default"
CLOSE_WITHIN = 10.0
_open_engines: weakref.WeakSet[Engine] = weakref.WeakSet()


class Engine:
    """Judges samples over one or more endpoints. A context manager; threads may share it."""

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
        timeout: float = 120.0,
        hedge: bool = True,
        cache: Cache | str | os.PathLike[str] | None = DEFAULT_CACHE,
        client: str = "aiohttp",
        observers: Sequence[Observer] = (),
        transport: Callable[[Endpoint], Transport] | None = None,
    ) -> None:
        """
        url             `http://host/v1`, or `http://host:11434` for Ollama; without it, $OPENAI_BASE_URL
        endpoints       several servers of the same model, in place of `url`
        max_concurrent  calls at once, never crossed; None: the engine finds what each endpoint bears
        rpm, tpm        requests and tokens a minute, over all endpoints, never crossed
        budget          US dollars this engine may spend; needs a price for each endpoint
        timeout         seconds for one attempt of one call
        cache           a file, a Cache, or None for none; by default the user's own verdict file
        observers       called with every event, on the engine's thread
        transport       how to reach an endpoint, in place of HTTP
        """
        self.endpoints = _endpoints(url, model, endpoints, api_key)
        _check(
            self.endpoints, max_concurrent=max_concurrent, rpm=rpm, tpm=tpm, budget=budget, timeout=timeout
        )
        self._config = DispatcherConfig(
            timeout=timeout, max_concurrent=max_concurrent, rpm=rpm, tpm=tpm, budget=budget, hedge=hedge
        )
        self.model = "+".join(sorted({endpoint.model for endpoint in self.endpoints}))
        self._cache = cache
        self._observers = list(observers)
        self._transport = transport or (lambda endpoint: open_transport(endpoint, client, timeout=timeout))
        self._limits_file = home() / "limits.json"
        self._thread: LoopThread | None = None
        self._scorer: Scorer | None = None
        self._lanes: list[Lane] = []
        self._is_closed = False
        _open_engines.add(self)

    # -- scoring ------------------------------------------------------------------------------------------

    def submit(self, samples: Iterable[Sample], judge: Judge, *, deadline: float | None = None) -> Pending:
        """Hand samples over and return at once. `deadline`: seconds from now, after which none is missing."""
        if deadline is not None and not deadline > 0:
            raise ConfigError(f"deadline={deadline} has passed already; give seconds from now, above 0")
        batch = Batch(list(samples), judge, model=self.model, deadline=deadline)
        thread = self._started()
        thread.post(lambda: self._scoring().start(batch))
        return Pending(batch, self._expire, self._cancel, lambda: thread.is_alive and not thread.is_current)

    def score(
        self, samples: Iterable[Sample], judge: Judge, *, deadline: float | None = None
    ) -> list[Verdict]:
        """Judge samples and wait for all their verdicts, in order."""
        return self.submit(samples, judge, deadline=deadline).result()

    async def ascore(
        self, samples: Iterable[Sample], judge: Judge, *, deadline: float | None = None
    ) -> list[Verdict]:
        """The same for callers with an event loop of their own, which stays free meanwhile."""
        pending = self.submit(samples, judge, deadline=deadline)
        try:
            return await pending
        except asyncio.CancelledError:
            pending.cancel()
            raise

    # -- life ---------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Stop: finished verdicts are stored, the rest of every batch fails. Safe to call twice."""
        self._is_closed = True
        thread, self._thread = self._thread, None
        if thread is None or not thread.is_alive:
            return
        try:
            thread.run(self._shut(), timeout=CLOSE_WITHIN)
        except TimeoutError:
            log.warning("the engine did not stop within %g s; its thread is left behind", CLOSE_WITHIN)
        thread.stop()

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _started(self) -> LoopThread:
        """The engine's thread, started by the first call; in a forked child, a new one."""
        if self._is_closed:
            raise EngineClosed("the engine is closed; open a new one")
        if self._thread is None or not self._thread.is_alive:
            self._thread = LoopThread()
            self._scorer = None
        return self._thread

    def _scoring(self) -> Scorer:
        """The scorer, made on the engine's own loop."""
        if self._scorer is None:
            emit = self._emit if self._observers else None
            known = remembered.load(self._limits_file, now=time.time())
            self._lanes = [self._lane(endpoint, known.get(endpoint.name)) for endpoint in self.endpoints]
            cache = self._open_cache()
            self._scorer = Scorer(
                lambda on_room: Dispatcher(self._lanes, self._config, emit=emit, on_room=on_room),
                cache,
                emit=emit,
                on_finished=self._remember,
            )
        return self._scorer

    def _lane(self, endpoint: Endpoint, known: remembered.Learned | None) -> Lane:
        start = None
        if known is not None and known.limit is not None:
            start = LimitConfig(start=known.limit, is_known=True, rejects=known.rejects)
        lane = Lane(endpoint, self._transport(endpoint), start=start, ceiling=self._config.max_concurrent)
        if known is not None and known.rate is not None:
            lane.pace.begin(now=asyncio.get_running_loop().time(), rate=known.rate)
        return lane

    def _open_cache(self) -> Cache | None:
        where = default_path() if self._cache == DEFAULT_CACHE else self._cache
        if where is None or isinstance(where, str | Path | os.PathLike):
            return open_cache(where, on_trouble=self._on_cache_trouble)
        return where

    async def _shut(self) -> None:
        if self._scorer is not None:
            await self._scorer.close()
            self._remember()

    def _remember(self) -> None:
        now = time.time()
        learned = {lane.name: remembered.learned_of(lane, now=now) for lane in self._lanes}
        news = {name: entry for name, entry in learned.items() if entry is not None}
        remembered.save(self._limits_file, news, now=now)

    def _expire(self, batch: Batch) -> None:
        self._post(lambda: self._scoring().expire(batch))

    def _cancel(self, batch: Batch) -> None:
        self._post(lambda: self._scoring().cancel(batch))

    def _post(self, action: Callable[[], None]) -> None:
        if self._thread is None:
            raise EngineClosed("the engine is closed; open a new one")
        self._thread.post(action)

    def _emit(self, event: Event) -> None:
        for observer in list(self._observers):
            try:
                observer(event)
            except Exception:  # an observer is user code, and must not stop the engine
                log.exception("an observer failed and is dropped")
                self._observers.remove(observer)

    def _on_cache_trouble(self, message: str) -> None:
        log.warning("%s", message)
        if self._observers:
            self._emit(CacheTrouble(asyncio.get_running_loop().time(), message))


def _endpoints(
    url: str | None, model: str, endpoints: Sequence[Endpoint], api_key: Secret | str | None
) -> tuple[Endpoint, ...]:
    if url is not None and endpoints:
        raise ConfigError("both url= and endpoints= are given; put the URL into an Endpoint, or leave it out")
    if endpoints:
        return tuple(endpoints)
    settings = load({"base_url": url or None, "model": model or None})
    if not settings.base_url:
        raise ConfigError(
            "no endpoint: pass url= (like http://localhost:8000/v1), or set OPENAI_BASE_URL; "
            "for a model on this machine see plaudit.local.LocalServer"
        )
    key = api_key if api_key is not None else settings.api_key
    return tuple(Endpoint(base, model=settings.model, api_key=key) for base in settings.base_url)


def _check(
    endpoints: Sequence[Endpoint],
    *,
    max_concurrent: int | None,
    rpm: int | None,
    tpm: int | None,
    budget: float | None,
    timeout: float,
) -> None:
    for name, value in (("max_concurrent", max_concurrent), ("rpm", rpm), ("tpm", tpm)):
        if value is not None and value < 1:
            raise ConfigError(f"{name}={value} allows no call at all; use 1 or more, or leave it out")
    if not timeout > 0:
        raise ConfigError(f"timeout={timeout} leaves no time to answer; give seconds, above 0")
    if budget is not None:
        if not budget >= 0:
            raise ConfigError(f"budget={budget} is no sum of money; give US dollars, 0 or more")
        free = [endpoint.url for endpoint in endpoints if endpoint.price is None]
        if free:
            raise ConfigError(
                f"a budget needs prices, and {free[0]} has none; give its Endpoint a price, "
                "like Price(prompt=0.15, completion=0.60) in dollars for a million tokens"
            )


@atexit.register
def _close_all() -> None:
    for engine in list(_open_engines):
        engine.close()
