"""Twins for calls that take too long: into idle slots once nothing else waits; for hung calls, before all."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from plaudit.policy.balance import is_much_faster
from plaudit.policy.hedge import MOST_TWINS
from plaudit.policy.retry import RetryBudget
from plaudit.scheduling.admission import Admission
from plaudit.scheduling.call import Call
from plaudit.scheduling.lane import NEVER, Flight, Lane

AGAIN = 0.25
"""Seconds after which an outlier that found no idle slot, or no budget, is looked at again."""


class Hedging:
    """Looks for outliers, for hung calls, and for calls that a faster endpoint would finish first."""

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
            age = lane.hedge_age
            if age is None:
                continue
            oldest = next(iter(lane.flights.values()), None)
            if oldest is None or oldest.sent_at + age > now:  # most of the time: the rest are younger
                wake = wake if oldest is None else min(wake, oldest.sent_at + age)
                continue
            for flight in list(lane.flights.values()):
                due = flight.sent_at + age
                if due > now:
                    wake = min(wake, due)
                    break  # flights stand in the order of sending: the rest are younger
                if not _may_have_twin(flight.call):
                    continue
                if not self._twin(flight, self._others(lane), now):
                    wake = min(wake, now + AGAIN)
                    break
        if len(lanes) > 1:
            self._relieve(now)
        return min(wake, self.rescue(now))

    def rescue(self, now: float) -> float:
        """Send twins of calls that hang, whatever else waits; the answer is the time to look again."""
        wake = NEVER
        for lane in self._admission.lanes:
            age = lane.hung_age
            if age is None:
                continue
            for flight in lane.flights.values():
                if flight.sent_at + age > now:
                    wake = min(wake, flight.sent_at + age)
                    break
                call = flight.call
                due = call.last_sent + age * max(1, call.twins)
                if due > now or call.twins >= MOST_TWINS or not _is_wanted(call):
                    wake = min(wake, max(due, now + AGAIN))
                    continue
                others = self._others(lane)
                twin_lane = self._admission.choose_twin(call, [*others, lane], now=now)
                if twin_lane is None:
                    return min(wake, now + AGAIN)
                self._send_twin(call, twin_lane, now)
                return min(wake, now)  # the flights have changed: look again
        return wake

    def _others(self, lane: Lane) -> Sequence[Lane]:
        lanes = self._admission.lanes
        return [other for other in lanes if other is not lane] or lanes

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
        self._send_twin(flight.call, lane, now)
        return True

    def _send_twin(self, call: Call, lane: Lane, now: float) -> None:
        self._budget.take(now=now)
        call.twins += 1
        self._send(call, lane, now)


def _may_have_twin(call: Call) -> bool:
    return not call.twins and _is_wanted(call)


def _is_wanted(call: Call) -> bool:
    return call.streamed_by is None and (call.is_wanted is None or call.is_wanted(call))
