"""When a slow call gets a twin: past what nearly every call takes, and only where a slot is idle.

The twin asks the same question of the same model, so either answer is honest; but "first finished wins"
favours short answers where lengths differ. Twins are therefore sent only to calls that are clear outliers.
"""

from __future__ import annotations

from plaudit.core.histogram import LatencyHistogram

MIN_CALLS = 20
OUTLIER = 1.5
YOUNGEST = 0.1
"""Seconds; a call younger than that is no outlier, however fast the others are."""


def hedge_age(latencies: LatencyHistogram) -> float | None:
    """Seconds after which a call still under way is an outlier; None while too little is known."""
    nearly_all = latencies.quantile(0.95) if len(latencies) >= MIN_CALLS else None
    return None if nearly_all is None else max(OUTLIER * nearly_all, YOUNGEST)
