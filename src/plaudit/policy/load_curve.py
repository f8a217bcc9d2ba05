"""How long calls take the more of them are under way, and where that begins to cost replies.

Pure: no clock, no I/O. Up to some load, calls take as long as if they were alone; past it, twice the load
makes them take twice as long (they queue) or longer (the server thrashes). Where the line bends there are the
most replies a second. Calls of many loads are put together to find it, each compared with calls of its own
length.
"""

from __future__ import annotations

import math
import statistics
from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

PER_DOUBLING = 4
"""Loads that are told apart between one load and twice as much."""
FEWEST, MOST = 4, 64
"""Calls of one load with which it counts, and that are remembered."""
OUTLIER = 4.0
"""How many times as long as usual a call may seem to take: one that hung says nothing of length."""
QUICK = 0.25
"""Share of the calls that are quicker than those by which a load is judged: past the bend all calls take
longer, but calls of another kind, or a few that hang, change only the slower ones."""
LIKELY_SLOPE, SLOPE_SPREAD = 1.6, 0.6
LEAST_SLOPE, MOST_SLOPE, GENTLE = 1.0, 3.0, 0.4
"""How latency grows with load past the bend, both as logarithms: 1 for a queue, more where it thrashes; and
the least where calls share what the server does in each of its steps."""
FLAT_PART = 1.6
"""How many times the least load there must be that costs nothing, to believe that the line has a bend."""
LONGER = 1.5
"""How many times as long replies under one load may be as those under another, to be compared with them."""
MODEL_ERROR = 0.06
"""How far off such a line may be at the best, as a share of the latency."""
GRID, EDGE = 0.06, 0.12
"""Steps in which the bend is looked for, and how near to the last load it counts as past all of them."""


class _Call(NamedTuple):
    load: float
    seconds: float
    tokens: int


@dataclass(frozen=True, slots=True)
class Bend:
    """Where more calls stop to bring more replies a second."""

    load: float
    is_above: float
    """How likely it is that it lies above all loads seen ..."""
    is_below: float
    """... and below all of them."""
    lowest: float
    highest: float
    slope: float
    """How latency grows past it, both as logarithms: with 1, more calls bring no less."""


class LoadCurve:
    """Latency by load. Tell it of every reply; ask for the `bend`."""

    def __init__(self) -> None:
        self._calls: dict[int, deque[_Call]] = {}

    def add(self, *, load: float, seconds: float, tokens: int) -> None:
        if load < 1.0 or seconds <= 0.0:
            return
        index = round(PER_DOUBLING * math.log2(load))
        calls = self._calls.get(index)
        if calls is None:
            calls = self._calls[index] = deque(maxlen=MOST)
        calls.append(_Call(load, seconds, tokens))

    def clear(self) -> None:
        self._calls.clear()

    def bend(self, *, least_slope: float = LEAST_SLOPE) -> Bend | None:
        """Where the line bends; None while too little is known."""
        points = self._points()
        if len(points) < 2:
            return None
        lowest, highest = points[0][0], points[-1][0]
        latencies = [latency for _, latency, _ in points]
        if max(latencies) - min(latencies) > MOST_SLOPE * (highest - lowest) + 1.0:
            return None  # no load does that: calls of quite different kinds came back
        steps = max(1, math.ceil((highest - lowest) / GRID))
        at = [lowest + (highest - lowest) * i / steps for i in range(steps + 1)]
        fits = [_fit(points, x, least_slope) for x in at]
        least = min(misfit for misfit, _ in fits)
        weights = [math.exp(0.5 * (least - misfit)) for misfit, _ in fits]
        total = sum(weights)
        mean = sum(x * weight for x, weight in zip(at, weights, strict=True)) / total
        return Bend(
            load=math.exp(mean),
            is_above=sum(w for x, w in zip(at, weights, strict=True) if x > highest - EDGE) / total,
            is_below=sum(w for x, w in zip(at, weights, strict=True) if x < lowest + EDGE) / total,
            lowest=math.exp(lowest),
            highest=math.exp(highest),
            slope=sum(slope * weight for (_, slope), weight in zip(fits, weights, strict=True)) / total,
        )

    def shared_slope(self) -> float | None:
        """The slope, where calls take longer with every one more, and no load is seen that costs nothing."""
        bend = self.bend(least_slope=GENTLE)
        return bend.slope if bend is not None and bend.load < FLAT_PART * bend.lowest else None

    def _known(self) -> list[deque[_Call]]:
        return [calls for _, calls in sorted(self._calls.items()) if len(calls) >= FEWEST]

    def _points(self) -> list[tuple[float, float, float]]:
        """For each load: its logarithm, that of the latency of calls of average length, and its precision."""
        known = self._known()
        if not known:
            return []
        slope = _by_length(known)
        lengths = [statistics.fmean(call.tokens for call in calls) for calls in known]
        if not slope and max(lengths) > LONGER * min(lengths):
            return []  # calls of quite different lengths came back, and what length costs is not known
        spread = _spread(known, slope)
        points = []
        for calls in known:
            load = statistics.fmean(call.load for call in calls)
            quick = _adjusted(calls, slope)[int(QUICK * len(calls))]
            precision = 1.0 / (2.0 * spread**2 / len(calls) + MODEL_ERROR**2)
            points.append((math.log(load), quick, precision))
        return points


def _by_length(known: list[deque[_Call]]) -> float:
    """How much longer calls take with each token, as a share of what calls without any would take."""
    variance = covariance = intercepts = 0.0
    for calls in known:
        longest = OUTLIER * statistics.median(call.seconds for call in calls)
        seconds = [min(call.seconds, longest) for call in calls]
        mean, mean_tokens = statistics.fmean(seconds), statistics.fmean(call.tokens for call in calls)
        for call, taken in zip(calls, seconds, strict=True):
            variance += (call.tokens - mean_tokens) ** 2
            covariance += (call.tokens - mean_tokens) * (taken / mean - 1.0)
        intercepts += len(calls) * mean_tokens
    if variance <= 0.0 or covariance <= 0.0:
        return 0.0
    slope = covariance / variance  # of the average call's latency
    average = intercepts / sum(map(len, known))
    return slope / max(0.05, 1.0 - slope * average)


def _adjusted(calls: deque[_Call], slope: float) -> list[float]:
    """The logarithms of what the calls would have taken without their length, the quickest first."""
    return sorted(math.log(call.seconds / (1.0 + slope * call.tokens)) for call in calls)


def _spread(known: list[deque[_Call]], slope: float) -> float:
    """How much calls of one load and length differ, among the quicker half."""
    total = 0.0
    for calls in known:
        adjusted = _adjusted(calls, slope)
        total += len(calls) * (adjusted[len(calls) // 2] - adjusted[int(QUICK * len(calls))])
    return total / sum(map(len, known)) / 0.674


def _fit(points: list[tuple[float, float, float]], bend: float, least_slope: float) -> tuple[float, float]:
    """The line that is flat up to the bend and then rises as queues and thrashing servers do.

    How badly it fits, and its slope.
    """
    w = wh = whh = wy = why = 0.0
    for x, y, precision in points:
        h = max(0.0, x - bend)
        w += precision
        wh += precision * h
        whh += precision * h * h
        wy += precision * y
        why += precision * h * y
    prior = 1.0 / SLOPE_SPREAD**2
    slope = (why - wh * wy / w + prior * LIKELY_SLOPE) / (whh - wh * wh / w + prior)
    slope = min(max(slope, least_slope), MOST_SLOPE)
    flat = (wy - slope * wh) / w
    misfit = prior * (slope - LIKELY_SLOPE) ** 2
    for x, y, precision in points:
        misfit += precision * (y - flat - slope * max(0.0, x - bend)) ** 2
    return misfit, slope
