"""Whether an endpoint goes down, or shuts us out, under too many calls at once; and how many it stands.

Pure: no clock, no I/O. Where most calls break together in the moment in which there were more of them than
before, that may be why: memory ran out, say. So many are not tried again at once. First those that were
answered are, then half of the way up, each time after more replies where it goes down again.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from plaudit.policy.breaker import MOMENT

FEW = 8
"""Calls under way from which on it may be for their number."""
MOST, LET_IN = 0.5, 2.5
"""Share of them that must have broken, some after so many times as long as the last: those had been let in.
An endpoint that is away for other reasons lets nothing new in, but goes on with what it has."""
SOON = 0.05
"""Seconds, beside two round trips, within which it goes down for what was just sent."""
LESS = 0.9
"""Share of a load that brought it down which is tried at the most."""
NEAR = 1.15
"""How many times as many calls bring it down than are tried where there is nothing left to find."""
SAFE = 1.25
"""How many times as many calls must have been answered to forget it."""
FAR_LESS = 0.5
"""Share of the load of last time below which it is another server that went down."""
PATIENCE, LONGEST = 4.0, 6
"""Rounds of replies before more calls are tried, to the power of how often it went down, up to so often; to
twice that power before as many are tried as brought it down."""
BANNED, BETTER = 4, 1.25
"""How many times fewer are sent to an endpoint that was open for less time than it was away, since each try
costs as much; and how many times as many replies that must bring."""
LONG = 3.0
"""Seconds that it must have been away for that: less may be a limit of calls a second."""
EARLY = 4
"""Calls that must have been refused before it lets nothing in."""
KNOWN = 2
"""How often it counts to have gone down where that was in another run."""


class Cycle(NamedTuple):
    """A time for which an endpoint was away, and then open."""

    replies: int
    seconds: float

    @property
    def rate(self) -> float:
        return self.replies / max(self.seconds, 1e-3)


class Collapse:
    """How many calls an endpoint stands. Tell it what leaves, what is answered, what breaks; read `bound`.

    Args:
        known: So many calls have brought it down in another run.
    """

    def __init__(self, known: int | None = None) -> None:
        self.bound = math.inf
        """Calls that may be under way at once."""
        self.height: int | None = known
        """Calls that brought it down, or had us shut out."""
        self.crashed_at = known
        """The same where it was the former, which is worth remembering."""
        self.times = KNOWN if known is not None else 0
        """How often about so many did."""
        if known is not None:
            self.bound = self._below(known)
        self._peak, self._peak_at = 0, float("-inf")
        """The most calls under way since it was last away, and since when."""
        self._shown = self._ever_shown = 0
        """The most under way when a call left that was answered: since then, and at all."""
        self._was_away = False
        self._shut_at = self._open_at = 0.0
        self._answered = 0
        """Replies since it lets calls in again."""
        self._before: Cycle | None = None
        """What it brought until far fewer calls were sent, so that it stays open for longer."""
        self._is_in_vain = False
        """Whether that brought no more."""
        self._replies = self._broken = 0
        self._broke_at, self._height = 0.0, 0
        """When the first call broke since the last reply, and how many were under way: those count."""
        self._oldest = 0.0
        """Seconds that the first of them to leave was under way, of those that had a connection."""

    def on_send(self, *, now: float, in_flight: int) -> None:
        if in_flight > self._peak:
            self._peak, self._peak_at = in_flight, now

    def on_reply(self, *, now: float, sent_at: float, height: int) -> None:
        """A call was answered that left with so many under way."""
        self._answered += 1
        if self._before is not None and now - self._open_at > self._before.seconds:
            self._compare(self._answered / (now - self._open_at))
        if sent_at > self._broke_at:
            self._broken = 0
        self._shown = max(self._shown, height)
        self._ever_shown = max(self._ever_shown, height)
        if self.height is None:
            return
        self._replies += 1
        if self.bound == math.inf:
            if self._shown > SAFE * self.height:
                self.height, self.times = None, 0
            return
        has_room = self.height > NEAR * self.bound
        rounds = PATIENCE ** min(self.times - 1 if has_room else 2 * (self.times - 1), LONGEST)
        if self._replies >= rounds * self.bound:
            self._replies = 0
            self.bound = max(self.bound + 1, int((self.bound + self.height) / 2)) if has_room else math.inf

    def on_failure(self, *, now: float, sent_at: float, in_flight: int, was_connected: bool) -> None:
        """A call broke; `in_flight` still counts it."""
        if not self._broken:
            self._broke_at, self._height = now, in_flight
            self._oldest = 0.0
        if sent_at <= self._broke_at:
            self._broken += 1
            self._oldest = max(self._oldest, now - sent_at if was_connected else 0.0)

    def on_open(self, *, now: float) -> None:
        """It lets calls in again."""
        self._open_at, self._answered = now, 0

    def on_shut(self, *, now: float, bad_time: float, early: int = 0) -> None:
        """It lets nothing in any more; the last call took so long to break, or to be refused.

        So many were refused `early`, while others were still let in.
        """
        if self._was_away:
            self._look_at_cycle(now, early)
        self._shut_at = now
        height, shown = self._height, self._shown
        are_most = height >= FEW and self._broken >= MOST * height
        were_let_in = self._oldest > LET_IN * bad_time + MOMENT
        if self._was_away and not shown:  # one call had been let in, and then all broke
            were_let_in |= self._oldest > 0.0 and height > self._ever_shown
        is_at_once = self._broke_at - self._peak_at <= 2.0 * bad_time + SOON
        self._peak = self._shown = self._replies = self._broken = 0
        self._was_away = True
        if not (are_most and were_let_in and is_at_once):
            return
        if self.height is not None and height >= FAR_LESS * self.height:
            self.times, self.height = self.times + 1, min(height, self.height)
        else:
            self.times, self.height = 1, height
        self.crashed_at = self.height
        self.bound = max(1, min(shown or height // 2, self._below(self.height)))

    def _look_at_cycle(self, now: float, early: int) -> None:
        """Send far fewer where it was open for less time than it was away before, if that brings more.

        It may shut out who is refused too often. A limit that is used up refuses all from then on.
        """
        cycle = Cycle(self._answered, now - self._shut_at)
        if self._before is not None:
            self._compare(cycle.rate)
        away = self._open_at - self._shut_at
        was_short = away > LONG and now - self._open_at < away and early >= EARLY
        if self._answered and was_short and not self._is_in_vain:
            self._before = cycle
            self.crashed_at = None
            self.height = int(min(self._peak, self.bound))
            self.times = max(self.times + 1, KNOWN)
            self.bound = max(1, self.height // BANNED)

    def _compare(self, rate: float) -> None:
        """Fewer calls brought so many replies a second: send more again unless that is better than before."""
        assert self._before is not None
        if rate < BETTER * self._before.rate:
            self._is_in_vain, self.bound = True, math.inf
        self._before = None

    def _below(self, height: int) -> int:
        return max(1, int(LESS * height))
