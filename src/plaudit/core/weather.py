"""Refusals that are not about load: where less load brings no fewer of them, load is not their cause.

Pure: no clock, no I/O. Load is whatever the sender controls: calls at once, or calls a second.
"""

from __future__ import annotations

LOW = 0.85
"""Share of the highest load below which a call counts as sent under less load."""
ENOUGH = 3
"""Refusals under less load from which on they are believed."""
MOST = 0.36
"""Where more than this share is refused under any load, it is no weather: nothing gets through."""
MEMORY = 192
"""Calls after which older ones count half."""
LENIENCY = 1.3
"""How many times the usual share of refusals is put down to the weather."""
MOST_EXCUSES = 8.0


class Weather:
    """The share of calls that is refused whatever the load, and whether a refusal is one of these."""

    def __init__(self) -> None:
        self.share = 0.0
        """Of all calls, those refused for reasons that have nothing to do with load."""
        self._peak = 0.0
        self._low = [0.0, 0.0, 0.0]
        """Calls sent under less load, how many were refused, and how many more right after such a one."""
        self._high = [0.0, 0.0, 0.0]
        self._excuses = 0.0
        self._is_news = False

    def on_send(self, *, load: float) -> None:
        """A call leaves under so much load, itself included."""
        if self._is_news:  # not at each refusal: those of a burst say something only together
            self._is_news = False
            self._estimate()
        if load * LOW > self._peak:  # what was much is little now
            self._low = [low + high for low, high in zip(self._low, self._high, strict=True)]
            self._high = [0.0, 0.0, 0.0]
            self._peak = load
        self._tally(load)[0] += 1.0
        self._excuses = min(self._excuses + LENIENCY * self.share, MOST_EXCUSES)

    def on_refusal(self, *, load: float, is_run: bool = False) -> bool:
        """A call sent under so much load was refused; True: put it down to the weather.

        `is_run` says that the call sent right before it was refused, too: weather picks, and rarely twice.
        """
        tally = self._tally(load)
        if tally[1] + tally[2] + 1.0 > tally[0]:
            return False  # sent before the count began
        tally[2 if is_run else 1] += 1.0
        self._is_news |= not is_run
        if self._excuses < 1.0:
            return False
        self._excuses -= 1.0
        return True

    def withdraw(self, count: int) -> None:
        """So many of the last refusals came from an endpoint that let nothing in: they do not count."""
        for tally in (self._high, self._low):
            for kind in (2, 1):
                gone = min(float(count), tally[kind])
                tally[0] -= gone
                tally[kind] -= gone
                count -= int(gone)

    def forget(self) -> None:
        """Start over: load is measured in another unit from now on."""
        self.__init__()  # type: ignore[misc]

    def _tally(self, load: float) -> list[float]:
        return self._low if load < LOW * self._peak else self._high

    def _estimate(self) -> None:
        sent, refused = self._low[0] + self._high[0], self._low[1] + self._high[1]
        if sent > MEMORY:
            for tally in (self._low, self._high):
                tally[:] = [count / 2.0 for count in tally]
        if self._low[1] < ENOUGH:
            self.share = min(self.share, refused / max(sent, 1.0))
            return
        under_less = self._low[1] / self._low[0]
        under_more = (self._high[1] + self._high[2]) / self._high[0] if self._high[0] else 0.0
        is_unrelated = under_less >= 0.8 * under_more and under_less <= MOST
        was_none = self.share == 0.0
        self.share = refused / sent if is_unrelated else min(self.share, under_less)
        if was_none and self.share:
            self._excuses = MOST_EXCUSES  # for those that came together with this one
