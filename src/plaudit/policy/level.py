"""One height of the concurrency limit, and whether its first replies show that it was worth reaching."""

from __future__ import annotations

import bisect
import math
from dataclasses import dataclass, field

EIGHTH = 0.125
"""Share of a climb's calls whose replies decide: the fastest eighth, so that the answer comes early."""
HALF = 0.5
"""The same where there is no hurry: the median is less noisy."""
FEWEST = 4
MOST = 1024
"""Calls after which a level that was never full begins anew: what they took would be kept for ever."""
BEHIND = 2.0
"""By how many standard deviations replies must be too few for their calls to be held up."""
EXPLAINED = 0.8
"""Share of the variance that reply length must explain before latencies are corrected for it."""


@dataclass(slots=True)
class Level:
    """The calls sent while the limit rose to `target` met the new load from their start.

    What they took is compared with what such calls took on the level before. Where the endpoint counts its
    tokens and latency follows them, each reply is compared with one of its own length, and four replies say
    enough; otherwise the fastest eighth of one level is compared with the fastest eighth of the other. With n
    times the calls and the same latency, goodput has grown n times.
    """

    target: int
    base: int
    """The limit from which it rose."""
    began: float
    is_level: bool = False
    """Whether the limit stood there or came down to it: then the next calls count, once the load is right."""
    is_blind: bool = False
    """Whether it was reached without any proof."""
    is_return: bool = False
    """Whether it was held before, and is only come back to."""
    filled_at: float | None = None
    sent: int = 0
    later: int = 0
    """Replies to calls sent after it was full."""
    latencies: list[float] = field(default_factory=list)
    pairs: list[tuple[int, float]] = field(default_factory=list)
    """(tokens, latency) of the replies that came before the next level began."""
    line: tuple[float, float] | None = None
    """Latency by reply length, as intercept and slope; None where length does not explain it."""
    early: list[float] = field(default_factory=lambda: [0.0, 0.0, 0.0])
    """Replies to calls that met the new load only at their end: how many, how long they had to go when the
    level was full, and how long that took."""

    def on_send(self, *, now: float, in_flight: int) -> None:
        if self.filled_at is not None:
            return
        if self.sent >= max(MOST, 4 * self.target):
            self.began, self.sent = now, 0
            self.latencies.clear()
            self.pairs.clear()
        if self.is_level or self.is_blind:
            if in_flight > self.target:
                return
            if self.sent == 0:
                self.began = now
            self.sent += 1
            if self.sent >= max(8, self.target):
                self.filled_at = now
            return
        self.sent += 1
        if in_flight >= self.target:
            self.filled_at = now

    def on_success(self, *, now: float, sent_at: float, tokens: int) -> None:
        if self.sent and sent_at >= self.began and (self.filled_at is None or sent_at <= self.filled_at):
            bisect.insort(self.latencies, now - sent_at)
            self.pairs.append((tokens, now - sent_at))
        elif self.filled_at is not None and sent_at > self.filled_at:
            self.later += 1

    @property
    def is_stale(self) -> bool:
        """Whether two rounds of later calls are back: what has not come by now never will (failed, ended)."""
        return self.later > 2 * max(8, self.target) and not self.is_return

    def on_older(self, previous: Level, *, now: float, sent_at: float, tokens: int) -> None:
        """A reply came, perhaps to a call sent under less load: was it held up once there was more?"""
        if previous.line is None or self.filled_at is None or self.is_level:
            return
        intercept, slope = previous.line
        since = max(self.filled_at + intercept, sent_at)  # what came sooner was on its way already
        expected = sent_at + intercept + slope * tokens - since
        if expected > 0.0 and now > since:
            self.early[0] += 1.0
            self.early[1] += expected
            self.early[2] += now - since

    def is_held_up(self, previous: Level, *, now: float) -> bool:
        """Whether far fewer calls are back than were after as long on the level before.

        The first replies alone would mislead: those that take long are not among them.
        """
        if self.filled_at is None or not previous.sent:
            return False
        usual = self.sent * bisect.bisect_right(previous.latencies, now - self.filled_at) / previous.sent
        return len(self.latencies) < usual - BEHIND * math.sqrt(usual)

    def is_free(self, previous: Level | None, *, now: float) -> bool:
        """Whether calls already under way show that the new load costs them nothing: no knee is near."""
        if previous is None or self.filled_at is None or self.is_held_up(previous, now=now):
            return False
        count, expected, taken = self.early
        return count >= FEWEST and expected >= 0.5 * previous.pace() and taken <= 1.08 * expected

    def close(self) -> None:
        """Keep what was learned: replies that come from now on met another load."""
        self.line = fit(self.pairs)

    @property
    def needed(self) -> int:
        """How many replies decide, where reply length explains nothing."""
        return max(FEWEST, math.ceil((HALF if self.is_level else EIGHTH) * self.sent))

    def quantile(self, share: float) -> float | None:
        """The latency that this share of the level's calls did not exceed, if that many are back."""
        rank = math.ceil(share * self.sent)
        return self.latencies[rank - 1] if 0 < rank <= len(self.latencies) else None

    def pace(self) -> float:
        """A typical short latency at this level."""
        return self.latencies[min(self.needed, len(self.latencies)) - 1] if self.latencies else math.inf

    def overdue_at(self, previous: Level | None) -> float:
        """When to look again whether the absence of replies shows that there was no gain."""
        usual = self._usual(previous)
        if usual is None or self.filled_at is None or self.is_level:
            return math.inf
        is_scarce = 6 * len(self.latencies) <= self.needed
        return self.filled_at + usual * (1.5 if is_scarce else self.target / self.base)

    def gain_over(self, previous: Level | None, *, now: float) -> float | None:
        """Goodput here over goodput before; None: not known yet. The first level is held to nothing."""
        if self.filled_at is None:
            return None
        if previous is None:
            return math.inf if len(self.latencies) >= self.needed else None
        slowdown = self.slowdown_over(previous)
        if slowdown is not None and not self.is_held_up(previous, now=now):
            return self._calls_over(previous) / slowdown
        return 1.0 if now >= self.overdue_at(previous) else None

    def _calls_over(self, previous: Level) -> float:
        """How many times as many calls run here as did before."""
        return self.target / (self.base if self.target > previous.target else previous.target)

    def growth_over(self, previous: Level | None) -> float:
        """The same for calls that were added; 2 where none were, for then nothing but more of them counts."""
        growth = 2.0 if previous is None else self._calls_over(previous)
        return growth if growth > 1.0 else 2.0

    def slowdown_over(self, previous: Level) -> float | None:
        """How much longer calls take here than they took on the level before."""
        if previous.line is not None and len(self.pairs) >= (4 * FEWEST if self.is_level else FEWEST):
            intercept, slope = previous.line
            return sum(latency for _, latency in self.pairs) / sum(
                intercept + slope * tokens for tokens, _ in self.pairs
            )
        usual = self._usual(previous)
        if usual is None or usual <= 0.0 or len(self.latencies) < self.needed:
            return None
        return (self.quantile(self.needed / self.sent) or usual) / usual

    def _usual(self, previous: Level | None) -> float | None:
        """How long the deciding replies took on the level before."""
        return previous.quantile(self.needed / self.sent) if previous is not None and self.sent else None


def fit(pairs: list[tuple[int, float]]) -> tuple[float, float] | None:
    """The line through (tokens, latency), if the tokens explain the latency; neither part is negative."""
    n = len(pairs)
    if n < FEWEST:
        return None
    mean_x = sum(x for x, _ in pairs) / n
    mean_y = sum(y for _, y in pairs) / n
    var_x = sum((x - mean_x) ** 2 for x, _ in pairs)
    var_y = sum((y - mean_y) ** 2 for _, y in pairs)
    covariance = sum((x - mean_x) * (y - mean_y) for x, y in pairs)
    if var_x <= 0.0 or var_y <= 0.0 or covariance <= 0.0 or covariance**2 < EXPLAINED * var_x * var_y:
        return None
    slope = covariance / var_x
    if mean_y < slope * mean_x:
        return 0.0, mean_y / mean_x
    return mean_y - slope * mean_x, slope
