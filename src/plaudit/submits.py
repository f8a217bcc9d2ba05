"""What every engine can do, once it can submit: wait for a batch, from a thread or from an event loop."""

from __future__ import annotations

import asyncio
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable

from plaudit.errors import ConfigError
from plaudit.judges.base import Judge, Panel
from plaudit.pending import Pending
from plaudit.types import Sample, Verdict


class Submits(ABC):
    """Takes batches of samples and gives a verdict for each."""

    @abstractmethod
    def submit(
        self, samples: Iterable[Sample], judge: Judge | Panel, *, deadline: float | None = None
    ) -> Pending:
        """Hand samples over and return at once. `deadline`: seconds from now, after which none is missing."""

    def score(
        self, samples: Iterable[Sample], judge: Judge | Panel, *, deadline: float | None = None
    ) -> list[Verdict]:
        """Judge samples and wait for all their verdicts, in order. Ctrl-C calls the rest off."""
        pending = self.submit(samples, judge, deadline=deadline)
        try:
            return pending.result()
        except BaseException:
            pending.cancel()
            raise

    async def ascore(
        self, samples: Iterable[Sample], judge: Judge | Panel, *, deadline: float | None = None
    ) -> list[Verdict]:
        """The same for callers with an event loop of their own, which stays free meanwhile."""
        pending = self.submit(samples, judge, deadline=deadline)
        try:
            return await pending
        except asyncio.CancelledError:
            pending.cancel()
            raise


def checked_deadline(deadline: float | None) -> float | None:
    """The deadline, if it lies ahead; None where there is none."""
    if deadline is not None and not deadline > 0:
        raise ConfigError(
            "has passed already; give seconds from now, above 0", setting="deadline", value=deadline
        )
    return None if deadline == math.inf else deadline
