"""When a slow call gets a twin: past what nearly every call takes, where a slot is idle; or far past it.

The twin asks the same question of the same model, so either answer is honest; but "first finished wins"
favours short answers where lengths differ. Twins are therefore sent only to calls that are clear outliers. A
call far past all others hangs: it gets its twin whatever else waits, or the batch would wait for its timeout.
"""

from __future__ import annotations

from plaudit.core.histogram import LatencyHistogram

MIN_CALLS = 20
OUTLIER = 1.5
YOUNGEST = 0.1
"""Seconds; a call younger than that is no outlier, however fast the others are."""
HUNG = 4.0
"""How many times as long as nearly all others a call takes that hangs."""
HUNG_OF_FEW = 10.0
"""The same where few others are known, and as many times the longest of them."""
YOUNGEST_HUNG = 1.0
MOST_TWINS = 3
"""Twins of one call: those that hang as well get another, after a longer time each."""


def hedge_age(latencies: LatencyHistogram) -> float | None:
    """Seconds after which a call still under way is an outlier; None while too little is known."""
    nearly_all = latencies.quantile(0.95) if len(latencies) >= MIN_CALLS else None
    return None if nearly_all is None else max(OUTLIER * nearly_all, YOUNGEST)


def hung_age(latencies: LatencyHistogram) -> float | None:
    """Seconds after which a call still under way hangs; None while nothing is known."""
    if len(latencies) >= MIN_CALLS:
        nearly_all = latencies.quantile(0.95)
        return None if nearly_all is None else max(HUNG * nearly_all, YOUNGEST_HUNG)
    longest = latencies.quantile(1.0)
    return None if longest is None else max(HUNG_OF_FEW * longest, YOUNGEST_HUNG)
