"""Whether the judge is down, or only some samples unlucky: how many of the last rows had no verdict."""

from __future__ import annotations

from collections import deque

WINDOW = 200
"""Rows over which the failure rate is taken."""
RECENT = 20
DOWN = 0.8
"""The judge is down when so large a share of the most recent rows fail. A judge that never takes some kinds
of rows is not down: the others are judged."""
FEWEST = 5


class Outage:
    """Remembers the last rows of this process."""

    def __init__(self, max_failure_rate: float) -> None:
        self._rate = max_failure_rate
        self._last: deque[bool] = deque(maxlen=WINDOW)
        self._recent: deque[bool] = deque(maxlen=RECENT)

    def note(self, *, failed: bool) -> None:
        """Count a row, once: asking for it again in vain says nothing new."""
        self._last.append(failed)
        self._recent.append(failed)

    @property
    def is_down(self) -> bool:
        """Whether it seems that nobody gets a verdict."""
        return sum(self._recent) >= DOWN * max(len(self._recent), FEWEST)

    @property
    def is_over(self) -> bool:
        """Whether more rows fail than may; with few rows so far, those to come count as judged."""
        return sum(self._last) > self._rate * max(len(self._last), RECENT)

    def __str__(self) -> str:
        return f"{sum(self._last)} of the last {len(self._last)} rows have no verdict"
