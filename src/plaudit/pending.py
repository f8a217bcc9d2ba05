"""A batch in flight: ask whether it is done, stream its verdicts, collect them, or cancel it."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from typing import Any, Literal, overload

from plaudit._loop_thread import LoopOwner
from plaudit.errors import ConfigError, EngineClosed
from plaudit.events import Summary
from plaudit.report.verdict_table import VerdictList, verdicts_html
from plaudit.scheduling.alarm import CATCH_UP, LATE
from plaudit.scheduling.batch import Batch
from plaudit.types import Verdict

Grouped = tuple[str | None, list[tuple[int, Verdict]]]
GRACE = 5.0
"""Seconds the engine is given to mark what is missing, once a caller's time is up."""


class Pending:
    """A batch in flight, as returned by `submit`. Threads may share it."""

    def __init__(self, batch: Batch, worker: LoopOwner[Any]) -> None:
        self._batch = batch
        self._worker = worker

    def __len__(self) -> int:
        return len(self._batch.samples)

    def result(self, timeout: float | None = None) -> list[Verdict]:
        """Wait for every verdict, in the order of the samples.

        Args:
            timeout: Seconds to wait; unfinished samples then get status `deadline`. Replies that come later
                still fill the cache, so that asking again is cheap. None: no limit.

        Raises:
            EngineClosed: the verdicts cannot arrive in this process, or on this thread.
        """
        self._check_can_wait()
        if timeout is not None:
            timeout = min(timeout, threading.TIMEOUT_MAX)
        if not self._wait_in_time(timeout):
            self._tell(self._worker.work.expire)
            if not self._batch.wait(GRACE):
                raise EngineClosed("the engine's thread does not respond; is an observer blocking it?")
        return self._verdicts()

    @overload
    def as_completed(self, by: Literal["sample"] = "sample") -> Iterator[tuple[int, Verdict]]: ...
    @overload
    def as_completed(self, by: Literal["group"]) -> Iterator[Grouped]: ...

    def as_completed(self, by: str = "sample") -> Iterator[tuple[int, Verdict]] | Iterator[Grouped]:
        """Verdicts as they become final.

        Args:
            by: `sample`, or `group` for whole groups of samples.

        Returns:
            An iterator over (index, verdict); by group: over (group, [(index, verdict), ...]).

        Raises:
            ConfigError: `by` is something else.
            EngineClosed: the verdicts cannot arrive in this process, or on this thread.
        """
        if by not in ("sample", "group"):
            raise ConfigError("is unknown; use 'sample' or 'group'", setting="by", value=by)
        self._check_can_wait()
        return self._by_sample() if by == "sample" else self._by_group()

    def done(self) -> bool:
        """Whether every sample has its verdict."""
        return not self._batch.remaining

    def cancel(self, *, abort: bool = False) -> None:
        """Stop sending requests for this batch; unfinished samples fail as `cancelled`.

        Args:
            abort: Whether calls in flight are aborted, too, which frees their slots at once. Otherwise
                their replies still fill the cache. Calls that another batch waits for go on.
        """
        if self._batch.remaining:
            self._tell(self._worker.work.cancel, abort=abort)

    @property
    def remaining(self) -> int:
        """The number of samples without a verdict yet."""
        return self._batch.remaining

    @property
    def summary(self) -> Summary:
        """Statistics of the batch so far."""
        return self._batch.summary()

    def __await__(self) -> Generator[Any, None, list[Verdict]]:
        return self._wait().__await__()

    async def _wait(self) -> list[Verdict]:
        self._check_can_arrive()
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()

        def end() -> None:
            if not done.done():
                done.set_result(None)

        def wake() -> None:
            with contextlib.suppress(RuntimeError):  # that loop is closed, so none waits on it
                loop.call_soon_threadsafe(end)

        self._batch.when_done(end if self._worker.thread.is_current else wake)
        await done
        return self._verdicts()

    def _by_sample(self) -> Iterator[tuple[int, Verdict]]:
        for index in self._batch.fresh():
            verdict = self._batch.verdicts[index]
            assert verdict is not None
            yield index, verdict

    def _by_group(self) -> Iterator[Grouped]:
        missing = Counter(sample.group for sample in self._batch.samples)
        gathered: dict[str | None, list[tuple[int, Verdict]]] = {group: [] for group in missing}
        for index, verdict in self._by_sample():
            group = self._batch.samples[index].group
            gathered[group].append((index, verdict))
            missing[group] -= 1
            if not missing[group]:
                yield group, sorted(gathered.pop(group), key=lambda item: item[0])

    def _wait_in_time(self, timeout: float | None) -> bool:
        """Whether the batch was done in time; what came while the process was stopped counts."""
        began = time.monotonic()
        if self._batch.wait(timeout):
            return True
        is_late = timeout is not None and time.monotonic() - began > timeout + LATE
        return is_late and self._batch.wait(CATCH_UP)

    def __repr__(self) -> str:
        return f"<Pending: {self._done_of_all()}>"

    def _repr_html_(self) -> str:
        """How far it is, and its first verdicts, in a notebook."""
        return f"<p>{self._done_of_all()}</p>{verdicts_html(self._batch.verdicts)}"

    def _done_of_all(self) -> str:
        return f"{len(self) - self._batch.remaining:,} of {len(self):,} verdicts"

    def _verdicts(self) -> list[Verdict]:
        return VerdictList(verdict for verdict in self._batch.verdicts if verdict is not None)

    def _tell(self, action: Callable[..., object], **options: Any) -> None:
        """Have something done to the batch, unless the engine was closed this moment and all is done."""
        try:
            self._worker.thread.post(action, self._batch, **options)
        except EngineClosed:
            if self._batch.remaining:
                raise

    def _check_can_wait(self) -> None:
        self._check_can_arrive()
        if self._batch.remaining and self._worker.thread.is_current:
            raise EngineClosed(
                "waiting for a batch on the engine's own thread would never end; wait on another thread"
            )

    def _check_can_arrive(self) -> None:
        if self._batch.remaining and not self._worker.thread.is_alive:
            raise EngineClosed(
                "this batch belongs to the parent of this forked process; submit it again in this process"
            )
