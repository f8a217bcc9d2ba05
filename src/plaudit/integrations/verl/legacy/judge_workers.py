"""The judge behind a legacy manager: started by the first batch, in one of two modes, stopped with it.

use_async_io=True     `send` returns at once; the calls run on a thread of the engine's own.
use_async_io=False    one call at a time, and `send` comes back with all of them done. For debugging.

Calls that fail are the engine's affair in both: it retries them, and what still has no verdict says why. The
one trouble left is an engine whose thread is gone or does not answer, as in a forked child; then the batch is
judged again the second way, and verdicts that were stored are not asked for again.
"""

from __future__ import annotations

import functools
import logging
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from plaudit.engine import Engine
from plaudit.errors import EngineClosed
from plaudit.events import BatchFinished, BatchStarted, Event, VerdictsReady
from plaudit.judges.base import Judge, Panel
from plaudit.judges.check import check_judge
from plaudit.scoring import AskedRows
from plaudit.setup.preflight import EARLY_SECONDS, check_answers, check_engine
from plaudit.types import Sample, Verdict

log = logging.getLogger("plaudit")

OpenEngine = Callable[[int | None], Engine]
"""Opens an engine that has at most so many calls under way at once; None: as many as it likes."""
EVERY = 5.0
"""Seconds between two lines: a batch that is done sooner has its last line only."""


class JudgeWorkers:
    """Judges batches. Pickled, it is a plan for the same: the other process starts its own."""

    def __init__(
        self,
        open_engine: OpenEngine,
        judge: Judge | Panel,
        *,
        time_limit: float,
        use_async_io: bool = True,
        max_concurrent: int | None = None,
    ) -> None:
        check_judge(judge, for_rewards=True)
        self.judge = judge
        self._open = open_engine
        self._time_limit = time_limit
        self._is_async = use_async_io
        self._max_concurrent = max_concurrent if use_async_io else 1
        self._engine: Engine | None = self._open(self._max_concurrent)  # says now what is wrong
        check_engine(self._engine, judge, seconds=EARLY_SECONDS)

    def start(self) -> None:
        """Start the engine's thread, which the first batch does otherwise. Safe to call twice."""
        self._running().submit([], self.judge)

    def shutdown(self) -> None:
        """Store what is finished, call off the rest, free thread and connections. Safe to call twice."""
        if self._engine is not None:
            self._engine.close()
            self._engine = None

    def send(self, samples: Sequence[Sample]) -> Callable[[], list[Verdict]]:
        """Send samples off. What is given back waits for every verdict, in order, scores from 0 to 1.

        What is missing at the time limit says `deadline`.
        """
        asked = AskedRows(self._running(), self.judge, samples, deadline=self._time_limit)

        @functools.cache
        def wait() -> list[Verdict]:
            try:
                found = asked.result(self._time_limit)
            except EngineClosed as trouble:
                log.warning("%s; judging the batch again, one request at a time", trouble)
                self._engine = None  # it is lost; the next batch opens another
                with self._open(1) as engine:
                    found = AskedRows(engine, self.judge, samples, deadline=self._time_limit).result()
            except BaseException:  # Ctrl-C
                asked.cancel()
                raise
            verdicts = list(found.values())
            check_answers(verdicts)
            _report(verdicts)
            return verdicts

        if not self._is_async:
            wait()
        return wait

    def _running(self) -> Engine:
        if self._engine is None:
            self._engine = self._open(self._max_concurrent)
        return self._engine

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_engine": None}


def _report(verdicts: Sequence[Verdict]) -> None:
    failed = [verdict for verdict in verdicts if not verdict.is_valid]
    if failed:
        by_status = ", ".join(
            f"{n} {status}" for status, n in Counter(v.status.value for v in failed).items()
        )
        error, _ = Counter(verdict.error for verdict in failed).most_common(1)[0]
        log.warning(
            "%d of %d responses have no verdict (%s): %s", len(failed), len(verdicts), by_status, error
        )


class PercentLog:
    """Progress as log lines: an observer that says at INFO how much is judged, all batches together."""

    def __init__(self, *, every: float = EVERY) -> None:
        self._every = every
        self._batches: set[int] = set()
        self._total = self._done = 0
        self._said_at = 0.0

    def __call__(self, event: Event) -> None:
        match event:
            case BatchStarted() if event.samples:
                if not self._batches:
                    self._total = self._done = 0
                    self._said_at = event.at
                self._batches.add(event.batch)
                self._total += event.samples
            case VerdictsReady():
                self._done += len(event.verdicts)
                if event.at - self._said_at >= self._every and self._done < self._total:
                    self._said_at = event.at
                    percent = 100 * self._done // self._total
                    log.info("judged %s of %s (%d%%)", f"{self._done:,}", f"{self._total:,}", percent)
            case BatchFinished():
                self._batches.discard(event.batch)
