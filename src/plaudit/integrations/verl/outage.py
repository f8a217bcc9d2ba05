"""Whether the judge is down, or only this sample unlucky: the share of failures among the last rows."""

from __future__ import annotations

from collections import deque

WINDOW = 200
FEWEST = 20
"""With fewer rows than this the missing ones count as judged: one failure at the start is no outage."""


class Outage:
    """Remembers the last rows of this process."""

    def __init__(self, max_failure_rate: float) -> None:
        self._rate = max_failure_rate
        self._last: deque[bool] = deque(maxlen=WINDOW)

    def note(self, *, failed: bool) -> None:
        """Count one row that was asked about."""
        self._last.append(failed)

    @property
    def failures(self) -> int:
        """Rows without a verdict among the last ones."""
        return sum(self._last)

    @property
    def rows(self) -> int:
        return len(self._last)

    @property
    def is_on(self) -> bool:
        """Whether more rows fail than may."""
        return self.failures > self._rate * max(len(self._last), FEWEST)
