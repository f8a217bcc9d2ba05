"""Whether an endpoint goes down under too many calls at once, and how many it stands.

Pure: no clock, no I/O. Where most calls break together in the moment in which there were more of them than
before, that may be why: memory ran out, say. So many are not tried again at once. First those that were
answered are, then half of the way up, each time after more replies where it goes down again.
"""

from __future__ import annotations

import math

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
KNOWN = 2
"""How often it counts to have gone down where that was in another run."""


class Collapse:
    """How many calls an endpoint stands. Tell it what leaves, what is answered, what breaks; read `bound`.

    Args:
        known: So many calls have brought it down in another run.
    """

    def __init__(self, known: int | None = None) -> None:
        self.bound = math.inf
        """Calls that may be under way at once."""
        self.height: int | None = known
        """Calls that brought it down."""
        self.times = KNOWN if known is not None else 0
        """How often about so many did."""
        if known is not None:
            self.bound = self._below(known)
        self._peak, self._peak_at = 0, float("-inf")
        """The most calls under way since it was last away, and since when."""
        self._shown = self._ever_shown = 0
        """The most under way when a call left that was answered: since then, and at all."""
        self._was_away = False
        self._replies = self._broken = 0
        self._broke_at, self._height = 0.0, 0
        """When the first call broke since the last reply, and how many were under way: those count."""
        self._oldest = 0.0
        """Seconds that the first of them to leave was under way, of those that had a connection."""

    def on_send(self, *, now: float, in_flight: int) -> None:
        if in_flight > self._peak:
            self._peak, self._peak_at = in_flight, now

    def on_reply(self, *, sent_at: float, height: int) -> None:
        """A call was answered that left with so many under way."""
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

    def on_shut(self, *, bad_time: float) -> None:
        """It lets nothing in any more; the last call took so long to break."""
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
        self.bound = max(1, min(shown or height // 2, self._below(self.height)))

    def _below(self, height: int) -> int:
        return max(1, int(LESS * height))
