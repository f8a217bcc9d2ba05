"""Twins for calls that take too long: into idle slots once nothing else waits; for hung calls, before all."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from plaudit.policy.balance import is_much_faster
from plaudit.policy.hedge import MOST_TWINS, Overtaken
from plaudit.policy.retry import RetryBudget
from plaudit.scheduling.admission import Admission
from plaudit.scheduling.call import Call
from plaudit.scheduling.lane import NEVER, Flight, Lane
from plaudit.types import RawRequest

AGAIN = 0.25
"""Seconds after which an outlier that found no idle slot, or no budget, is looked at again; and so is a call
that hangs, where its twin was refused or broke."""


class Hedging:
    """Looks for outliers, for hung calls, and for calls that a faster endpoint would finish first."""

    def __init__(
        self,
        admission: Admission,
        budget: RetryBudget,
        *,
        send: Callable[[Call, Lane, float], None],
        send_in_place: Callable[[Flight], None],
    ) -> None:
        self._admission = admission
        self._budget = budget
        self._send = send
        self._send_in_place = send_in_place
        self.overtaken = {lane: Overtaken() for lane in admission.lanes}
        """To be told of every call that leaves or is over."""

    def look(self, now: float) -> float:
        """Send the twins that are due; the answer is the time to look again."""
        wake = NEVER
        lanes = self._admission.lanes
        for lane in lanes:
            wake = min(wake, self._look_at(lane, now))
        if len(lanes) > 1:
            self._relieve(now)
        return min(wake, self.rescue(now))

    def _look_at(self, lane: Lane, now: float) -> float:
        age, overtaken = lane.hedge_age, self.overtaken[lane]
        overtaken.learn(lane.latencies)
        wake = NEVER
        for flight in list(lane.flights.values()):
            due = _due(flight, age, overtaken.since.get(flight.id), overtaken.outlier_age)
            if due > now:  # flights stand in the order of sending, and of being overtaken: the rest are later
                return min(wake, due)
            call = flight.call
            if not _may_have_twin(call):
                continue
            again = call.last_sent + (due - flight.sent_at) * (1 + call.twins) if call.twins else now
            if again > now:
                wake = min(wake, again)
            elif not self._twin(flight, self._others(lane), now):
                return min(wake, now + AGAIN)
        return wake

    def rescue(self, now: float) -> float:
        """Send twins of calls that hang, whatever else waits; the answer is the time to look again."""
        wake = NEVER
        for lane in self._admission.lanes:
            overtaken = self.overtaken[lane]
            for flight in lane.flights.values():
                hung = _due(flight, lane.hung_age, overtaken.since.get(flight.id), overtaken.hung_age)
                if hung > now:
                    wake = min(wake, hung)
                    break
                call = flight.call
                due = call.twin_at or call.last_sent + (hung - flight.sent_at) * max(1, call.twins)
                if due > now or call.twins >= MOST_TWINS or not _is_wanted(call):
                    wake = min(wake, max(due, now + AGAIN))
                    continue
                among = [*self._others(lane), lane]
                twin_lane = self._admission.choose_twin(call, among, now=now, hung=1 + call.twins)
                if twin_lane is not None:
                    self._send_twin(call, twin_lane, now)
                    return min(wake, now)  # the flights have changed: look again
                if all(self._admission.is_at_ceiling(other) for other in among) and self._do_all_hang(now):
                    call.twins, call.last_sent = call.twins + 1, now
                    self._send_in_place(flight)
                return min(wake, now + AGAIN)
        return wake

    def _do_all_hang(self, now: float) -> bool:
        """Whether no call under way will leave its place to another."""
        return all(
            flight.sent_at + (lane.hung_age or NEVER) <= now
            for lane in self._admission.lanes
            for flight in lane.flights.values()
        )

    def _others(self, lane: Lane) -> Sequence[Lane]:
        lanes = self._admission.lanes
        return [other for other in lanes if other is not lane] or lanes

    def _relieve(self, now: float) -> None:
        """Give the last calls of a slow endpoint to a much faster one that has nothing left to do."""
        lanes = self._admission.lanes
        for lane in lanes:
            here = lane.load
            for flight in [
                f for f in reversed(lane.flights.values()) if not f.call.twins and _may_have_twin(f.call)
            ]:
                age = now - flight.sent_at
                faster = [other for other in lanes if is_much_faster(other.load, than=here, age=age)]
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


def _due(flight: Flight, age: float | None, overtaken_at: float | None, late: float | None) -> float:
    """When a flight reaches this age, or has been overtaken for so long."""
    by_age = NEVER if age is None else flight.sent_at + age
    return by_age if overtaken_at is None or late is None else min(by_age, overtaken_at + late)


def _may_have_twin(call: Call) -> bool:
    is_draw = isinstance(call.request, RawRequest) and call.request.is_draw
    return call.twins < MOST_TWINS and not is_draw and _is_wanted(call)


def _is_wanted(call: Call) -> bool:
    return call.streamed_by is None and (call.is_wanted is None or call.is_wanted(call))
