"""Latencies of any number of calls in bounded memory, with quantiles that are right to 1%.

Each latency is counted in a bucket 2% wide; a quantile is the middle of the bucket it falls into. Histograms
of several batches or endpoints merge into one without loss. Pure: no clock, no I/O.
"""

from __future__ import annotations

import math
from bisect import insort

ERROR = 0.01
"""Relative error of a quantile, at most."""
GROWTH = (1 + ERROR) / (1 - ERROR)
SHORTEST = 1e-6
"""Seconds; anything shorter counts as zero."""
LONGEST = 1e6
"""Seconds; anything longer counts as this."""
_LOG_GROWTH = math.log(GROWTH)
_ZERO = math.floor(math.log(SHORTEST) / _LOG_GROWTH) - 1


class LatencyHistogram:
    """Counts latencies in buckets of equal ratio; at most 1,383 buckets, however much is added."""

    __slots__ = ("_counts", "_in_order", "size")

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self._in_order: list[int] = []
        """The buckets that are not empty, the shortest latency first."""
        self.size = 0
        """What `len` says, without a call."""

    def __len__(self) -> int:
        return self.size

    def add(self, seconds: float) -> None:
        """Count one latency. NaN is a bug of the caller and raises ValueError."""
        if seconds >= SHORTEST:
            index = math.ceil(math.log(min(seconds, LONGEST)) / _LOG_GROWTH)
        elif seconds < SHORTEST:
            index = _ZERO
        else:
            raise ValueError("a latency is a number of seconds, not NaN")
        if index in self._counts:
            self._counts[index] += 1
        else:
            self._counts[index] = 1
            insort(self._in_order, index)
        self.size += 1

    def quantile(self, q: float) -> float | None:
        """The latency that a share `q` (0 to 1) of all calls did not exceed; None while there are none."""
        if not 0.0 <= q <= 1.0:
            raise ValueError(f"q={q} is not a share; use 0 to 1, like 0.95")
        if not self.size:
            return None
        above = self.size - max(math.ceil(q * self.size), 1)
        index = _ZERO
        for index in reversed(self._in_order):  # most who ask want one of the longest
            above -= self._counts[index]
            if above < 0:
                break
        return 0.0 if index == _ZERO else 2.0 * GROWTH**index / (GROWTH + 1.0)

    def merge(self, other: LatencyHistogram) -> None:
        """Add every latency of `other`, which stays as it is."""
        for index, count in list(other._counts.items()):
            self._counts[index] = self._counts.get(index, 0) + count
        self._in_order = sorted(self._counts)
        self.size += other.size
