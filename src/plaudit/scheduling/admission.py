"""Which calls may leave now, and by which lane: every ceiling, rate and sum of money is held here."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence

from plaudit.errors import BudgetSpent, OutOfFiles
from plaudit.policy.arrival import Heard
from plaudit.policy.balance import is_worth_it, least_loaded
from plaudit.policy.budget import Spending, charge, counted
from plaudit.policy.quota import Quota
from plaudit.scheduling.call import FILES_WAIT, Call, Outcome, heard_of, is_free
from plaudit.scheduling.lane import NEVER, Lane
from plaudit.types import Reply


class Admission:
    """The books over all lanes: what is under way, what was sent, what was spent."""

    def __init__(
        self,
        lanes: Sequence[Lane],
        *,
        max_concurrent: int | None,
        rpm: int | None,
        tpm: int | None,
        budget: float | None,
        ledger: Callable[[float], None] | None = None,
        on_limit: Callable[[Lane], None],
    ) -> None:
        self.lanes = list(lanes)
        self.in_flight = 0
        self._ceiling = max_concurrent if max_concurrent is not None else NEVER
        self._quota = Quota(rpm=rpm, tpm=tpm) if rpm is not None or tpm is not None else None
        self._budget = budget
        self._spending = Spending(budget)
        self._ledger = ledger
        self._on_limit = on_limit
        self._files_room = 0
        self._files_until = float("-inf")
        """Calls at once that file descriptors were left for, and until when that is believed."""

    @property
    def spending(self) -> Spending:
        """US dollars, of calls that have a price."""
        return self._spending

    @property
    def room(self) -> float:
        """Calls that may be sent beside those under way."""
        return self._ceiling - self.in_flight

    def is_at_ceiling(self, lane: Lane) -> bool:
        """Whether a ceiling of the user's keeps another call from leaving there."""
        return self.room < 1 or lane.in_flight >= lane.ceiling

    @property
    def is_full(self) -> bool:
        """Whether another call would need a slot, whatever else it needs."""
        return self.in_flight >= self._ceiling or all(
            lane.is_lost or lane.in_flight >= lane.limit.limit for lane in self.lanes
        )

    def is_over_rate(self, call: Call, *, now: float) -> bool:
        """Whether the user's requests and tokens a minute keep the call from leaving, by whichever lane."""
        if self._quota is not None and self._quota.ready_at(now=now, tokens=sum(call.token_bound)) > now:
            return True
        return all(lane.is_lost or lane.quota_ready_at(call, now) > now for lane in self.lanes)

    def choose(self, call: Call, *, backlog: int, now: float) -> tuple[Lane | None, float]:
        """The lane by which the call may leave now; else None and the time to look again.

        Raises BudgetSpent when no lane can take it for the money that is left.
        """
        wake = self._global_wake(call, now)
        if wake > now:
            return None, wake
        wake = NEVER
        open_lanes = []
        for lane in self.lanes:
            if len(lane.flights) >= lane.limit.limit and not lane.is_lost:
                wake = min(wake, self._grow(lane, now))
            ready = lane.ready_at(call, now=now)
            if ready <= now:
                open_lanes.append(lane)
            else:
                wake = min(wake, ready)
        if not open_lanes:
            return None, wake
        if self._budget is not None:
            open_lanes = self._affordable(call, open_lanes)
        if len(open_lanes) < 2 and len(self.lanes) == 1:
            return (open_lanes[0] if open_lanes else None), wake
        return self._pick(call, open_lanes, backlog, now), wake

    def choose_twin(self, call: Call, among: Sequence[Lane], *, now: float, hung: int = 0) -> Lane | None:
        """An idle slot for a hedge, beside so many hung calls; None where it would need more than that."""
        if self._global_wake(call, now) > now:
            return None
        for lane in sorted(among, key=lambda lane: lane.in_flight / lane.limit.limit):
            bound = lane.cost_bound(call)
            if lane.ready_at(call, now=now, hung=hung) <= now and self._spending.fits(bound):
                try:
                    self._write_down(bound)
                except BudgetSpent:
                    return None
                return lane
        return None

    def on_send(self, call: Call, lane: Lane, *, now: float) -> None:
        """A call leaves by a lane that already counts it."""
        self.in_flight += 1
        for quota in (self._quota, lane.quota):
            if quota is not None:
                quota.on_send(now=now, tokens=sum(call.token_bound), server=lane.name)
        if lane.endpoint.price is not None:
            self._spending.on_send(lane.cost_bound(call))

    def on_return(
        self, call: Call, lane: Lane, outcome: Outcome | None, *, sent_at: float, now: float
    ) -> float | None:
        """A call came back, with or without a reply; the answer is what it cost, where that is known.

        Where nobody can tell what was used it counts at its bound: it may be billed.
        """
        self.in_flight -= 1
        if isinstance(outcome, OutOfFiles):
            self._files_room, self._files_until = max(1, self.in_flight), now + FILES_WAIT
        usage = outcome.usage if isinstance(outcome, Reply) else None
        if self._quota is not None or lane.quota is not None:
            bound = call.token_bound
            used = 0 if is_free(outcome) else sum(bound if usage is None else counted(usage, bound))
            self._count(lane, heard_of(outcome), sent_at, now, reserved=sum(bound), used=used)
        price = lane.endpoint.price
        if price is None:
            if usage is None or usage.cost is None:
                return None
            self._spending.on_reply(bound=0.0, cost=charge(usage, None, (0, 0)))
            return usage.cost
        dearest = lane.cost_bound(call)
        if usage is None:
            if is_free(outcome):
                self._spending.on_reply(bound=dearest, cost=0.0)
            else:
                self._spending.on_cut_off(bound=dearest)
            return None
        cost = charge(usage, price, call.token_bound)
        self._spending.on_reply(bound=dearest, cost=cost)
        tokens = (usage.prompt_tokens, usage.completion_tokens)
        return cost if tokens == counted(usage, call.token_bound) else usage.cost

    def on_sign_of_life(self, lane: Lane, *, sent_at: float, now: float) -> None:
        """A request that is no longer counted as under way was answered after all."""
        self._count(lane, Heard.ANSWER, sent_at, now, reserved=0, used=0)

    def is_metered(self, lane: Lane) -> bool:
        """Whether requests or tokens a minute are counted for this lane."""
        return self._quota is not None or lane.quota is not None

    def _count(
        self, lane: Lane, heard: Heard, sent_at: float, now: float, *, reserved: int, used: int
    ) -> None:
        for quota in (self._quota, lane.quota):
            if quota is not None:
                quota.on_back(heard, now=now, sent_at=sent_at, reserved=reserved, used=used, server=lane.name)

    def _global_wake(self, call: Call, now: float) -> float:
        if self.in_flight >= self._ceiling:
            return NEVER
        if self.in_flight >= self._files_room and now < self._files_until:
            return self._files_until
        if self._quota is None:
            return now
        return self._quota.ready_at(now=now, tokens=sum(call.token_bound))

    def _affordable(self, call: Call, open_lanes: list[Lane]) -> list[Lane]:
        """The lanes that the money left allows; none while what is under way may yet turn out cheaper."""
        spending = self._spending
        fitting = [lane for lane in open_lanes if spending.fits(lane.cost_bound(call))]
        if fitting:
            self._write_down(max(lane.cost_bound(call) for lane in fitting))
            return fitting
        bounds = [lane.cost_bound(call) for lane in self.lanes if not lane.is_lost]
        if any(spending.fits(one) or (self.in_flight and not spending.is_exhausted(one)) for one in bounds):
            return []
        most = f", which may cost up to ${min(bounds):.2g}" if bounds else ""
        raise BudgetSpent(
            f"the budget of ${self._budget:g} leaves no room for another call{most} ({spending}); "
            "raise it to go on"
        )

    def _write_down(self, bound: float) -> None:
        """Tell the ledger, before a call leaves, how much may have been spent with it."""
        if self._ledger is None or self._budget is None:
            return
        if (sum_ := self._spending.to_write(bound)) is not None:
            self._ledger(sum_)
            self._spending.written = sum_

    def close(self) -> None:
        """Nothing is under way any more: what was spent is known."""
        if self._ledger is not None and self._budget is not None:
            with contextlib.suppress(BudgetSpent):  # then the last entry stays, which is no less
                self._ledger(self._spending.spent)

    def _pick(self, call: Call, open_lanes: list[Lane], backlog: int, now: float) -> Lane | None:
        """One of several open lanes; None where a busy one will still be sooner."""
        sound = [lane for lane in self.lanes if lane.is_sound(call, now=now)]
        elsewhere = [lane for lane in open_lanes if lane.name != call.failed_on]
        for group in (elsewhere, open_lanes):
            candidates = [
                lane
                for lane in group
                if is_worth_it(
                    lane.load, [other.load for other in sound if other is not lane], backlog=backlog
                )
            ]
            if candidates:
                return candidates[least_loaded([lane.load for lane in candidates], tie=call.key[0])]
        return None

    def _grow(self, lane: Lane, now: float) -> float:
        again = lane.grow(now=now)
        self._on_limit(lane)
        return again
