"""How many calls may run at once: found by probing, one endpoint at a time.

Pure: no clock, no I/O. The caller says what happened and when it happened.

Four kinds of server have to be told apart, and none of them says which it is:
- one that *rejects* past its capacity: the rejection comes at once, so the calls that stay are the capacity;
- one that *queues in silence*: more calls bring no more replies, only longer waits;
- one that *thrashes*: more calls bring fewer replies;
- one that limits the *rate*: it rejects too, but soon accepts more calls than were under way when it did.

The limit grows level by level. The first level doubles the start blindly. After that a level must show, by
its first replies, that more calls brought more replies (`Level`), or the limit goes back to where it was.
A rejection ends the growth at once; from then on the limit is probed with single calls, then two, then four.
"""

from __future__ import annotations

from dataclasses import dataclass

from plaudit.core.level import Level

NEVER = float("inf")
STRIKES = 4
"""Rejections in a row, each at another height, after which they are put down to a rate."""


@dataclass(frozen=True, slots=True)
class LimitConfig:
    start: int = 32
    ceiling: int = 4096
    """The user's max_concurrent: never crossed."""
    is_known: bool = False
    """Whether `start` was learned earlier; a known limit is not doubled blindly."""
    rejects: bool = False
    """Whether the endpoint is known to turn away what is too much; then a known limit is only probed."""
    step_every: float = 0.05
    """Seconds between two steps of growth, until replies and rejections show the server's own pace."""
    gain: float = 1.1
    """How much more goodput a level must bring to justify the next."""
    bold: int = 128
    """Up to here a proven level is doubled; past it, it grows by half."""


class ConcurrencyLimit:
    """The limit on calls in flight to one endpoint. Read `limit`; call `grow` while calls wait for it."""

    def __init__(self, config: LimitConfig | None = None) -> None:
        self._config = config or LimitConfig()
        self.limit = self._bounded(self._config.start)
        self.cause = "start"
        self.is_rate = False
        """Whether the endpoint turned out to limit the rate: then the pace governs, not the number."""
        first = self.limit if self._config.is_known else self._bounded(2 * self.limit)
        self._level: Level | None = Level(target=first, base=self.limit, began=0.0, is_blind=True)
        self.is_learned = self._config.is_known
        """Whether the limit rests on evidence, and is worth remembering."""
        self._previous: Level | None = None
        self._step = self.limit
        self._step_every = self._config.step_every
        self._step_at: float | None = None
        self.cut_at = float("-inf")
        """When the limit was last cut because of a rejection or a timeout."""
        self._cut_to: int | None = None
        self._cuts_in_a_row = 0
        self.reject_time = 0.0
        """Seconds that the last rejection took to come back."""
        self._replies_since_cut = 0
        self._replies = 0
        self._peak = 0
        """The most calls under way since the last cut."""
        self._floor = 1
        self._height = 0
        self._confirmations = 0
        self._strikes = 0
        self._anchor_at: int | None = None
        self._anchor_replies = 0
        self._rounds_to_doubt = 4.0
        if self._config.is_known and self._config.rejects:
            self._level = None
            self._cut_to = self.limit

    @property
    def is_capacity(self) -> bool:
        """Whether it is known to be a number of calls at once: rejections come at the same height."""
        return self._confirmations > 0

    @property
    def has_rejected(self) -> bool:
        """Whether the endpoint turns away what is too much."""
        return self._cut_to is not None

    # -- what happened ------------------------------------------------------------------------------------

    def on_send(self, *, now: float, in_flight: int) -> None:
        """A call left; `in_flight` counts it."""
        self._peak = max(self._peak, in_flight)
        if self._level is not None:
            self._level.on_send(now=now, in_flight=in_flight)

    def on_success(self, *, now: float, sent_at: float, in_flight: int, tokens: int = 0) -> None:
        """A call came back with a reply of so many tokens; `in_flight` still counts it."""
        self._replies_since_cut += 1
        self._replies += 1
        if self._previous is not None:
            self._previous.on_success(now=now, sent_at=sent_at, tokens=tokens)
        if self._level is not None:
            self._level.on_success(now=now, sent_at=sent_at, tokens=tokens)
            self._judge(now)
        elif self._cut_to is None and in_flight >= self.limit:
            self._doubt(now)

    def _doubt(self, now: float) -> None:
        """Question a limit that has stood for a while: measure it anew, then a little more than it."""
        if self._replies_since_cut > self._rounds_to_doubt * self.limit:
            self._rounds_to_doubt = min(2.0 * self._rounds_to_doubt, 32.0)
            self._level = Level(target=self.limit, base=self.limit, began=now, is_level=True)
            self._previous = None

    def on_reject(self, *, now: float, sent_at: float, accepted: int, fresh: int = 0) -> None:
        """A call was turned away; `accepted` calls that left no later than it are still under way.

        `fresh` of these left after the last cut (`cut_at`) and long enough ago to have been rejected too.
        """
        if self.is_rate:
            return
        self._level = None
        self.is_learned = True
        if sent_at > self.cut_at:  # else it is one of a burst already cut for
            # Far below the limit a rejection is no measure of it: believe it by halves.
            self._floor = self.limit // 2 if 2 * self._peak < self.limit else 1
            self._peak = accepted
            self._anchor(accepted)
            self._begin_cut(now, accepted, fresh, reject_time=now - sent_at)
            if self._cuts_in_a_row:
                accepted = int(accepted * max(0.75, 0.9**self._cuts_in_a_row))
        if not self.is_rate:
            self._cut_to = max(self._floor, min(self.limit, accepted))
            self._set(self._cut_to, "rejected")

    def on_timeout(self, *, now: float, in_flight: int) -> None:
        """A call was given up unanswered: the server may hold more than it can serve."""
        if now - self.cut_at < 1.0:
            return  # one of many that left together
        self.cut_at = now
        self._level = None
        self._replies_since_cut = 0
        self._set(max(1, min(self.limit, in_flight) * 7 // 10), "timeout")

    def _anchor(self, accepted: int) -> None:
        """Remember the height of a rejection, unless the last one is recent: then compare with that."""
        if self._exceeds_anchor(accepted):
            self._turn_to_rate()
        elif self._is_anchor_recent and self._anchor_at is not None:
            self._anchor_at = min(self._anchor_at, accepted)
        else:
            self._anchor_at = accepted
            self._anchor_replies = self._replies

    @property
    def _is_anchor_recent(self) -> bool:
        return self._anchor_at is not None and self._replies - self._anchor_replies <= 0.5 * self._anchor_at

    def _exceeds_anchor(self, accepted: int) -> bool:
        """Whether more are under way than when it rejected, though few came back: no capacity does that."""
        return (
            self._anchor_at is not None and self._is_anchor_recent and accepted >= 1.25 * self._anchor_at + 3
        )

    def _confirm(self, accepted: int, fresh: int) -> None:
        """Compare this rejection with the last: a capacity stays at its height, a rate does not.

        Where nothing was accepted in between, a capacity is falling; that tells nothing.
        """
        if abs(accepted - self._height) <= max(2.0, 0.05 * self._height):
            self._confirmations += 1
            self._strikes = 0
            return
        self._height = accepted
        self._confirmations = 0
        if fresh > 0:
            self._strikes += 1
            if self._strikes >= STRIKES:
                self._turn_to_rate()

    def _turn_to_rate(self) -> None:
        self.is_rate = True
        self._set(self._config.ceiling, "limited by rate")

    def _begin_cut(self, now: float, accepted: int, fresh: int, *, reject_time: float) -> None:
        self._confirm(accepted, fresh)
        self._cuts_in_a_row = self._cuts_in_a_row + 1 if self.cause == "rejected" else 0
        self.cut_at = now
        self.reject_time = reject_time
        self._replies_since_cut = 0
        self._step = max(1, self.limit // 64)
        self._step_every = max(1.5 * reject_time, self._config.step_every / 2)
        self._step_at = now + self._step_every

    # -- growing ------------------------------------------------------------------------------------------

    def grow(self, *, now: float, accepted: int) -> float:
        """Grow if it is time to, because calls wait; the answer is the time to ask again.

        `accepted` counts the calls under way that would have been rejected by now, were they to be.
        """
        if self._level is None:
            return self._probe(now, accepted) if self._cut_to is not None else NEVER
        self._judge(now)
        if self._level is None or self.limit >= self._level.target:
            return self._level.overdue_at(self._previous) if self._level is not None else NEVER
        return self._climb(now, self._level.target, "level")

    def _probe(self, now: float, accepted: int) -> float:
        if self._exceeds_anchor(accepted):
            self._turn_to_rate()
            return now
        # A capacity confirmed at the same height is asked less and less often: each question is a rejection.
        pause = min(16 * 2**self._confirmations, max(64, 4 * self.limit)) if self._confirmations else 0
        if self._replies_since_cut < pause:
            return NEVER
        return self._climb(now, self._config.ceiling, "probe")

    def _climb(self, now: float, top: int, cause: str) -> float:
        if self._step_at is None:
            self._step_at = now + self._step_every
        if self.limit >= top:
            return NEVER
        if now >= self._step_at:
            self._set(min(self.limit + self._step, top), cause)
            is_probe = cause == "probe"
            self._step = min(2 * self._step, max(1, self.limit // 4)) if is_probe else self.limit // 16 + 1
            self._step_at = now + self._step_every
        return self._step_at

    def _judge(self, now: float) -> None:
        """Ask whether the level under way has shown enough to go on from it, or back."""
        level, previous = self._level, self._previous
        gain = level.gain_over(previous, now=now) if level is not None else None
        if level is None or gain is None:
            return
        self.is_learned = True
        if previous is not None and level.target < previous.target:  # looking for the knee further down
            if gain >= 1.0:
                self._open_below(now)
            else:
                self._settle(previous.target, "no gain")
        elif level.is_level and previous is not None:
            self._settle(level.target if gain >= self._config.gain else previous.target, "doubt")
        elif gain >= self._config.gain:
            self._step_every = min(self._config.step_every, level.pace() / 16.0)
            self._open(now, self._next_target(level))
        elif previous is not None and previous.is_blind:
            self._level = previous
            self._open_below(now)
        else:
            self._settle(level.base, "no gain")

    def _next_target(self, level: Level) -> int:
        if level.is_level:
            return max(level.target + 1, round(1.25 * level.target))
        return round((2.0 if level.target < self._config.bold else 1.5) * level.target)

    def _open(self, now: float, target: int) -> None:
        """Begin to climb to a new level."""
        target = self._bounded(target)
        if target <= self.limit:
            self._settle(self.limit, "ceiling")
            return
        self._previous = self._level
        if self._previous is not None:
            self._previous.close()
        is_doubt = self._level is not None and self._level.is_level
        self._level = Level(target=target, base=self.limit, began=now, is_level=is_doubt)
        self._step = self.limit // 16 + 1
        self._step_at = now

    def _open_below(self, now: float) -> None:
        """Begin to try half of a level that was never proven."""
        assert self._level is not None
        target = self._level.target // 2
        if target < 1:
            self._settle(1, "no gain")
            return
        self._previous = self._level
        if self._previous is not None:
            self._previous.close()
        self._level = Level(target=target, base=target, began=now, is_level=True)
        self._set(target, "thrashing")

    def _settle(self, limit: int, cause: str) -> None:
        self._level = None
        self._replies_since_cut = 0
        self._set(max(1, limit), cause)

    def _bounded(self, limit: int) -> int:
        return max(1, min(limit, self._config.ceiling))

    def _set(self, limit: int, cause: str) -> None:
        self.limit = limit
        self.cause = cause
