"""What stands out in a training, in sentences: for somebody who does not know where to look.

Pure: it reads the curves of an overview. Each finding names the step from which it holds; what has always
been so, and what is only noise, is left out.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

FEWEST = 8
"""Steps of a training before anything is said about its course."""
GAP = 0.15
"""By how much scores must have moved away from what the samples deserve."""
GROWTH = 1.5
"""How many times as long responses must have become."""
CORRELATION = 0.2
"""Of length and score within a step: from there on growth is remarkable."""
NOISES = 6
"""How far above its noise a curve must have risen: of a hundred that only fluctuate, one may."""
MOST_FLAT = 0.5
MOST_MISSING = 0.2

Values = Sequence[float | None]


class Finding(NamedTuple):
    """Something to look at."""

    about: str
    """The panel that shows it."""
    since: float
    """The step from which it holds."""
    text: str


def findings(trend: dict[str, Any]) -> list[Finding]:
    """What stands out in the curves of an overview, the most serious first."""
    columns = trend["columns"]
    if trend["by"] != "step" or len(columns) < FEWEST:
        return []
    found = (_gamed(columns), _canaries(columns), _flat(columns), _longer(columns), _missing(columns))
    return [one for one in found if one is not None]


def _gamed(columns: Sequence[dict[str, Any]]) -> Finding | None:
    rise = _rise([one["gold_gap"] for one in columns])
    if rise is None or rise.high - rise.low < GAP or rise.high < GAP:
        return None
    first = columns[rise.start]
    last = next(one for one in reversed(columns) if one["gold_gap"] is not None)
    return Finding(
        "sound",
        first["x"],
        f"From about step {first['x']:.0f} on, the judge gives more and more than the samples deserve: at "
        f"step {last['x']:.0f} the mean score is {last['mean']:.2f}, and the true score (gold) is "
        f"{last['gold']:.2f}. The policy is probably gaming the judge.",
    )


def _canaries(columns: Sequence[dict[str, Any]]) -> Finding | None:
    tested = [one for one in columns if one["canaries"]["seen"]]
    passed = [one for one in tested if one["canaries"]["passed"]]
    if not passed:
        return None
    since = passed[0]["x"]
    counts = [one["canaries"] for one in tested if one["x"] >= since]
    return Finding(
        "sound",
        since,
        f"From about step {since:.0f} on, {sum(one['passed'] for one in counts):,} of "
        f"{sum(one['seen'] for one in counts):,} wrong answers that test the judge (canaries) passed.",
    )


def _flat(columns: Sequence[dict[str, Any]]) -> Finding | None:
    shares = _smooth([one["flat"] / one["groups"] if one["groups"] else None for one in columns])
    start = _since(shares, MOST_FLAT)
    if start is None:
        return None
    first = columns[start]
    held = columns[start:]
    share = sum(one["flat"] for one in held) / sum(one["groups"] for one in held)
    return Finding(
        "alive",
        first["x"],
        f"From about step {first['x']:.0f} on, {share:.0%} of the groups have one score for all their "
        "responses: they teach the policy nothing.",
    )


def _longer(columns: Sequence[dict[str, Any]]) -> Finding | None:
    rise = _rise([one["chars"] for one in columns])
    if rise is None or rise.high < GROWTH * max(rise.low, 1.0):
        return None
    since = columns[rise.start :]
    related = [one["length_correlation"] for one in since if one["length_correlation"] is not None]
    if not related or statistics.fmean(related) < CORRELATION:
        return None
    return Finding(
        "length",
        since[0]["x"],
        f"From about step {since[0]['x']:.0f} on, responses grow from {rise.low:,.0f} to "
        f"{rise.high:,.0f} characters, and the longer ones of a step score higher (correlation "
        f"{statistics.fmean(related):.2f}): is it length that is rewarded?",
    )


def _missing(columns: Sequence[dict[str, Any]]) -> Finding | None:
    start = _since(_smooth([one["missing"] / one["records"] for one in columns]), MOST_MISSING)
    if start is None:
        return None
    held = columns[start:]
    share = sum(one["missing"] for one in held) / sum(one["records"] for one in held)
    return Finding(
        "lost",
        held[0]["x"],
        f"From about step {held[0]['x']:.0f} on, {share:.0%} of the samples get no score.",
    )


# -- curves -----------------------------------------------------------------------------------------------


class _Rise(NamedTuple):
    start: int
    """The last place before the curve leaves its lowest level for good."""
    low: float
    high: float
    """Its level at the end."""


def _rise(values: Values) -> _Rise | None:
    """Where a curve begins to rise to the level that it has at its end; None where noise explains that."""
    known = [(place, value) for place, value in enumerate(values) if value is not None]
    if len(known) < FEWEST:
        return None
    raw = [value for _, value in known]
    width = max(3, len(raw) // 10)
    smooth = [statistics.fmean(raw[max(n - width // 2, 0) : n + width // 2 + 1]) for n in range(len(raw))]
    low, high = min(smooth), statistics.fmean(raw[-width:])
    noise = statistics.median(abs(b - a) for a, b in pairwise(raw)) / width**0.5
    if high - low <= NOISES * noise:
        return None
    reach = max(2 * noise, 0.1 * (high - low))
    start = max(n for n, value in enumerate(smooth) if value <= low + reach)
    return _Rise(known[start][0], low, high) if start < len(raw) - 1 else None


def _since(values: Values, bound: float) -> int | None:
    """From where on a curve stays above a bound until its end; None where it does not for three steps."""
    start, held = None, 0
    for place in range(len(values) - 1, -1, -1):
        value = values[place]
        if value is None:
            continue
        if value <= bound:
            break
        start, held = place, held + 1
    return start if held >= 3 else None


def _smooth(values: Values) -> list[float | None]:
    """The median of each value and its neighbours; gaps stay."""
    found: list[float | None] = []
    for place, value in enumerate(values):
        near = [one for one in values[max(place - 1, 0) : place + 2] if one is not None]
        found.append(None if value is None else statistics.median(near))
    return found
