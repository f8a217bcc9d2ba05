"""Progress as log lines: how much of a batch is judged, in percent, while somebody waits for it."""

from __future__ import annotations

import logging

from plaudit.events import BatchFinished, BatchStarted, Event, VerdictsReady

EVERY = 5.0
"""Seconds between two lines: a batch that is done sooner has its last line only."""


class PercentLog:
    """An observer that logs at INFO, `plaudit` by default. Counts all batches under way together."""

    def __init__(self, logger: logging.Logger | None = None, *, every: float = EVERY) -> None:
        self._logger = logger or logging.getLogger("plaudit")
        self._every = every
        self._batches: dict[int, int] = {}
        self._total = self._done = 0
        self._said_at = 0.0

    def __call__(self, event: Event) -> None:
        match event:
            case BatchStarted() if event.samples:
                if not self._batches:
                    self._total = self._done = 0
                    self._said_at = event.at
                self._batches[event.batch] = event.samples
                self._total += event.samples
            case VerdictsReady():
                self._done += len(event.verdicts)
                if event.at - self._said_at >= self._every and self._done < self._total:
                    self._said_at = event.at
                    percent = 100 * self._done // self._total
                    self._logger.info(
                        "judged %s of %s (%d%%)", f"{self._done:,}", f"{self._total:,}", percent
                    )
            case BatchFinished():
                self._batches.pop(event.batch, None)
            case _:
                pass
