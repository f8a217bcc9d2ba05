"""Calls that run into a time limit, ours or a gateway's: whether they are too many, and how many would not.

Pure: no clock, no I/O. A server that is given more than it can serve answers all of it late, and what is
given up then was worked on in vain. A single call that hangs says nothing of that.
"""

from __future__ import annotations

import math
from typing import NamedTuple

FEWEST, SHARE = 3, 0.1
"""Calls that run out of time for other reasons: some, and for each that is answered."""
IDLE = 0.1
"""Share of the time for which nothing may have been under way."""
SAFE = 0.5
"""Share of the time limit that calls are to take."""
LESS = 0.7
"""Share of a load that was too much which is tried again."""
MORE = 1.25
"""How many times as much it may be each time that it keeps a limit down; and by how much one may grow though
too little was answered yet to say whether more would be in time."""
FAR_LESS = 8
"""How many times fewer calls are tried where none was answered in time."""
WORSE = 0.75
"""Share of the replies a second before a cut, below which it was for nothing: fewer calls brought fewer."""
ENOUGH = 16
"""Replies from which on that is asked."""


class _Before(NamedTuple):
    """How it was before a cut."""

    load: int
    """Calls at once, though no more than were answered in time."""
    pace: float
    """Replies a second."""
    seconds: float


class TimeLimit:
    """How many calls at once are answered in time. Tell it what becomes of every call."""

    def __init__(self) -> None:
        self.seconds = math.inf
        """The shortest time limit known."""
        self._too_many = math.inf
        """Calls at once that ran out of time."""
        self._cut_at = float("-inf")
        self._since = 0.0
        """When the count began: with the first call of a batch, or with the first reply after a cut."""
        self._heard = 0.0
        """When the last reply came."""
        self._answered = self._late = 0
        self._share = SHARE
        """Of the calls answered, so many may run out of time whatever the load is."""
        self._before: _Before | None = None
        """What the last cut replaced, until it has been compared with what came after."""

    def on_send(self, *, now: float, in_flight: int) -> None:
        """A call left; `in_flight` counts it."""
        if in_flight == 1 and now - self._heard > IDLE * (now - self._since):
            self._begin(now)

    def _begin(self, now: float) -> None:
        self._since = now
        self._answered = self._late = 0

    def on_success(self, *, now: float, sent_at: float, in_flight: int) -> int | None:
        """A call was answered: how many are to run at once again, if the last cut was for nothing."""
        before = self._before
        if before is not None:
            if sent_at <= self._cut_at:
                return None
            if not self._answered:
                self._since = now
        self._answered += 1
        self._heard = now
        if before is None or self._answered + self._late <= max(ENOUGH, 2 * in_flight):
            return None
        self._before = None
        if self._pace(now) >= WORSE * before.pace:
            return None
        self._share = 2.0 * max(self._share, self._late / self._answered)
        self.seconds, self._too_many = before.seconds, math.inf
        return before.load

    def on_timeout(self, *, now: float, sent_at: float, in_flight: int) -> int | None:
        """A call ran out of time among so many: how many would not, if that is why."""
        if sent_at <= self._cut_at:
            return None
        self._late += 1
        if in_flight <= 1:
            return None
        few = FEWEST + self._share * self._answered
        if self._answered and (self._before is not None or self._late <= few):
            return None
        seconds = min(self.seconds, now - sent_at)
        fitting = in_flight // FAR_LESS
        if self._answered:
            fitting = math.ceil(SAFE * seconds * self._pace(now))
            self._before = _Before(min(in_flight, fitting), self._pace(now), self.seconds)
        self.seconds = seconds
        self._too_many, self._cut_at = in_flight, now
        self._begin(now)
        return max(1, min(fitting, in_flight // 2))

    def _pace(self, now: float) -> float:
        """Replies a second since the count began."""
        return self._answered / max(now - self._since, 1e-3)

    def is_known(self, sent_at: float) -> bool:
        """Whether a call left under a load that has turned out to be too much."""
        return sent_at <= self._cut_at

    def fitting(self, load: int, *, above: int, now: float) -> int:
        """So many of these calls as are answered in time, as far as is known; or a little more than now."""
        if math.isfinite(self.seconds) and self._answered:
            in_time = math.ceil(SAFE * self.seconds * self._pace(now))
            load = min(load, max(in_time, above + 1, round(MORE * above)))
        if load > LESS * self._too_many:
            load = int(LESS * self._too_many)
            self._too_many *= MORE
        return load
