"""Samples in, verdicts out: the engine that trainers, commands and services call.

Everything happens on a thread of the engine's own: the caller's thread and the GPU wait only if asked to.
`submit` returns at once; `Pending.result` collects.
"""

from __future__ import annotations

import asyncio
import functools
import math
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, NoReturn, Self, TypeVar, Unpack, cast

from plaudit._loop_thread import LoopOwner, new_event_loop
from plaudit._session import EngineWork
from plaudit.caches import Cache
from plaudit.config import UNSET, Endpoint, EngineConfig, Unset, home
from plaudit.errors import ConfigError, EngineClosed
from plaudit.events import Observer
from plaudit.judges.base import Judge, Panel, is_panel
from plaudit.judges.check import as_judge, check_samples
from plaudit.observers.named import load_observers
from plaudit.observers.progress import batch_progress
from plaudit.pending import Pending
from plaudit.rows import Rows, as_samples
from plaudit.scheduling.batch import Batch
from plaudit.scheduling.panel import panel_batch
from plaudit.settings import EngineOptions, Settings, engine_config, load
from plaudit.transports import Transport, open_transport
from plaudit.types import Sample, Verdict
from plaudit.value_check import check_value

T = TypeVar("T")


class BaseEngine(ABC):
    """Takes batches of samples and returns a verdict for each, in this process or a shared one."""

    _worker: LoopOwner[Any] | None = None
    _is_closed = False

    def submit(
        self, samples: Rows, judge: Judge | Panel | str, *, deadline: float | None = None, job: str = ""
    ) -> Pending:
        """Submit samples and return immediately.

        Args:
            samples: The samples, or rows of data as mappings, a DataFrame or a dataset.
            judge: The judge, or a text that is used as a rubric.
            deadline: Seconds from now; unfinished samples then get status `deadline`.
            job: The job they belong to. Different jobs take turns; calls of one job are sent in order.

        Raises:
            ConfigError: the judge cannot judge a sample, or the deadline has passed.
            EngineClosed: the engine was closed.
        """
        samples = as_samples(samples)
        judge = as_judge(judge)
        check_samples(judge, enumerate(samples))
        return self.submit_checked(samples, judge, deadline=deadline, job=job)

    def submit_checked(
        self, samples: list[Sample], judge: Judge | Panel, *, deadline: float | None = None, job: str = ""
    ) -> Pending:
        """`submit` for a caller that has checked each sample with the judge, and the judge itself."""
        if deadline is not None:
            check_value("deadline", deadline, float | None)
        return self._submit(samples, judge, deadline=None if deadline == math.inf else deadline, job=job)

    @abstractmethod
    def _submit(
        self, samples: list[Sample], judge: Judge | Panel, *, deadline: float | None, job: str
    ) -> Pending:
        """Send off what was checked."""

    @abstractmethod
    def _open(self) -> LoopOwner[Any]:
        """What works on batches, on a thread of its own."""

    def _at_work(self) -> LoopOwner[Any]:
        """What works on batches, begun by the first one; in a forked child, a new one."""
        with _gate:
            if self._is_closed:
                raise EngineClosed("the engine is closed; open a new one")
            if self._worker is None or not self._worker.thread.is_alive:
                self._worker = self._open()
            return self._worker

    def close(self) -> None:
        """Stop: finished verdicts are stored, samples without one fail. Safe to call twice."""
        with _gate:
            self._is_closed = True
        if self._worker is not None:
            self._worker.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.close)  # the caller's loop goes on meanwhile

    def score(
        self,
        samples: Rows,
        judge: Judge | Panel | str,
        *,
        deadline: float | None = None,
        progress: bool | None = None,
    ) -> list[Verdict]:
        """Judge samples and wait for all their verdicts, in order. Ctrl-C cancels the rest.

        Args:
            samples: The samples, or rows of data as mappings, a DataFrame or a dataset.
            judge: The judge, or a text that is used as a rubric.
            deadline: Seconds from now; unfinished samples then get status `deadline`.
            progress: Whether stderr shows how far it is after the first second; None: on a terminal and in a
                notebook. In a log, a line every ten seconds.
        """
        pending = self.submit(samples, judge, deadline=deadline)
        try:
            with batch_progress(lambda: pending.remaining, len(pending), is_shown=progress):
                return pending.result()
        except BaseException:
            pending.cancel()
            raise

    async def ascore(
        self, samples: Rows, judge: Judge | Panel | str, *, deadline: float | None = None, job: str = ""
    ) -> list[Verdict]:
        """`score` for async code; the caller's event loop is not blocked."""
        pending = self.submit(samples, judge, deadline=deadline, job=job)
        try:
            return await pending
        except asyncio.CancelledError:
            pending.cancel()
            raise

    def run(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run a coroutine that submits single samples one after another, where that is cheapest."""
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            return runner.run(work())


class Engine(BaseEngine):
    """Judges samples over one or more endpoints. A context manager; threads may share it.

    Nothing is started before the first batch. In a forked child the engine starts afresh.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        cache: Cache | str | os.PathLike[str] | Unset | None = UNSET,
        observers: Sequence[Observer | str] = (),
        transport: Callable[[Endpoint], Transport] | None = None,
        ledger: Callable[[float], None] | None = None,
        **options: Unpack[EngineOptions],
    ) -> None:
        """Resolve the settings once, into `config`.

        What is left out comes from the environment (OPENAI_BASE_URL, OPENAI_API_KEY, PLAUDIT_RPM, ...) or
        from plaudit.toml, as `plaudit doctor` shows it. None is not left out: it means no limit.

        Args:
            url: `http://host/v1`, or `http://host:11434` for Ollama; `base_url` is another name for it.
            cache: A file, `memory`, a Cache (which stays open), or None for none; left out: the user's own
                verdict file.
            observers: Called with every event, on the engine's thread; each a function, or its import path
                like `package.module:name`.
            transport: How to reach an endpoint, in place of HTTP.
            ledger: With a budget: called with the sum of dollars that this engine may have spent, before it
                is spent. Keep the last one, and nothing is spent twice after a crash. It raises BudgetSpent
                where it cannot keep it.
            options: Those of `plaudit.settings.EngineOptions`. `model` and `api_key` belong to the URL;
                `endpoints` are several servers, in place of these three. `max_concurrent`, `rpm`, `tpm` and
                `budget` (US dollars) are limits over all endpoints, never exceeded; None: no such limit.
                `timeout`: seconds for one attempt of one call. `hedge`: whether a call that takes far too
                long is sent a second time. `client`: `httptools`, `aiohttp` or `pyreqwest`.

        Raises:
            ConfigError: there is no endpoint or no such option, or a value makes no sense.
        """
        config, live = configure(
            load({}), url, cache=cache, observers=observers, transport=transport, ledger=ledger, **options
        )
        self._set_up(config, **live)

    @classmethod
    def from_config(
        cls,
        config: EngineConfig,
        *,
        observers: Sequence[Observer] = (),
        transport: Callable[[Endpoint], Transport] | None = None,
        ledger: Callable[[float], None] | None = None,
        cache: Cache | Unset = UNSET,
    ) -> Engine:
        """An engine with exactly this configuration: no setting is read from the environment or a file.

        Args:
            config: What the engine works with.
            observers: Called with every event, on the engine's thread, as are those of the configuration.
            transport: How to reach an endpoint, in place of HTTP.
            ledger: As for `Engine`.
            cache: An open cache, in place of the one that the configuration names. It stays open.

        Raises:
            ConfigError: there is no endpoint, no such client, or a key that cannot be sent.
        """
        engine = cls.__new__(cls)
        engine._set_up(config, observers=observers, transport=transport, ledger=ledger, cache=cache)
        return engine

    def _set_up(
        self,
        config: EngineConfig,
        *,
        observers: Sequence[Observer] = (),
        transport: Callable[[Endpoint], Transport] | None = None,
        ledger: Callable[[float], None] | None = None,
        cache: Cache | Unset = UNSET,
    ) -> None:
        if not config.endpoints:
            raise ConfigError(
                "is empty: give the configuration one, like Endpoint('http://host:8000/v1')",
                setting="endpoints",
            )
        self.is_over_http = transport is None
        """Whether endpoints are reached over HTTP, and not by a transport of the caller's."""
        if transport is None:
            transport = functools.partial(open_transport, client=config.client, timeout=config.timeout)
            for endpoint in config.endpoints:
                transport(endpoint)  # raises here what is wrong with a key or a client
        self.config = config
        self._new_work = functools.partial(
            EngineWork,
            config,
            cache=config.cache if cache is UNSET else cache,
            observers=(*observers, *load_observers(config.observers)),
            limits_file=home() / "limits.json",
            transport=transport,
            ledger=ledger,
        )

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """The servers that the engine uses."""
        return self.config.endpoints

    @property
    def model(self) -> str:
        """The models of all endpoints, as cache keys name them."""
        return self.config.model

    def __repr__(self) -> str:
        return f"Engine({', '.join(endpoint.url for endpoint in self.endpoints)}, model={self.model!r})"

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "an Engine holds a thread and connections, and cannot be pickled or copied; "
            "open one in each process (Endpoint and judges can be pickled)"
        )

    def _submit(
        self, samples: list[Sample], judge: Judge | Panel, *, deadline: float | None, job: str
    ) -> Pending:
        if is_panel(judge):
            batch = panel_batch(samples, judge, model=self.model, deadline=deadline, job=job)
        else:
            batch = Batch(samples, cast(Judge, judge), model=self.model, deadline=deadline, job=job)
        with _gate:  # so that no batch arrives after `close` has counted those it has to end
            worker = self._at_work()
            worker.thread.post(worker.work.start, batch)
        return Pending(batch, worker)

    def run(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run a coroutine on the engine's own thread, where what it submits and awaits crosses none."""
        return self._at_work().thread.run(work)

    def _open(self) -> LoopOwner[EngineWork]:
        return LoopOwner("the engine", self._new_work())


def configure(
    settings: Settings, url: str | None = None, **options: Any
) -> tuple[EngineConfig, dict[str, Any]]:
    """Options of `Engine` as a configuration, and what is alive among them, for `Engine.from_config`.

    Raises:
        ConfigError: there is no endpoint or no such option, or a value makes no sense.
    """
    live: dict[str, Any] = {name: options.pop(name) for name in ("transport", "ledger") if name in options}
    given = options.pop("observers", ())
    observers = tuple(given) if isinstance(given, Iterable) and not isinstance(given, str) else (None,)
    if not all(isinstance(one, str) or callable(one) for one in observers):
        raise ConfigError("should be a list of functions or import paths", setting="observers")
    live["observers"] = tuple(one for one in observers if not isinstance(one, str))
    if named := tuple(one for one in observers if isinstance(one, str)):
        options["observers"] = named
    cache = options.get("cache")
    if not (cache is None or isinstance(cache, str | os.PathLike | Unset)):
        if not all(hasattr(cache, name) for name in ("get_many", "put_many", "close")):
            raise ConfigError("should be a file, 'memory', None, or a Cache", setting="cache", value=cache)
        live["cache"], options["cache"] = cache, None
    return engine_config(settings, url, **options), live


def shared_engine(options: object, open_engine: Callable[[], Engine]) -> Engine:
    """The engine that this process has for equal options; it is opened if there is none, and kept."""
    with _gate:
        for known, engine in _shared:
            if known == options:
                return engine
        engine = open_engine()
        _shared.append((options, engine))
        return engine


def forget_engine(engine: Engine) -> None:
    """Let the next one who asks open another. It goes on for those who have it."""
    with _gate:
        _shared[:] = [known for known in _shared if known[1] is not engine]


_shared: list[tuple[object, Engine]] = []

# Held for microseconds at a time, and across a fork: no child finds an engine half started.
_gate = threading.RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_gate.acquire, after_in_parent=_gate.release, after_in_child=_gate.release)
