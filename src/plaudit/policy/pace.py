"""How fast to send to an endpoint that limits by rate: as fast as brings more in, and no faster.

Pure: no clock, no I/O. A pace is tried for a while; then what was let in and what was refused under it says
what comes next. With few refusals it grows, faster and faster. With many it goes down to what was let in. If
there are as many at the lower pace, the pace is not their cause (`evidence`): it goes back up, and that
share is put down to the weather. Whether going back up brought more in is checked like everything else.
Where many are refused for long, some calls leave at once: if far more of them are let in than at such a rate,
there is none.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass

from plaudit.types import RateHeaders

SPAN, LONGEST_SPAN = 0.25, 3.0
"""Seconds for which a pace is tried, at the least and at the most, beside the time refusals take."""
ENOUGH = 16
"""Calls after which a pace is called too fast."""
FLOOD, MOSTLY = 6, 0.75
"""Refusals, and their share, that call it too fast at once."""
LAG = 1.25
"""How many times as long as refusals take it may be until the fate of a call is known."""
CREEP, LEAP = 0.03, 1.0
"""How much a pace grows at first, and at the most: twice as much each time that it meets few refusals."""
TOLERATED = 0.04
"""Share of refusals that does not matter."""
SPREAD = 1.3
"""Standard deviations by which there may be more of them by chance."""
MOST_WEATHER, MOST_REFUSED = 0.5, 0.65
"""Where more than this is refused at any pace, it is no weather: hardly anything gets through."""
MOST_TO_DOUBT = 0.4
"""The highest share of refusals at which a pace that was only guessed is doubled to see what that brings, and
likewise one that has fallen far below what was let in lately."""
LESS = 0.9
"""Share of a pace below which fewer refusals are to be expected, if they are for the rate."""
SURE, SUREST = 3.0, 16.0
"""Evidence (log of how much likelier) from which on refusals are not put down to the pace; it doubles each
time that turned out wrong."""
RARE = 0.02
"""The least share of refusals that is reckoned with."""
RETRIAL = 16
"""Trials after which weather is doubted, and a slower pace tried."""
SLOWER = 0.75
"""Share of what is let in that is surely let in, if it is a rate that refuses the rest."""
HALF_LIFE = 30.0
"""Seconds after which the best that was let in counts half ..."""
LEAST_OF_BEST = 0.25
"""... and the share of it below which a pace has fallen far."""
MOST_CAUTION = 4
FIRST = 64
"""Calls with which a pace is tried of which nothing is known."""
FEW_WRONG, OFTEN_WRONG = 3, 0.25
"""Refusals of calls that the endpoint said it takes, and their share, up to which it is believed."""
TRIALS, POOLED = 6, 12
"""How many of the last paces that were too fast are remembered, and of all."""
FAR, LEAST_GUESS = 64.0, 32.0
"""How many times the rate of the last refusal may be sent before that was no limit of rate; of one that was
only guessed, which says little, so many times this rate a second at the least."""
IN_VAIN, WATCHED, PATIENCE, LONGEST_PATIENCE = 0.3, 32, 2.0, 60.0
"""Share of refusals, of so many calls in so many seconds, at which a pace is in vain and challenged; twice as
many seconds each time that it stood."""
CHALLENGE, LET_IN = 16, 6
"""Calls sent at once then, to see whether it is a rate that refuses them; and how many it may let in."""
LATE = 0.01
"""Seconds by which our own clock may wake us late; so much is made up for."""
SLOWEST = 1.0 / 3600.0


@dataclass(frozen=True, slots=True)
class PaceTrial:
    """A pace, and what became of the calls sent under it."""

    rate: float
    sent: float
    refused: float
    seconds: float

    @property
    def let_in(self) -> float:
        """Calls a second that were let in."""
        return (self.sent - self.refused) / self.seconds

    @property
    def share(self) -> float:
        """Of all calls, those refused."""
        return self.refused / self.sent


def evidence(trial: PaceTrial, other: PaceTrial) -> float:
    """How much likelier a trial is, seen another one, if the pace has nothing to do with its refusals.

    Then the same share is refused at both paces; but if a rate is the cause, the same number is let in. The
    answer is the logarithm of the ratio.
    """
    if_weather = _sensible(other.share)
    if_rate = _sensible(1.0 - other.let_in / trial.rate)
    let_in = trial.sent - trial.refused
    return trial.refused * math.log(if_weather / if_rate) + let_in * math.log(
        (1.0 - if_weather) / (1.0 - if_rate)
    )


def _sensible(share: float) -> float:
    return min(max(share, RARE), 1.0 - RARE)


@dataclass(slots=True)
class CallCount:
    """Calls since some time, and what became of them."""

    since: float
    sent: int = 0
    refused: int = 0
    last: float = 0.0


class Pace:
    """The time of the next send. Without a rate there is no pace: everything may leave at once."""

    def __init__(self) -> None:
        self.rate: float | None = None
        """Sends a second, or None while nothing limits them."""
        self.weather = 0.0
        """Share of the calls that is refused at any pace."""
        self.refuse_time = 0.0
        """Seconds that the last refusal took to come back."""
        self._allowed = CallCount(0.0)
        """Calls that left at once, because the endpoint said that it takes them, and what became of them."""
        self._begin(now=0.0, rate=0.0)

    def _begin(self, *, now: float, rate: float) -> None:
        self._burst = 0
        self._next = now
        self._growth = LEAP
        self._refused_at = rate
        self._held = 0.0
        """The last pace that met few refusals, until it meets many."""
        self._clean: PaceTrial | None = None
        """What became of the calls sent under it."""
        self._caution = self._to_wait = 0
        """How many times a pace is to hold before it grows, and how many times are left."""
        self._trials: list[PaceTrial] = []
        """Paces that were too fast."""
        self._latest: list[PaceTrial] = []
        """The last paces, one after another, too fast or not."""
        self._in_doubt: PaceTrial | None = None
        """The slower pace at which as many were refused, until a faster one has brought more in."""
        self._sure = SURE
        self._typical = 0.0
        """What was let in a second, over the last trials."""
        self._best = 0.0
        """The most that was let in a second, which counts less with time."""
        self._is_measured = False
        self._since_retrial = 0
        self._untried = FIRST
        """Calls that may leave at a pace of which nothing is known, until their fate is."""
        self._patience = PATIENCE
        self._watch = CallCount(now)
        """What has become of the calls since the last look at whether the pace is in vain."""
        self._challenge: CallCount | None = None
        self.is_refuted = False
        """Whether far more was let in at once than any such rate would."""
        self._restart(now)

    def _restart(self, now: float) -> None:
        self._began = now
        self._sends: list[float] = []
        self._refusals: list[float] = []
        self._is_binding = False

    @property
    def is_proven(self) -> bool:
        """Whether the rate was measured under this pace, and is worth remembering."""
        return self._is_measured and self.rate is not None and self.rate >= 0.5 * self._best

    @property
    def is_none(self) -> bool:
        """Whether far more was sent than when it last refused, and it did not refuse: so it is no rate."""
        refused_at = self._refused_at if self._is_measured else max(self._refused_at, LEAST_GUESS)
        return self.rate is not None and self.rate > FAR * refused_at

    def begin(self, *, now: float, rate: float, burst: int = 0) -> None:
        """Limit the rate from now on, beginning with this one, of which nobody can be sure.

        So many calls as the `burst` leave at once first.
        """
        self.rate = max(rate, SLOWEST)
        self.weather = 0.0
        self._begin(now=now, rate=self.rate)
        self._burst = burst

    def allow(self, calls: int) -> None:
        """So many calls may leave at once: the endpoint says that it takes them, and was right so far."""
        allowed = self._allowed
        is_wrong = allowed.refused > FEW_WRONG + OFTEN_WRONG * allowed.sent
        self._burst = 0 if is_wrong else max(calls, 0)

    def end(self) -> None:
        """Limit the rate no longer."""
        self.rate = None

    def rest(self, *, now: float) -> None:
        """Nothing was let in for a while: count anew."""
        self._next = now
        self._restart(now)

    def on_send(self, *, now: float) -> bool:
        """A call leaves; whether that is because it was allowed, and not because it was time."""
        if self.rate is None:
            return False
        if self._burst > 0:
            self._burst -= 1
            self._allowed.sent += 1
            return True
        challenge = self._challenge
        if challenge is not None and challenge.sent < CHALLENGE:
            challenge.sent, challenge.last = challenge.sent + 1, now
            return False
        self._watch.sent += 1
        self._sends.append(now)
        self._next = max(self._next, now - LATE) + 1.0 / self.rate
        return False

    def on_refusal(self, *, now: float, sent_at: float, was_allowed: bool = False) -> None:
        """A call was refused for the rate. One that was sent under another pace says nothing of this one."""
        self.refuse_time = now - sent_at
        challenge = self._challenge
        if challenge is not None and challenge.since <= sent_at <= challenge.last:
            challenge.refused += 1
            return
        if was_allowed:
            self._allowed.refused += 1
            self._burst = 0
            return
        if self.rate is None or sent_at < self._began:
            return
        self._watch.refused += 1
        self._refusals.append(sent_at)
        refused = len(self._refusals)
        is_flood = refused >= FLOOD and refused > MOSTLY * len(self._sends)
        if is_flood and now - self._began >= min(SPAN, 8.0 / self.rate):
            self._review(now)

    def ready_at(self, *, now: float) -> float:
        """The earliest time at which the next request may leave."""
        if self.rate is None or self._burst > 0:
            return now
        if self._challenge is not None:
            if self._challenge.sent < CHALLENGE:
                return now
            known_at = self._challenge.last + 2.0 * LAG * self.refuse_time + LATE
            if now < known_at:
                return known_at
            self._settle_challenge(now, self._challenge)
        elif now - self._watch.since >= self._patience and self._watch.sent >= WATCHED:
            is_vain = self._watch.refused > IN_VAIN * self._watch.sent
            self._watch = CallCount(now)
            if is_vain:
                self._challenge = CallCount(now)
                return now
        self._is_binding |= self._next > now
        if now >= self._began + self._span:
            self._review(now)
        if self._growth >= LEAP and len(self._sends) >= self._untried:
            return max(now, self._next, self._began + self._span)
        return max(now, self._next)

    def _settle_challenge(self, now: float, challenge: CallCount) -> None:
        """See whether more of the calls sent at once were let in than a rate would."""
        assert self.rate is not None
        self._challenge, self._watch = None, CallCount(now)
        explained = self.rate * (challenge.last - challenge.since) + LET_IN
        self.is_refuted = challenge.sent - challenge.refused > explained
        self._patience = min(2.0 * self._patience, LONGEST_PATIENCE)
        self._next = now + 1.0 / self.rate

    @property
    def _span(self) -> float:
        """Seconds for which a pace is tried."""
        assert self.rate is not None
        if self._growth >= LEAP:  # nothing is known
            return max(0.1, 2.0 * self.refuse_time, min(8.0 / self.rate, 0.4))
        return max(SPAN, min(ENOUGH / self.rate, LONGEST_SPAN)) + LAG * self.refuse_time

    # -- what a trial shows -------------------------------------------------------------------------------

    def _review(self, now: float) -> None:
        """Let the calls whose fate is known say how to go on."""
        trial = self._trial(now)
        if trial is None:
            if not self._is_binding:
                self._restart(now)
            return
        if self._in_doubt is not None:
            if trial.sent < ENOUGH // 2:
                return
            slower, self._in_doubt = self._in_doubt, None
            if evidence(trial, slower) < 0.0:
                self._take_back(now, trial, slower)
                return
        if self._is_too_fast(trial):
            if trial.sent < ENOUGH and not (trial.refused >= FLOOD and trial.share > MOSTLY):
                return
            self._slow_down(now, trial)
        elif self._is_binding:  # else it held nothing back, and was not tried
            self._grow(now, trial)
        self._restart(now)

    def _trial(self, now: float) -> PaceTrial | None:
        """The calls of which it is known by now whether they were refused."""
        assert self.rate is not None
        known = bisect_right(self._sends, now - LAG * self.refuse_time)
        if not known:
            return None
        last = self._sends[known - 1]
        refused = bisect_right(self._refusals, last)
        trial = PaceTrial(self.rate, known, min(refused, known), last - self._began + 1.0 / self.rate)
        if known >= ENOUGH or refused:
            self._typical += 0.25 * (trial.let_in - self._typical) if self._typical else trial.let_in
        self._best *= 0.5 ** (trial.seconds / HALF_LIFE)
        if known >= ENOUGH:
            self._best = max(self._best, trial.let_in)
        return trial

    def _is_too_fast(self, trial: PaceTrial) -> bool:
        usual = (self.weather + TOLERATED) * trial.sent
        return trial.refused > usual + SPREAD * math.sqrt(usual)

    def _grow(self, now: float, trial: PaceTrial) -> None:
        """Go faster, since this pace met few refusals; later each time that this was too fast."""
        assert self.rate is not None
        self._note(trial)
        self.weather += 0.3 * min(0.0, trial.share - self.weather)
        is_clean = trial.share <= self.weather + 0.5 * TOLERATED
        if is_clean:
            if self.rate > 1.01 * self._held:
                self._caution //= 2
            self._held = self.rate
            self._clean = trial if trial.sent >= ENOUGH else None
        if self._to_wait > 0:
            self._to_wait -= 1
            return
        self._since_retrial += 1
        if self.weather > TOLERATED and self._since_retrial >= RETRIAL:
            self._remember(trial)
            self._set(now, SLOWER * trial.let_in)
            self._held = self.weather = 0.0
            self._since_retrial = 0
            return
        self._untried = max(FIRST, 2 * len(self._sends))
        self.rate *= 1.0 + self._growth
        if is_clean:
            self._growth = min(2.0 * self._growth, LEAP)
        self._next = min(self._next, now + 1.0 / self.rate)

    def _slow_down(self, now: float, trial: PaceTrial) -> None:
        """Go down to what was let in, or back up where a slower pace brought no fewer refusals."""
        assert self.rate is not None
        is_guess = not self._is_measured or self.rate < LEAST_OF_BEST * self._best
        if self._clean is not None and evidence(trial, self._clean) < -SURE:
            is_guess = False  # the pace before met no refusals, and lets us tell that these are for the rate
        self._is_measured = True
        if is_guess and trial.share <= MOST_TO_DOUBT:  # it may be far too slow: does more bring more in?
            self._suspend(now, trial, trial.share, 2.0 * self.rate)
            return
        self._note(trial)
        faster = [other for other in self._trials if LESS * other.rate > trial.rate]
        best = max(faster, key=lambda other: evidence(self._since(other), other), default=None)
        pool = trial if best is None else self._since(best)
        if best is not None and evidence(pool, best) > self._sure and pool.share < MOST_REFUSED:
            if pool.rate > LESS * best.let_in:  # a bucket of a single call refuses half of all just above it
                self._remember(trial)
                self._set(now, SLOWER * best.let_in)
                return
            self._suspend(now, pool, min(pool.share, best.share, MOST_WEATHER), best.rate)
            return
        self._remember(trial)
        # Not below a pace that held just now: where a bucket holds a single call, the slightest haste has
        # every second one refused. And little by little: a window that is used up refuses all that come,
        # and says nothing of the next.
        held, self._held = min(self._held, self.rate / (1.0 + CREEP)), 0.0
        if held:
            self._caution = min(2 * self._caution + 1, MOST_CAUTION)
            self._to_wait = self._caution
        let_in = max(trial.let_in / (1.0 - self.weather), 0.5 * self.rate, 0.5 * self._typical, held)
        self._set(now, min(self.rate, let_in))

    def _note(self, trial: PaceTrial) -> None:
        self._latest = [*self._latest[1 - POOLED :], trial]

    def _since(self, other: PaceTrial) -> PaceTrial:
        """The slower paces since another one, taken together: each by itself says too little."""
        index = next((i for i, trial in enumerate(self._latest) if trial is other), -1)
        slower = [t for t in self._latest[index + 1 :] if LESS * other.rate > t.rate]
        sent, seconds = sum(t.sent for t in slower), sum(t.seconds for t in slower)
        return PaceTrial(
            sum(t.rate * t.seconds for t in slower) / seconds, sent, sum(t.refused for t in slower), seconds
        )

    def _suspend(self, now: float, trial: PaceTrial, weather: float, rate: float) -> None:
        """Put these refusals down to the weather for now, and see whether a faster pace brings more in."""
        self._in_doubt = trial
        self.weather = weather
        self._trials.clear()
        self._latest.clear()
        self._held = 0.0
        self._since_retrial = 0
        self._set(now, rate)

    def _take_back(self, now: float, trial: PaceTrial, slower: PaceTrial) -> None:
        """Go down again: the faster pace brought no more in, so the refusals are for the rate after all."""
        self.weather = 0.0
        self._best = trial.let_in
        self._sure = min(2.0 * self._sure, SUREST)
        self._remember(trial)
        self._set(now, min(slower.rate, max(trial.let_in, 0.5 * self._typical)))
        self._restart(now)

    def _remember(self, trial: PaceTrial) -> None:
        """Keep what this pace brought, and forget what was seen at about the same."""
        others = [other for other in self._trials if abs(other.rate - trial.rate) > 0.08 * trial.rate]
        self._trials = [*others[1 - TRIALS :], trial]

    def _set(self, now: float, rate: float) -> None:
        self.rate = self._refused_at = max(rate, SLOWEST)
        self._growth = CREEP
        self._next = now + 1.0 / self.rate


def rate_hint(headers: RateHeaders) -> float | None:
    """Requests a second as the headers tell: what is used up, over the time until it is full again."""
    limit, remaining, reset = headers.limit_requests, headers.remaining_requests, headers.reset_requests
    if limit is None or remaining is None or not reset or remaining >= limit:
        return None
    return (limit - remaining) / reset
