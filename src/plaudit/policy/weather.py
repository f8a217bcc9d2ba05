"""Refusals that are not about load: where less load brings no fewer of them, load is not their cause.

Pure: no clock, no I/O. Load is the number of calls at once; for calls a second, see `Pace`. Calls are counted
by the load they met, and any load may be held to less of it: what was learned under far more, long ago, must
not hide that two smaller loads are refused alike.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from plaudit.policy.pace import SURE, PaceTrial, evidence

PER_DOUBLING = 4
"""Loads that are told apart between one load and twice as much."""
LOW = 0.85
"""Share of a load below which a call counts as sent under less load."""
FEWER = 6
"""Calls by which the load must be less at the least: a small capacity may change by a few."""
ENOUGH = 3
"""Refusals under less load from which on they are believed."""
MOST = 0.36
"""Where more than this share is refused under any load, it is no weather: nothing gets through."""
MEMORY = 192
"""Calls after which older ones count half."""
LENIENCY = 1.4
"""How many times the usual share of refusals is put down to the weather."""
MOST_EXCUSES = 12.0


@dataclass(slots=True)
class LoadTally:
    """Calls sent under some loads, and what became of them."""

    sent: float = 0.0
    load: float = 0.0
    """What they met, added up."""
    picked: float = 0.0
    """Refused, though the call right before was not: weather picks."""
    in_runs: float = 0.0
    """Refused right after another: a limit that is used up refuses all that follow."""
    at_edge: float = 0.0
    """Refused with more under way than when others were: it may be full."""

    @property
    def refused(self) -> float:
        return self.picked + self.in_runs + self.at_edge

    def add(self, other: LoadTally, share: float = 1.0) -> LoadTally:
        """Count the calls of another as well, or a share of them."""
        self.sent += share * other.sent
        self.load += share * other.load
        self.picked += share * other.picked
        self.in_runs += share * other.in_runs
        self.at_edge += share * other.at_edge
        return self

    def trial(self, refused: float) -> PaceTrial:
        """These calls, so many of them refused, with load in the place of a pace."""
        mean = self.load / self.sent
        return PaceTrial(mean, self.sent, refused, self.sent / mean)


class Weather:
    """The share of calls that is refused whatever the load, and whether a refusal is one of these."""

    def __init__(self) -> None:
        self.share = 0.0
        """Of all calls, those refused for reasons that have nothing to do with load."""
        self._tallies: dict[int, LoadTally] = {}
        """By load, in steps."""
        self._excuses = 0.0
        self._is_news = False

    def on_send(self, *, load: float, count: int = 1) -> None:
        """So many calls leave together, and bring about so much load."""
        if self._is_news:  # not at each refusal: those of a burst say something only together
            self._is_news = False
            self._estimate()
        tally = self._tally(load)
        tally.sent += count
        tally.load += count * load
        if self.share:
            self._excuses = min(self._excuses + LENIENCY * self.share * count, MOST_EXCUSES)

    def on_refusal(self, *, load: float, is_run: bool = False, is_at_edge: bool = False) -> bool:
        """A call sent under so much load was refused; True: put it down to the weather.

        `is_run` says that one sent right before or after it was refused, too; `is_at_edge`, that more were
        under way than when others were refused.
        """
        tally = self._tally(load)
        if tally.refused + 1.0 > tally.sent:
            return False  # sent before the count began
        if is_at_edge:
            tally.at_edge += 1.0
        elif is_run:
            tally.in_runs += 1.0
        else:
            tally.picked += 1.0
        self._is_news = True
        if self._excuses < 1.0:
            return False
        self._excuses -= 1.0
        return True

    def on_no_edge(self) -> None:
        """It was not full: far more were let in since."""
        for tally in self._tallies.values():
            tally.picked += tally.at_edge
            tally.at_edge = 0.0

    def withdraw(self, count: int) -> None:
        """So many of the last refusals came from an endpoint that let nothing in: they do not count."""
        left = float(count)
        for _, tally in sorted(self._tallies.items(), reverse=True):
            gone = min(left, tally.refused)
            edge = min(gone, tally.at_edge)
            runs = min(gone - edge, tally.in_runs)
            tally.at_edge -= edge
            tally.in_runs -= runs
            tally.picked -= gone - edge - runs
            rest = max(1.0 - gone / tally.sent, 0.0) if tally.sent else 0.0
            tally.sent, tally.load = rest * tally.sent, rest * tally.load
            left -= gone

    def forget(self) -> None:
        """Start over: load is not what limits the calls, or no longer."""
        self.__init__()  # type: ignore[misc]

    def _tally(self, load: float) -> LoadTally:
        step = round(PER_DOUBLING * math.log2(max(load, 1.0)))
        tally = self._tallies.get(step)
        if tally is None:
            tally = self._tallies[step] = LoadTally()
        return tally

    def _estimate(self) -> None:
        every = self._sum(0.0, math.inf)
        if every.sent > MEMORY:
            halves = {step: LoadTally().add(tally, 0.5) for step, tally in self._tallies.items()}
            self._tallies = {step: half for step, half in halves.items() if half.sent >= 0.5}
        found = max((self._share_below(step) for step in self._tallies), default=(0.0, 0.0))
        had_none = self.share == 0.0
        self.share = found[1] or min(self.share, every.picked / max(every.sent, 1.0))
        if had_none and self.share:
            self._excuses = MOST_EXCUSES  # for those that came together with this one

    def _sum(self, low: float, high: float) -> LoadTally:
        """All calls under loads from one up to, but not including, another."""
        found = LoadTally()
        for step, tally in self._tallies.items():
            if low <= 2.0 ** (step / PER_DOUBLING) < high:
                found.add(tally)
        return found

    def _share_below(self, step: int) -> tuple[float, float]:
        """The share refused of all calls under less load than this, if no fewer than under it.

        The first number is how many calls say so; both are 0 where they do not.
        """
        load = 2.0 ** (step / PER_DOUBLING)
        less, more = self._sum(0.0, min(LOW * load, load - FEWER)), self._sum(load, 2.0 * load)
        if less.picked < max(ENOUGH, less.in_runs + less.at_edge) or less.picked > MOST * less.sent:
            return 0.0, 0.0
        if not more.sent or evidence(more.trial(more.refused), less.trial(less.picked)) <= SURE:
            return 0.0, 0.0
        # Runs are no evidence of weather; but where it is found, some of them belong to it.
        return less.sent + more.sent, min(less.refused / less.sent, MOST)
