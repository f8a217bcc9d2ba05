"""Many scores at a glance: how they spread, and the worst and the best with their reasons."""

from __future__ import annotations

import heapq
from array import array
from bisect import bisect_right
from dataclasses import dataclass

from plaudit.report.svg import ticks

EXTREMES = 3
"""How many of the worst and of the best are kept."""


@dataclass(frozen=True, slots=True, order=True)
class Example:
    """A scored line. Of equal scores, the first line comes first."""

    score: float
    number: int
    response: str = ""
    reason: str = ""


class ScoreDigest:
    """Takes scores one by one; keeps eight bytes of each, and a few of the lines."""

    def __init__(self, extremes: int = EXTREMES) -> None:
        self.scores = array("d")
        self._extremes = extremes
        self._worst: list[tuple[float, int, Example]] = []
        self._best: list[tuple[float, int, Example]] = []

    def add(self, score: float, number: int, response: str = "", reason: str = "") -> None:
        """Count a line's score, and keep the line while it is one of the worst or the best."""
        self.scores.append(score)
        for heap, key in ((self._worst, -score), (self._best, score)):
            if len(heap) < self._extremes:
                heapq.heappush(heap, (key, -number, Example(score, number, response, reason)))
            elif key > heap[0][0]:
                heapq.heapreplace(heap, (key, -number, Example(score, number, response, reason)))

    @property
    def worst(self) -> list[Example]:
        return [example for _, _, example in sorted(self._worst, reverse=True)]

    @property
    def best(self) -> list[Example]:
        return [example for _, _, example in sorted(self._best, reverse=True)]

    def histogram(self) -> list[tuple[float, float, int]]:
        """Bins between round numbers: from, to, how many. The last one holds its upper end."""
        if not self.scores:
            return []
        edges = ticks(min(self.scores), max(self.scores))
        counts = [0] * (len(edges) - 1)
        for score in self.scores:
            counts[min(max(bisect_right(edges, score) - 1, 0), len(counts) - 1)] += 1
        return list(zip(edges[:-1], edges[1:], counts, strict=True))
