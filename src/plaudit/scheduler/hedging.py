"""Twins for calls that take too long: sent into idle slots, once nothing else waits to be sent."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from plaudit.core.balance import is_much_faster
from plaudit.core.hedge import hedge_age
from plaudit.core.retry import RetryBudget
from plaudit.scheduler.admission import Admission
from plaudit.scheduler.call import Call
from plaudit.scheduler.lane import NEVER, Flight, Lane

AGAIN = 0.25
"""Seconds after which an outlier that found no idle slot, or no budget, is looked at again."""


class Hedging:
    """Looks for outliers, and for calls that a faster endpoint would finish first."""

    def __init__(
        self,
        admission: Admission,
        budget: RetryBudget,
        *,
        send: Callable[[Call, Lane, float], None],
    ) -> None:
        self._admission = admission
        self._budget = budget
        self._send = send

    def look(self, now: float) -> float:
        """Send the twins that are due; the answer is the time to look again."""
        wake = NEVER
        lanes = self._admission.lanes
        for lane in lanes:
            age = hedge_age(lane.latencies)
            if age is None:
                continue
            others = [other for other in lanes if other is not lane] or lanes
            for flight in [flight for flight in lane.flights.values() if _may_have_twin(flight.call)]:
                due = flight.sent_at + age
                if due > now:
                    wake = min(wake, due)
                    break  # flights stand in the order of sending: the rest are younger
                if not self._twin(flight, others, now):
                    wake = min(wake, now + AGAIN)
                    break
        if len(lanes) > 1:
            self._relieve(now)
        return wake

    def _relieve(self, now: float) -> None:
        """Give the last calls of a slow endpoint to a much faster one that has nothing left to do."""
        lanes = self._admission.lanes
        for lane in lanes:
            faster = [other for other in lanes if is_much_faster(other.load, than=lane.load)]
            for flight in [f for f in reversed(lane.flights.values()) if _may_have_twin(f.call)]:
                if not faster or not self._twin(flight, faster, now):
                    break

    def _twin(self, flight: Flight, among: Sequence[Lane], now: float) -> bool:
        if not self._budget.can_hedge(now=now):
            return False
        lane = self._admission.choose_twin(flight.call, among, now=now)
        if lane is None:
            return False
        self._budget.take(now=now)
        flight.call.is_hedged = True
        self._send(flight.call, lane, now)
        return True


def _may_have_twin(call: Call) -> bool:
    return not call.is_hedged and (call.is_wanted is None or call.is_wanted(call))
