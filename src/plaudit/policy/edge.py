"""Where an endpoint begins to refuse, and whether that is for the number of calls at all.

Pure: no clock, no I/O. Refusals come in bursts: what was too much is refused within a moment. Nothing is
concluded from a burst before the fate of all calls that left with it is known; then the calls that stayed
are the *height* at which the endpoint refuses. The same height again confirms it. A burst that picked its
calls, or after which many more were let in, was not for load.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

NEVER_REFUSED = -1_000_000
ALONE = 16
"""Calls between two refusals from which on a single one may have any cause."""
FEW = 8
"""Calls under way from which on one more or less may be a matter of the moment."""
SOLID = 5
"""Refusals at the same moment that make sure where the capacity ends."""
FATE = 1.5
"""How many times as long as refusals take it may be until the fate of a call is known."""
CHALLENGE_FATE = 3.0
"""The same for calls sent to challenge a height: nothing is lost by waiting for them."""


class Anchor(NamedTuple):
    """Where a refusal was sure."""

    height: int
    replies: int
    """Replies until then."""
    at: float


@dataclass(frozen=True, slots=True)
class Height:
    """Where the endpoint refused, as far as is believed."""

    calls: int = -1
    """Calls that stayed; -1 where it never refused."""
    confirmations: int = 0
    """How often in a row it was the same."""
    anchor: Anchor | None = None

    def is_same(self, calls: int) -> bool:
        """Whether it refused at this height. Of a few calls each counts: one, then two, are no capacity."""
        return abs(calls - self.calls) <= max(self.calls >= FEW, 0.05 * self.calls)


class Edge:
    """What refusals say. Tell it of every refusal and reply; `settle` it when a burst's fate is known."""

    def __init__(self, known: int | None = None) -> None:
        self.height = Height() if known is None else Height(known)
        self.cut_at = float("-inf")
        """When the first refusal of the last burst came, or a timeout cut the limit."""
        self.refuse_time = 0.0
        """Seconds that the last refusals took to come back."""
        self.first_refused = 0.0
        """When the first refused calls of the burst left."""
        self.is_in_doubt = False
        """Whether it is open what several refusals at once mean."""
        self.is_weak = False
        """Whether the last cut rests on so little that later calls may show it was for nothing."""
        self.challenged_by = 0
        """Calls more than stayed that have left at once since then, to see whether they are refused."""
        self.answered_at = float("-inf")
        """When that is known at the latest."""
        self.replies_since_cut = self.replies = 0
        self._picked = 0
        """Whether refusals picked some of the calls sent together (above 0), or all from one on (below 0)."""
        self.stood = 0
        """The most calls that stood since then, for so long that they must have been let in."""
        self.stayed = 0
        """Calls that stayed in the last burst, as far as is known.

        Some arrive before others that left earlier: only the whole burst says how many were too many.
        """
        self._in_burst = 0
        self._is_tolerated = False
        self._last_refused = NEVER_REFUSED

    @property
    def known_at(self) -> float:
        """When it is known which of the calls that left before the cut were refused."""
        return self.cut_at + FATE * self.refuse_time

    def on_reply(self) -> None:
        self.replies_since_cut += 1
        self.replies += 1

    def begin(self, *, now: float, left_at: float, order: int, may_be_alone: bool) -> None:
        """A burst begins with a call that left at this moment, in this place of the order."""
        self._in_burst = self.stayed = 0
        self.answered_at = float("-inf")
        self.first_refused = left_at
        self.cut_at = now
        self._is_tolerated = may_be_alone and order - self._last_refused >= ALONE

    def add(self, *, accepted: int, seconds: float, order: int) -> bool:
        """Count a refusal into the burst; whether the limit is to be cut for it.

        So many calls that were under way with it, and with those that left together, were not refused so far.
        """
        self._last_refused = order
        self._in_burst += 1
        self.stayed = max(self.stayed - 1, accepted)
        if self._in_burst == 1 and self._is_tolerated:
            return False
        # The slowest of a burst: a busy machine must not make calls look let in.
        self.refuse_time = seconds if self.is_first else max(self.refuse_time, seconds)
        self.is_in_doubt = True
        return True

    @property
    def is_first(self) -> bool:
        """Whether the last refusal was the first of its burst that counts."""
        return self._in_burst == 1 + self._is_tolerated

    def settle(self, stayed: int, *, now: float, beside: int, later: int) -> bool:
        """The fate of all calls that left before the cut is known: so many stayed. True if that is no news.

        Some of those let in left `beside` the first ones refused, in the same moment, some `later`. Calls
        that leave together arrive in any order; but a capacity or a rate that is used up refuses all that
        leave later, and most of too large a step. Only weather picks.
        """
        self.is_in_doubt = False
        self.stood = stayed
        is_same = self.height.is_same(stayed)
        if is_same:
            self.height = replace(self.height, confirmations=self.height.confirmations + 1)
        else:
            self.height = replace(self.height, calls=stayed, confirmations=0)
            self.is_weak, self.challenged_by = True, 0
        self.replies_since_cut = 0
        if 4 * later > self._in_burst:
            self._picked = min(self._picked + 1, 3)
        elif beside < self._in_burst and self._in_burst > 1:
            self._picked = max(self._picked - 1, -3)
            if self._in_burst >= SOLID:
                self.is_weak = False
                self._set_anchor(stayed, now)
        return is_same

    def is_exceeded(self, standing: int) -> bool:
        """Whether more calls stand than when a few were refused: those were not refused for load."""
        if self.challenged_by:
            return self.is_weak and standing > self.height.calls + self.challenged_by / 2
        return self.is_weak and not self.height.confirmations and standing > 1.05 * self.height.calls + 2

    @property
    def is_to_challenge(self) -> bool:
        """Whether it refused at the same height again, and though others were let in: it is not away."""
        return self.is_weak and self.height.confirmations > 0 and self._picked > 0 and not self.challenged_by

    def challenge(self, more: int, *, now: float) -> float:
        """So many more calls leave at once; the answer is when it is known whether they were refused."""
        self.challenged_by, self.answered_at = more, now + CHALLENGE_FATE * self.refuse_time
        return self.answered_at

    def withdraw(self) -> None:
        """The last burst says nothing."""
        self.is_weak = self.is_in_doubt = False

    def forget(self) -> None:
        """Nothing was ever refused for load."""
        self.withdraw()
        self.height = Height()

    def forget_last(self) -> None:
        """What a shut door refused says nothing of the next refusal."""
        self._last_refused = NEVER_REFUSED

    # -- rates --------------------------------------------------------------------------------------------

    def _set_anchor(self, calls: int, now: float) -> None:
        """Remember where a refusal was sure, unless the last one is recent: then compare with that."""
        anchor = self.height.anchor
        if anchor is None or not self._is_recent(anchor):
            self.height = replace(self.height, anchor=Anchor(calls, self.replies, now))
        elif calls <= anchor.height:
            self.height = replace(self.height, anchor=anchor._replace(height=calls))

    def _is_recent(self, anchor: Anchor, *, rounds: float = 0.5) -> bool:
        """Whether few calls came back since the anchor was set."""
        return self.replies - anchor.replies <= max(8.0, rounds * anchor.height)

    def is_passed(self, standing: int) -> bool:
        """Whether far more calls stand than when it refused: then that was not for their number."""
        return standing > 1.5 * max(self.height.calls, 16)

    def rate(self, standing: int, *, now: float, is_stray: bool) -> float | None:
        """Calls a second that were let in, where that is what it limits: more stand, though few came back.

        Where the refusals were `is_stray`, only far more count.
        """
        anchor = self.height.anchor
        if anchor is None:
            return None
        if standing >= 1.25 * anchor.height + 3 and self._is_recent(anchor) and not is_stray:
            pass
        elif not (self.is_passed(standing) and self._picked < 0 and self._is_recent(anchor, rounds=2.0)):
            return None
        let_in = standing - anchor.height + self.replies - anchor.replies
        return let_in / max(now - anchor.at, 1e-3)
