"""A stand-in for one missing score, for callers that take no gap and show no group: the nearest mean known.

Only a whole group can make a failed row's advantage exactly zero. Whoever is asked for one sample at a time
remembers what the others got, and says openly that the number is a stand-in.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, deque

from plaudit.rewards.base import Group

GROUPS_KEPT = 10_000
WINDOW = 200


class Neutral:
    """Means of groups and data sources, and how many of the last scores were missing. For any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._groups: OrderedDict[Group, tuple[int, float]] = OrderedDict()
        self._sources: dict[str, tuple[int, float]] = {}
        self._last: deque[bool] = deque(maxlen=WINDOW)

    def add(self, score: float, *, group: Group, source: str) -> None:
        """Remember a score that is there."""
        with self._lock:
            self._last.append(False)
            self._sources[source] = _with(self._sources.get(source), score)
            if group is not None:
                self._groups[group] = _with(self._groups.pop(group, None), score)
                if len(self._groups) > GROUPS_KEPT:
                    self._groups.popitem(last=False)

    def miss(self) -> int:
        """Remember that a score is missing; how many of the last WINDOW were."""
        with self._lock:
            self._last.append(True)
            return sum(self._last)

    def value(self, *, group: Group, source: str) -> float:
        """The mean of the group so far, else of the data source, else 0.5, the middle of all scales."""
        with self._lock:
            count, total = self._groups.get(group) or self._sources.get(source) or (2, 1.0)
        return total / count


def _with(known: tuple[int, float] | None, score: float) -> tuple[int, float]:
    count, total = known or (0, 0.0)
    return count + 1, total + score
