"""The engine under the names of a reward manager's settings: submit, compute on, collect."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

from plaudit.caches import Cache
from plaudit.config import UNSET, Secret, Unset, warn_unneeded
from plaudit.engine import Engine
from plaudit.errors import as_argument, spelling
from plaudit.events import Observer
from plaudit.judges.base import Judge
from plaudit.pending import Pending
from plaudit.types import Sample, Verdict
from plaudit.value_check import check_value

TIME_LIMIT = 300.0
"""Seconds a batch may take by default."""
ROUTE = "/chat/completions"
OWN_NAMES = {"url": "api_endpoint", "model": "model_name", "max_concurrent": "max_concurrent_requests"}
"""What the options of an engine are called here."""
CEILING = "max_concurrent_requests is the limit on requests at once, for all of them together"


def as_own_argument(setting: str, value: object) -> str:
    """An option of an engine as it is written here: `max_concurrent_requests=0`."""
    return as_argument(OWN_NAMES.get(setting, setting), value)


class AsyncOpenAIManager:
    """Judges batches over an OpenAI-compatible endpoint, on an event loop in a thread of its own.

        manager = AsyncOpenAIManager(model_name="deepseek-v3", api_endpoint="http://host/v1")
        task = manager.submit(samples, judge)         # returns at once; the first one starts the thread
        ...                                           # the GPU works
        print(f"{manager.progress(task):.0f}%")
        verdicts = manager.get_results(task)          # in order; what is missing after the limit says so
        manager.shutdown()                            # or use it as a context manager

    A thin front: `engine` is the Engine behind it, with everything else an Engine can do. Equal requests are
    sent once, good verdicts come from the cache ever after, and failures are verdicts without a score.
    """

    def __init__(
        self,
        api_key: Secret | str | None = None,
        model_name: str = "deepseek-v3",
        api_endpoint: str | None = None,
        max_concurrent_requests: int | Unset | None = UNSET,
        *,
        num_async_workers: int | None = None,
        cache: Cache | str | os.PathLike[str] | Unset | None = UNSET,
        observers: Sequence[Observer | str] = (),
    ) -> None:
        """Nothing is started before the first batch.

        Args:
            api_key: The endpoint's key; left out: $OPENAI_API_KEY.
            model_name: The model to ask for.
            api_endpoint: Like https://host/v1; left out: $OPENAI_BASE_URL.
            max_concurrent_requests: Calls at once, never more; None: adaptive concurrency alone.
            num_async_workers: Changes nothing: one event loop holds every request, and needs no workers.
            cache: As for `Engine`.
            observers: As for `Engine`.

        Raises:
            ConfigError: there is no endpoint, or a value makes no sense.
        """
        check_value("api_endpoint", api_endpoint, str | None)
        if num_async_workers is not None:
            warn_unneeded("num_async_workers", CEILING)
        with spelling(as_own_argument):
            self.engine = Engine(
                api_endpoint.rstrip("/").removesuffix(ROUTE) if api_endpoint else None,
                model=model_name,
                api_key=api_key,
                max_concurrent=max_concurrent_requests,
                cache=cache,
                observers=observers,
            )

    def submit(self, samples: Iterable[Sample], judge: Judge) -> Pending:
        """Hand a batch over and return at once."""
        return self.engine.submit(samples, judge)

    def progress(self, task: Pending) -> float:
        """How much of a batch is done, in percent."""
        return 100.0 * (1 - task.remaining / len(task)) if len(task) else 100.0

    def get_results(self, task: Pending, timeout: float | None = TIME_LIMIT) -> list[Verdict]:
        """Every verdict of a batch, in order; after `timeout` seconds the missing ones say `deadline`."""
        return task.result(timeout)

    def shutdown(self) -> None:
        """Store what is finished and free thread and connections. Safe to call twice."""
        self.engine.close()

    shutdown_workers = shutdown

    def __enter__(self) -> AsyncOpenAIManager:
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()


class AsyncOpenAIWorker(AsyncOpenAIManager):
    """An AsyncOpenAIManager under the name of a worker. One is enough: it holds every request at once."""

    def __init__(self, *args: Any, **options: Any) -> None:
        warn_unneeded("AsyncOpenAIWorker", f"make one AsyncOpenAIManager in its place; {CEILING}")
        super().__init__(*args, **options)
