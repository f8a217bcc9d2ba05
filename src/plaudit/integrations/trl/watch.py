"""When so many verdicts are missing that training should stop.

Pure. A batch of eight with two failures is no outage. So a batch smaller than WINDOW rows is counted together
with those before it, and rows that have not come yet count as fine. A judge that has never given a verdict
is stopped at once.
"""

from __future__ import annotations

from collections import deque

WINDOW = 200
"""Rows over which failures are counted; all of a batch, where it has more."""
FIRST_ROWS = 8
"""So many failures before the first verdict are a judge that does not work."""


class Watch:
    """Counts failures over the last rows."""

    def __init__(self, max_failure_rate: float | None) -> None:
        self._rate = max_failure_rate
        self._last: deque[tuple[int, int]] = deque()  # (rows, failed) of each batch
        self._has_worked = False

    def complaint(self, *, rows: int, failed: int, judged: int) -> str:
        """Count a batch; what is wrong if it is one too many, else nothing.

        judged   rows on which the judge itself gave a verdict: empty ones are settled by rule
        """
        self._last.append((rows, failed))
        self._has_worked |= judged > 0
        total = sum(batch for batch, _ in self._last)
        while total - self._last[0][0] >= WINDOW:
            total -= self._last.popleft()[0]
        missing = sum(batch for _, batch in self._last)
        if self._rate is None:
            return ""
        if not self._has_worked and missing >= FIRST_ROWS and self._rate < 1.0:
            return f"the judge has given no verdict at all, on {total} completions"
        if missing > self._rate * max(total, WINDOW):
            return (
                f"{missing} of the last {total} completions have no verdict, "
                f"more than {self._rate:.0%} of {max(total, WINDOW)}"
            )
        return ""
