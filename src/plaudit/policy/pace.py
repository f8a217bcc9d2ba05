"""How fast to send to an endpoint that limits by rate: at the rate it accepts, learned from its refusals.

Pure: no clock, no I/O. A refusal marks a moment at which the allowance was empty. What was accepted between
two such moments, over the time between them, is the rate; only calls sent under the present pace count. A
pace that meets no refusals grows, faster and faster. Where a much slower pace brings no fewer refusals, they
are not for the rate.
"""

from __future__ import annotations

from bisect import bisect_right

from plaudit.types import RateHeaders

SPAN = 0.25
"""Seconds over which a pace is tried before it grows, and over which a rate is measured, at least."""
LONGEST_SPAN = 1.5
CREEP = 0.03
"""How much a pace grows at first; each time that meets no refusal, the next is twice as much."""
LEAP = 1.0
"""How much it grows at the most, or while nothing is known."""
MOST_CAUTION = 2
FAR = 64.0
"""How many times the rate of the last refusal may be sent before that was no limit of rate."""
LESS = 0.8
"""Share of a pace below which fewer refusals are to be expected, if they are for the rate."""
SOME, MOST = 0.05, 0.65
"""Share of the calls that weather refuses: less does not matter, and more is no weather."""
TRUSTING = 64
"""Calls for which refusals are not looked at once more as weather, after they were found to be."""
LATE = 0.01
"""Seconds by which our own clock may wake us late; so much is made up for."""
SLOWEST = 1.0 / 3600.0


class Pace:
    """The time of the next send. Without a rate there is no pace: everything may leave at once."""

    def __init__(self) -> None:
        self.rate: float | None = None
        """Sends a second, or None while nothing limits them."""
        self.is_proven = False
        """Whether the rate was measured under this pace, and is worth remembering."""
        self.weather = 0.0
        """Share of the calls that is refused at any pace."""
        self.refuse_time = 0.0
        """Seconds that the last refusal took to come back."""
        self._burst = 0
        self._next = 0.0
        self._began = 0.0
        self._sends: list[float] = []
        self._refused = 0
        self._growth = LEAP
        self._is_binding = False
        self._refused_at = 0.0
        self._caution = self._to_wait = 0
        """How many times a pace is to hold before it grows, and how many times are left."""
        self._held = 0.0
        """The last pace that met no refusals, until it does."""
        self._typical = 0.0
        """What was accepted a second, over the last times that it was measured."""
        self._suspect: tuple[float, float] | None = None
        """The pace before it was cut to what was accepted, and the share refused: does less bring less?"""
        self._is_on_trial = False
        """Whether it is down where a rate would refuse less: at what was accepted, or far below."""
        self._enough = 16
        self._trusting = self._since_cut = 0
        self._trial = [0, 0]
        """Calls sent, and refused, at a pace well below that."""

    @property
    def is_none(self) -> bool:
        """Whether far more was sent than when it last refused, and it did not refuse: so it is no rate."""
        return self.rate is not None and self.rate > FAR * self._refused_at

    def begin(self, *, now: float, rate: float, burst: int = 0) -> None:
        """Limit the rate from now on, beginning with this one, of which nobody can be sure.

        So many calls as the `burst` leave at once first.
        """
        self._burst = burst
        self.rate = self._refused_at = max(rate, SLOWEST)
        self.is_proven = False
        self.weather = self._typical = self._held = 0.0
        self._suspect = None
        self._growth = LEAP
        self._next = now
        self._restart(now)

    def end(self) -> None:
        """Limit the rate no longer."""
        self.rate = None

    def ready_at(self, *, now: float) -> float:
        """The earliest time at which the next request may leave."""
        if self.rate is None:
            return now
        self._is_binding |= self._next > now
        if now >= self._began + self._span:
            if self._sends and self._is_refused_much(now):
                self._slow_down(now, min(self._sends[-1], now - self.refuse_time))
            elif self._is_binding:  # else it held nothing back, and was not tried
                self._grow()
                self._next = min(self._next, now + 1.0 / self.rate)
            self._restart(now)
        return max(now, self._next)

    def _grow(self) -> None:
        """Go faster, since this pace met no refusals; later each time that this was too fast."""
        assert self.rate is not None
        if self.rate > 1.01 * self._held:
            self._caution //= 2
        self._held = self.rate
        if self._to_wait > 0:
            self._to_wait -= 1
            return
        self.rate *= 1.0 + self._growth
        self._growth = min(2.0 * self._growth, LEAP)

    @property
    def _span(self) -> float:
        """Seconds for which a pace is tried."""
        assert self.rate is not None
        if self._growth >= LEAP:  # nothing is known
            return max(0.1, 2.0 * self.refuse_time, min(8.0 / self.rate, 0.4))
        return max(SPAN, min(16.0 / self.rate, LONGEST_SPAN))

    def _is_refused_much(self, now: float) -> bool:
        """Whether more is refused than at any pace, of the calls whose refusal would be back by now."""
        known = bisect_right(self._sends, now - self.refuse_time)
        return self._refused > (1.25 * self.weather + 0.03) * known + 2 * (self.weather > 0.0)

    def on_send(self, *, now: float) -> None:
        if self.rate is not None:
            if self._burst > 0:
                self._burst -= 1
                return
            self._trusting -= 1
            self._sends.append(now)
            self._next = max(self._next, now - LATE) + 1.0 / self.rate
            if self._suspect is not None:
                self._since_cut += 1
                self._trial[0] += self._is_on_trial and self.rate < LESS * self._suspect[0]
                if self._trial[0] > 64 or self._since_cut > 160:
                    self._suspect = None  # few were refused, or it would be known by now

    def on_refusal(self, *, now: float, sent_at: float) -> None:
        """A call was refused for the rate. One that was sent under another pace says nothing of this one."""
        self.refuse_time = now - sent_at
        if self.rate is None or sent_at < self._began:
            return
        self._refused += 1
        if self._suspect is not None and self._is_on_trial and self.rate < LESS * self._suspect[0]:
            self._trial[1] += 1
            if self._find_weather(now):
                return
        is_flood = self._refused >= 6 and 4 * self._refused > 3 * len(self._sends)
        is_tried = sent_at - self._began >= 0.8 * max(SPAN, 4.0 / self.rate)
        if (is_flood or is_tried) and self._is_refused_much(now):
            self._slow_down(now, sent_at)

    def _slow_down(self, now: float, until: float) -> None:
        """Go down to what was accepted since this pace began, or to half of it after too short a time."""
        assert self.rate is not None
        elapsed = until - self._began
        measured = 0.5 * self.rate
        if elapsed >= 0.6 * max(SPAN, 4.0 / self.rate):
            accepted = bisect_right(self._sends, until) - self._refused
            measured = accepted / elapsed / (1.0 - self.weather)
            self.is_proven = True
            if self._trusting <= 0 and self._suspect is None:
                self._suspect = self.rate, self._refused / max(len(self._sends), 1)
                self._trial, self._since_cut = [0, 0], 0
        if self.is_proven:
            self._typical += 0.25 * (measured - self._typical) if self._typical else measured
        # Little by little: a window that is used up refuses all that come, and says nothing of the next.
        # And not below a pace that held just now: where a bucket holds a single call, the slightest haste
        # has every second one refused.
        held, self._held = min(self._held, self.rate / (1.0 + CREEP)), 0.0
        if held:
            self._caution = min(2 * self._caution + 1, MOST_CAUTION)
            self._to_wait = self._caution
        self.rate = max(min(self.rate, measured), 0.25 * self.rate, 0.5 * self._typical, held, SLOWEST)
        is_down = self.rate <= 1.01 * measured
        self._is_on_trial = is_down or self.rate <= 0.51 * self._typical
        self._enough = 16 if is_down else 32
        self._refused_at = self.rate
        self._growth = CREEP
        self._next = max(self._next, now + 1.0 / self.rate)
        self._restart(now)

    def _find_weather(self, now: float) -> bool:
        """See whether much less brought no fewer refusals: then they are not for the rate."""
        sent, refused = self._trial
        sent -= len(self._sends) - bisect_right(self._sends, now - self.refuse_time)  # still open
        if refused < 3 or sent < self._enough:
            return False
        assert self._suspect is not None
        before, share_before = self._suspect
        self._suspect, share = None, refused / sent
        if not max(SOME, 0.6 * share_before) < share < MOST:
            return False
        self.weather, self.rate = share, before
        self._refused_at = before
        self._trusting = TRUSTING
        self._growth = 4.0 * CREEP
        self._restart(now)
        return True

    def rest(self, *, now: float) -> None:
        """Nothing was let in for a while: count anew."""
        self._next = now
        self._restart(now)

    def _restart(self, now: float) -> None:
        self._began = now
        self._sends.clear()
        self._refused = 0
        self._is_binding = False


def rate_hint(headers: RateHeaders) -> float | None:
    """Requests a second as the headers tell: what is used up, over the time until it is full again."""
    limit, remaining, reset = headers.limit_requests, headers.remaining_requests, headers.reset_requests
    if limit is None or remaining is None or not reset or remaining >= limit:
        return None
    return (limit - remaining) / reset
