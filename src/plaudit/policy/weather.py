"""Refusals that are not about load: where less load brings no fewer of them, load is not their cause.

Pure: no clock, no I/O. Load is the number of calls at once; for calls a second, see `Pace`.
"""

from __future__ import annotations

from dataclasses import dataclass

LOW = 0.85
"""Share of the highest load below which a call counts as sent under less load."""
FEWER = 6
"""Calls by which the load must be less at the least: a small capacity may change by a few."""
ENOUGH = 3
"""Refusals under less load from which on they are believed."""
NO_FEWER = 0.6
"""Share of the refusals under more load that there must be under less, for load not to be their cause."""
MOST = 0.36
"""Where more than this share is refused under any load, it is no weather: nothing gets through."""
MEMORY = 192
"""Calls after which older ones count half."""
LENIENCY = 1.4
"""How many times the usual share of refusals is put down to the weather."""
MOST_EXCUSES = 12.0


@dataclass(slots=True)
class LoadTally:
    """Calls sent under more or under less load, and what became of them."""

    sent: float = 0.0
    picked: float = 0.0
    """Refused, though the call right before was not: weather picks."""
    in_runs: float = 0.0
    """Refused right after another: a limit that is used up refuses all that follow."""

    def add(self, other: LoadTally) -> None:
        self.sent += other.sent
        self.picked += other.picked
        self.in_runs += other.in_runs

    def halve(self) -> None:
        self.sent /= 2.0
        self.picked /= 2.0
        self.in_runs /= 2.0


class Weather:
    """The share of calls that is refused whatever the load, and whether a refusal is one of these."""

    def __init__(self) -> None:
        self.share = 0.0
        """Of all calls, those refused for reasons that have nothing to do with load."""
        self._peak = 0.0
        self._less, self._more = LoadTally(), LoadTally()
        self._excuses = 0.0
        self._is_news = False

    def on_send(self, *, load: float) -> None:
        """A call leaves under so much load, itself included."""
        if self._is_news:  # not at each refusal: those of a burst say something only together
            self._is_news = False
            self._estimate()
        if load * LOW > self._peak:  # what was much is little now
            self._less.add(self._more)
            self._more = LoadTally()
            self._peak = load
        self._tally(load).sent += 1.0
        if self.share:
            self._excuses = min(self._excuses + LENIENCY * self.share, MOST_EXCUSES)

    def on_refusal(self, *, load: float, is_run: bool = False) -> bool:
        """A call sent under so much load was refused; True: put it down to the weather.

        `is_run` says that the call sent right before it was refused, too.
        """
        tally = self._tally(load)
        if tally.picked + tally.in_runs + 1.0 > tally.sent:
            return False  # sent before the count began
        if is_run:
            tally.in_runs += 1.0
        else:
            tally.picked += 1.0
        self._is_news = True
        if self._excuses < 1.0:
            return False
        self._excuses -= 1.0
        return True

    def withdraw(self, count: int) -> None:
        """So many of the last refusals came from an endpoint that let nothing in: they do not count."""
        left = float(count)
        for tally in (self._more, self._less):
            gone = min(left, tally.picked + tally.in_runs)
            runs = min(gone, tally.in_runs)
            tally.in_runs -= runs
            tally.picked -= gone - runs
            tally.sent = max(tally.sent - gone, 0.0)
            left -= gone

    def forget(self) -> None:
        """Start over: load is not what limits the calls, or no longer."""
        self.__init__()  # type: ignore[misc]

    def _tally(self, load: float) -> LoadTally:
        return self._less if load < min(LOW * self._peak, self._peak - FEWER) else self._more

    def _estimate(self) -> None:
        less, more = self._less, self._more
        sent = max(less.sent + more.sent, 1.0)
        if sent > MEMORY:
            less.halve()
            more.halve()
        if less.picked < ENOUGH:
            self.share = min(self.share, (less.picked + more.picked) / sent)
            return
        under_less = less.picked / less.sent
        under_more = (more.picked + more.in_runs) / more.sent if more.sent else 0.0
        was_none = self.share == 0.0
        if NO_FEWER * under_more <= under_less <= MOST:
            # Runs are no evidence of weather; but where it is found, some of them belong to it.
            self.share = min((less.picked + min(less.in_runs, less.picked)) / less.sent, MOST)
        else:
            self.share = min(self.share, under_less)
        if was_none and self.share:
            self._excuses = MOST_EXCUSES  # for those that came together with this one
