"""When a slow call gets a twin: past what nearly every call takes, where a slot is idle; or far past it.

The twin asks the same question of the same model, so either answer is honest; but "first finished wins"
favours short answers where lengths differ. Twins are therefore sent only to calls that are clear outliers. A
call far past all others hangs: it gets its twin whatever else waits, or the batch would wait for its timeout.

Where calls queue at the server, all of them take long, and their age shows no outlier. But then they come
back in the order in which they were sent, more or less: one that was overtaken, and is later than nearly all
that were, is an outlier at any age.
"""

from __future__ import annotations

from plaudit.policy.histogram import LatencyHistogram

MIN_CALLS = 20
NEARLY_ALL = 0.95
OUTLIER = 1.5
YOUNGEST = 0.1
"""Seconds; a call younger than that is no outlier, however fast the others are."""
HUNG = 4.0
"""How many times as long as nearly all others a call takes that hangs."""
HUNG_OF_FEW = 10.0
"""The same, and times the longest of the others, where but one is known, or hardly any of those under way."""
YOUNGEST_HUNG = 1.0
MOST_TWINS = 3
"""Twins of one call: those that hang as well get another, after a longer time each."""


def hedge_age(latencies: LatencyHistogram, *, under_way: int = 0) -> float | None:
    """Seconds after which a call still under way is an outlier; None while too little is known.

    The `under_way` calls count as longer than all that came back: of calls sent together the short ones come
    first, and against those alone every other one would be an outlier.
    """
    nearly_all = _nearly_all(latencies, under_way) if len(latencies) >= MIN_CALLS else None
    return None if nearly_all is None else max(OUTLIER * nearly_all, YOUNGEST)


def hung_age(latencies: LatencyHistogram, *, under_way: int = 0) -> float | None:
    """Seconds after which a call still under way hangs; None while nothing is known."""
    nearly_all = _nearly_all(latencies, under_way) if len(latencies) >= MIN_CALLS else None
    if nearly_all is not None:
        return max(HUNG * nearly_all, YOUNGEST_HUNG)
    longest = latencies.quantile(1.0)
    if longest is None:
        return None
    unknown = max(1.0 / len(latencies), under_way / (len(latencies) + under_way))
    return max((HUNG + (HUNG_OF_FEW - HUNG) * unknown) * longest, YOUNGEST_HUNG)


class Overtaken:
    """The calls under way that one sent later has overtaken, and how late such calls come back."""

    __slots__ = ("_in_order", "_lateness", "hung_age", "outlier_age", "since")

    def __init__(self) -> None:
        self.since: dict[int, float] = {}
        """When each was overtaken, by number, in the order of sending."""
        self.outlier_age: float | None = None
        """Seconds since it was overtaken after which a call is an outlier; None while too little is known."""
        self.hung_age: float | None = None
        """The same for one that hangs."""
        self._in_order: dict[int, None] = {}
        self._lateness = LatencyHistogram()

    def on_send(self, number: int) -> None:
        self._in_order[number] = None

    def on_back(self, number: int, latencies: LatencyHistogram, *, now: float, is_reply: bool) -> None:
        """A call is over; a reply has overtaken those under way that left before it."""
        since = self.since.pop(number, now)
        self._in_order.pop(number, None)
        if not is_reply:
            return
        self._lateness.add(now - since)
        while self._in_order and (oldest := next(iter(self._in_order))) < number:
            del self._in_order[oldest]
            self.since[oldest] = now
        if self._lateness.size % 16 == 0:
            self.learn(latencies)

    def learn(self, latencies: LatencyHistogram) -> None:
        """Say anew what is late. Calls alike differ, so the fastest ones, too, count for what is usual."""
        count = len(self._lateness)
        late = _nearly_all(self._lateness, len(self.since)) if count >= MIN_CALLS else None
        if late is None:
            self.outlier_age = self.hung_age = None
            return
        fastest = latencies.quantile(1.0 - NEARLY_ALL) or 0.0
        self.outlier_age = max(OUTLIER * late, (OUTLIER - 1.0) * fastest, YOUNGEST)
        self.hung_age = max(HUNG * late, (HUNG - 1.0) * fastest, YOUNGEST_HUNG)


def _nearly_all(latencies: LatencyHistogram, under_way: int) -> float | None:
    share = NEARLY_ALL * (len(latencies) + under_way) / len(latencies)
    return latencies.quantile(share) if share <= 1.0 else None
