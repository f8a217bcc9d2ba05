"""Looks for the number of calls at once that brings the most replies a second, where nothing is refused.

Pure: no clock, no I/O. A few loads are tried, one after another, each for about a round; what all of them
showed (`LoadCurve`) says where more calls stop to bring more. A load that is settled on is doubted now and
then, less and less often: at first with a little less and a little more, later only with more, and at once
when calls take longer there than they did.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

from plaudit.policy.load_curve import LoadCurve

NEVER = float("inf")
LESS, MORE = 0.8, 1.25
"""Shares of a load that are tried when it is doubted."""
FEWEST = 8
"""Replies that a load needs at the least to show what it is like."""
HELD_UP, LIKELY, SURELY = 0.3, 0.5, 0.9
CHANGED = 1.5
"""How many times as long as before calls take where something has changed."""
SHARED = 0.85
"""Slope of latency over load up to which more calls still bring more: they share the server's steps."""
FLAT = 1.15
"""Slope of latency over load up to which more calls bring no less: they queue, and cost nothing."""
SPARE = 1.25
"""How many times the best load is settled on where more costs nothing: with less there are fewer replies."""
COLLAPSED = 0.5
"""Share of the most replies a second, below which a higher load has turned out to be far too much."""
FAR_SLOWER = 4.0
"""How many times as long as the quickest calls take where it is settled, for that to be far too much."""
ROUNDS, ROUNDS_KNOWN, MOST_ROUNDS = 4.0, 2.0, 32.0
"""Rounds of replies after which a load is first doubted, one that was remembered too, and at the latest."""


@dataclass(slots=True)
class Search:
    """Loads that are tried."""

    base: int
    """The load from which it began."""
    plan: list[int]
    """What is yet to be tried."""
    is_up: bool = False
    """Whether it only asks whether more calls bring more."""
    since: float = NEVER
    """When the load was reached that is tried now."""
    replies: int = 0
    """Replies to calls sent since then."""


class Move(NamedTuple):
    """What the limit is to do: try a load, settle on it, or go on from it, since more calls bring more."""

    to: Literal["try", "settle", "climb"]
    load: int


class Goodput(NamedTuple):
    """Replies a second under some load."""

    load: float
    per_second: float


class BestLoad:
    """The best load of one endpoint. Tell it of sends and replies; it says when to move, and where to."""

    def __init__(self, *, ceiling: int, settled_at: int | None = None, usual: float | None = None) -> None:
        self._ceiling = ceiling
        self.settled_at = settled_at
        """The load past which more calls were tried, and brought no more."""
        self.usual = usual
        """Seconds that the quicker calls take there."""
        self.search: Search | None = None
        self._curve = LoadCurve()
        self.is_shared = False
        """Whether calls take longer the more there are, and still more calls bring more replies."""
        self._may_share = True
        self._area, self._area_at, self._in_flight = 0.0, 0.0, 0
        self._is_checked = settled_at is not None
        """Whether less was tried as well."""
        self.rounds_to_doubt = ROUNDS if settled_at is None else ROUNDS_KNOWN
        self._last: list[float] = []
        """Seconds that the last calls took."""
        self._quickest = NEVER
        """Seconds that most of a few calls took when they were quickest."""
        self._replies = 0
        """Replies since it was settled."""
        self._round: list[float] = []
        """Seconds that those of the present round took."""
        self._most: Goodput | None = Goodput(settled_at, settled_at / usual) if settled_at and usual else None
        """The most replies a second that were seen, and the load that brought them."""
        self._sums = [0.0, 0.0, 0.0]
        """Replies of late, with the loads that their calls met and the seconds they took, added up."""

    def on_send(self, *, now: float, in_flight: int, limit: int) -> float:
        """A call left; `in_flight` counts it. The answer is to come back with its reply."""
        search = self.search
        if search is not None and search.since == NEVER and 0.9 * limit <= in_flight <= limit:
            search.since = now
        return self._note_load(now, in_flight)

    def _note_load(self, now: float, in_flight: int) -> float:
        """Calls under way, added up over time."""
        self._area += self._in_flight * (now - self._area_at)
        self._area_at, self._in_flight = now, in_flight
        return self._area

    def on_reply(self, *, now: float, sent_at: float, in_flight: int, area: float) -> float:
        """A reply came; `in_flight` still counts its call, and `area` is what its `on_send` said.

        The answer is the load that the call has met, on average.
        """
        self._note_load(now, in_flight)
        if self.search is not None:
            self.search.replies += sent_at >= self.search.since
        return (self._area - area) / (now - sent_at) if now > sent_at else in_flight

    def learn(self, *, load: float, seconds: float, tokens: int) -> None:
        """Keep for the search how long a call took under some load."""
        self._curve.add(load=load, seconds=seconds, tokens=tokens)

    def collapsed_from(self, *, load: float, seconds: float) -> int | None:
        """A call took so long under some load. Is that load far too much? Then, which one was better.

        Past a knee calls may take so long that no search comes to its end.
        """
        sums, most = self._sums, self._most
        self._last.append(seconds)
        if len(self._last) == 2 * FEWEST:
            self._quickest = min(self._quickest, sorted(self._last)[FEWEST])
            self._last.clear()
        sums[0] += 1.0
        sums[1] += load
        sums[2] += seconds
        if sums[0] < max(2 * FEWEST, load if most is None else min(load, most.load)):
            return None
        here = Goodput(sums[1] / sums[0], sums[1] / max(sums[2], 1e-9))
        self._sums = [0.0, 0.0, 0.0]
        if most is None or here.per_second > most.per_second:
            self._most = here
        elif here.load > MORE * most.load and here.per_second < COLLAPSED * most.per_second:
            self._most = None
            return max(1, round(most.load))
        return None

    def forget(self) -> None:
        """What was seen is no longer true, or was only seen of the calls that were answered in time."""
        self.search = self.settled_at = self._most = None
        self._curve.clear()
        self.is_shared = self._may_share = False  # where late ones are cut off, all seem to be quick

    @property
    def _shared_slope(self) -> float:
        """Slope of latency over load where the calls share the server; infinite where they do not."""
        slope = self._curve.shared_slope() if self._may_share else None
        return NEVER if slope is None else slope

    def on_no_gain(self) -> None:
        """A higher load brought no more: if the calls were taken to share the server, that is over there."""
        if self.is_shared:
            self.is_shared = self._may_share = False

    def bent_below(self, load: int) -> int | None:
        """The best load, if all the calls so far say that it is no more than this.

        A call meets half of a load on average while a batch comes to its end, and too much costs less than
        too little.
        """
        bend = self._curve.bend()
        if self._shared_slope < SHARED:
            return load
        if bend is None or max(bend.is_above, bend.is_below) > HELD_UP or 2.0 * bend.load >= load:
            return None
        return math.ceil(2.0 * bend.load)

    # -- searching ----------------------------------------------------------------------------------------

    def begin_below(self, base: int, *, is_proven: bool) -> Move | None:
        """More calls than these brought no more: look for the best load further down.

        Not where there were more replies at the base than with fewer calls (`is_proven`), unless all calls
        that came back since were held up: then the best is near by.
        """
        bend = self._curve.bend()
        if base == 1 or (is_proven and (bend is None or bend.is_below <= HELD_UP)):
            self._is_checked = True
            return None
        self.search = Search(base, [])
        return self._try(base // 2)

    def next_move(self, limit: int) -> Move | None:
        """Go on once the load that is tried has shown what it is like."""
        search = self.search
        assert search is not None
        if search.replies < max(FEWEST, limit):
            return None
        if search.plan:
            bend = self._curve.bend()
            if bend is None or bend.is_below < SURELY:
                return self._try(search.plan.pop(0))
        return self._conclude()

    def _try(self, load: int) -> Move:
        assert self.search is not None
        self.search.since, self.search.replies = NEVER, 0
        return Move("try", load)

    def _conclude(self) -> Move:
        """Settle where more calls stop to bring more, or look further."""
        assert self.search is not None
        search, bend = self.search, self._curve.bend()
        slope = self._shared_slope
        if bend is not None and (bend.is_above > LIKELY or slope < SHARED):
            self.is_shared = slope < SHARED
            self.search = None
            return Move("climb", round(bend.highest))
        if bend is None or search.is_up:
            return Move("settle", search.base)
        if bend.is_below > LIKELY and bend.lowest > 1.5 and bend.slope > FLAT:
            search.plan.clear()
            share = 0.7 if bend.lowest > 0.75 * search.base else 0.5
            return self._try(max(1, round(share * bend.lowest)))
        if slope < 1.0:  # a little more with every call
            return Move("settle", round(bend.highest))
        spare = SPARE if bend.slope <= FLAT else 1.0
        return Move("settle", max(1, math.ceil(spare * bend.load - 0.5)))

    # -- settled ------------------------------------------------------------------------------------------

    def settle(self, load: int) -> None:
        """Stay at this load for a while."""
        self.settled_at = load
        self.search = self.usual = None
        self._replies = 0
        self._round.clear()

    def doubt(self, load: int, *, seconds: float) -> None:
        """A reply took so long under a settled load: is it time to look around?"""
        self._replies += 1
        self._round.append(seconds)
        more, less = min(math.ceil(MORE * load), self._ceiling), max(1, math.floor(LESS * load))
        if self._replies > self.rounds_to_doubt * load:
            self.rounds_to_doubt = min(2.0 * self.rounds_to_doubt, MOST_ROUNDS)
            self._look_around(load, [more] if self._is_checked else [less, more], is_up=self._is_checked)
            self._is_checked = True
        elif len(self._round) >= max(16, load):
            self._round.sort()
            quick = self._round[len(self._round) // 4]  # all calls slow down, where it is not their kind
            self._round.clear()
            if self.usual is None:
                self.usual = quick
                if quick > FAR_SLOWER * self._quickest:
                    self._look_around(load, [max(1, load // 2)])
            elif quick > CHANGED * self.usual:
                self._look_around(load, [less])
            elif CHANGED * quick < self.usual:
                self._look_around(load, [more], is_up=True)

    def _look_around(self, load: int, plan: list[int], *, is_up: bool = False) -> None:
        self._curve.clear()
        self.search = Search(load, plan, is_up=is_up)
