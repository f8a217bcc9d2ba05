"""How many calls may run at once: found by probing, one endpoint at a time.

Pure: no clock, no I/O. The caller says what happened and when it happened.

Four kinds of server have to be told apart, and none of them says which it is:
- one that *refuses* past its capacity: the refusal comes at once, so the calls that stay are the capacity;
- one that *queues in silence*: more calls bring no more replies, only longer waits;
- one that *thrashes*: more calls bring fewer replies;
- one that limits the *rate*: it refuses too, but soon accepts more calls than were under way when it did.

Without refusals the limit grows level by level: each must show, by its first replies, that more calls brought
more replies (`Level`), or the limit goes back to where it was. A refusal for load sets the limit to the calls
that stay; from then on it is probed with single calls, then two, then four. Refusals that are not for load
(an endpoint that lets nothing in, or refuses some whatever the load) are told apart by `Breaker` and
`Weather`, and never get here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from plaudit.policy.best_load import BestLoad, Move, Search
from plaudit.policy.edge import ALONE, FATE, SOLID, Edge, Height
from plaudit.policy.level import Level
from plaudit.policy.time_limit import TimeLimit

NEVER = float("inf")
START = 64
"""Calls at once for an endpoint of which nothing is known."""
LARGEST_STEP = 128
"""Calls by which a limit grows at once: what is too much is refused."""
MOST_CHALLENGED = 32
"""Calls beyond a limit that are sent at once to see whether it is one."""
SLOW = 1.35
"""How many times as long calls may take on a higher level before the best is looked for below it."""


@dataclass(frozen=True, slots=True)
class LimitConfig:
    start: int = START
    ceiling: int = 4096
    """The user's max_concurrent: never crossed."""
    is_known: bool = False
    """Whether `start` was learned earlier: the next level is held to what it brings."""
    refuses: bool = False
    """Whether the endpoint is known to refuse what is too much; then a known limit is only probed."""
    is_settled: bool = False
    """Whether more than a known limit was tried, and brought no more."""
    usual: float | None = None
    """Seconds that the quicker calls took then."""
    collapses_at: int | None = None
    """Calls at once that are known to bring the endpoint down."""
    step_every: float = 0.05
    """Seconds between two steps of growth, until replies and refusals show the server's own pace."""
    gain: float = 1.1
    """How much more goodput twice the calls must bring to justify the next level."""


class _Belief(NamedTuple):
    """What a cut replaces, and what comes back where the cut was for nothing."""

    limit: int
    cause: str
    refuses: bool
    is_learned: bool
    settled_at: int | None
    search: Search | None
    level: Level | None
    previous: Level | None
    height: Height


class ConcurrencyLimit:
    """The limit on calls in flight to one endpoint. Read `limit`; call `grow` while calls wait for it."""

    def __init__(self, config: LimitConfig | None = None) -> None:
        self._config = config or LimitConfig()
        self.limit = self._bounded(self._config.start)
        self.cause = "start"
        self.rate: float | None = None
        """Calls a second that were let in, once the endpoint turned out to limit that, not the number."""
        self.allowance: int | None = None
        """Requests that the endpoint says it still takes: who counts them does not thrash."""
        self.is_learned = self._config.is_known
        """Whether the limit rests on evidence, and is worth remembering."""
        self.refuses = self._config.is_known and self._config.refuses
        """Whether the endpoint refuses what is too much: then replies need not prove a limit."""
        is_settled = self._config.is_known and self._config.is_settled and not self.refuses
        self._best = BestLoad(
            ceiling=self._config.ceiling,
            settled_at=self.limit if is_settled else None,
            usual=self._config.usual,
        )
        self._level: Level | None = None
        if not self.refuses and not is_settled:
            self._level = Level(target=self.limit, base=self.limit, began=0.0, is_blind=True)
        self._has_gained, self._cautious = is_settled, 0
        """Whether more calls at once have ever brought more replies; and how many levels are yet to be
        reached by smaller steps, because the best load should be near."""
        self._previous: Level | None = None
        self._interrupted: Level | None = None
        """The level that was under way when the endpoint let nothing in."""
        self._factor, self._step, self._step_every = 2.0, 1, self._config.step_every
        self._step_at: float | None = None
        self._probe_from = float("-inf")
        self._highest = self.limit
        """The limit before the first of the cuts that nothing has confirmed since."""
        self.edge = Edge(self.limit if self.refuses else None)
        self.time_limit = TimeLimit()
        self.restored = 0
        """How often far more were let in than when a few were refused."""
        self.proven = 0
        """The most calls under way when one of them was answered."""
        self._before = self._belief()
        """What was believed before the last cut."""

    # -- what happened ------------------------------------------------------------------------------------

    @property
    def believed(self) -> int:
        """The limit to go on from another time, and not where an outage has left it for the moment."""
        if self._level is not None and self._level.is_return:
            return self._level.target
        return self._best.settled_at or self.limit

    @property
    def bent_at(self) -> int | None:
        """The best limit, where the run ends before one was settled on, and it was passed."""
        if self.refuses or self.rate is not None or self.is_settled:
            return None
        return self._best.bent_below(self.limit)

    @property
    def usual(self) -> float | None:
        """Seconds that the quicker calls take under a settled limit."""
        return self._best.usual

    @property
    def is_settled(self) -> bool:
        """Whether more calls at once than `believed` were tried, and brought no more."""
        return self._best.settled_at is not None

    def on_send(self, *, now: float, in_flight: int) -> float:
        """A call left; `in_flight` counts it. The answer is to come back with its reply, as `area`."""
        self.time_limit.on_send(now=now, in_flight=in_flight)
        if self._level is not None:
            self._level.on_send(now=now, in_flight=in_flight)
        return self._best.on_send(now=now, in_flight=in_flight, limit=self.limit)

    def on_success(
        self, *, now: float, sent_at: float, in_flight: int, tokens: int = 0, area: float | None = None
    ) -> None:
        """A call came back with a reply of so many tokens; `in_flight` still counts it."""
        load = float(in_flight)
        if area is not None and not self.refuses and self.rate is None:
            load = self._best.on_reply(now=now, sent_at=sent_at, in_flight=in_flight, area=area)
            if self._level is not None or self._best.search is not None:
                self._best.learn(load=load, seconds=now - sent_at, tokens=tokens)
            better = self._best.collapsed_from(load=load, seconds=now - sent_at)
            if better is not None and better < self.limit:
                self._settle(better, "no gain")
                self._best.rounds_to_doubt = 1.0
        self.edge.on_reply()
        before = self.time_limit.on_success(now=now, sent_at=sent_at, in_flight=in_flight)
        if before is not None and before > self.limit and self.rate is None:
            self._set(self._bounded(before), "timeouts are not for load")
            self._stand(now)
        self.proven = max(self.proven, in_flight)
        level, previous = self._level, self._previous
        if self._is_stray:  # what it interrupted may go on, and needs its replies then
            level, previous = self._before.level, self._before.previous
        if previous is not None:
            previous.on_success(now=now, sent_at=sent_at, tokens=tokens)
        if level is not None:
            level.on_success(now=now, sent_at=sent_at, tokens=tokens)
            if previous is not None:
                level.on_older(previous, now=now, sent_at=sent_at, tokens=tokens)
        if self._level is not None:
            self._judge(now)
            if self._level is not None and self._level.is_stale:
                self._measure_anew(now)
        elif self._best.search is not None:
            self._move(self._best.next_move(self.limit), now)
        elif not self.refuses and in_flight >= self.limit and load <= 1.1 * self.limit + 1:
            self._best.doubt(self.limit, seconds=now - sent_at)

    def _move(self, move: Move | None, now: float) -> None:
        if move is None:
            return
        if move.to == "settle":
            self._settle(self._bounded(move.load), "no gain")
            return
        load = move.load if move.to == "try" else max(move.load, self.limit)
        if load > self.limit:
            load = self.time_limit.fitting(load, above=self.limit, now=now)
        self._set(self._bounded(load), "search")
        if move.to == "climb":
            self._cautious = 2
            self._stand(now)

    def _measure_anew(self, now: float) -> None:
        self._level = Level(target=self.limit, base=self.limit, began=now, is_level=True)
        self._previous = None

    def on_refusal(
        self,
        *,
        now: float,
        sent_at: float,
        accepted: int,
        sure: int = 0,
        in_doubt: int = 0,
        order: int = 0,
        since: float = NEVER,
    ) -> None:
        """A call was refused for load; so many that were under way with it were not, as far as is known.

        `sure` calls have been under way for so long that they must have been let in, of `in_doubt` others
        that is open; `since` is when the first of the refusals in a row left, this being the last.
        """
        edge = self.edge
        if sent_at > edge.cut_at:  # else it is one of a burst already cut for
            if sure > 1.05 * accepted + 2:
                return  # others were let in on top of them: it was not for load
            if edge.cut_at < since and not edge.is_weak:
                self._before = self._belief()
            if not edge.height.confirmations:
                self._highest = max(self._highest, self.limit)
            may_be_alone = self.cause != "probe" or in_doubt >= ALONE // 2
            edge.begin(now=now, left_at=sent_at, order=order, may_be_alone=may_be_alone)
        if not edge.add(accepted=accepted, seconds=now - sent_at, order=order):
            return
        if edge.is_first:
            self._step = max(1, self.limit // 64)
            self._step_every = max(FATE * (now - sent_at), self._config.step_every / 2)
            self._step_at = now + self._step_every
        self._level = self._previous = self._best.search = self._best.settled_at = None
        self.refuses = self.is_learned = True
        self._set(max(1, min(self.limit, edge.stayed)), "rate limited")

    @property
    def _is_stray(self) -> bool:
        """Whether only a few refusals, spread over time, speak for a capacity."""
        return self.edge.is_weak and not self._before.refuses

    def _belief(self) -> _Belief:
        return _Belief(
            self.limit,
            self.cause,
            self.refuses,
            self.is_learned,
            self._best.settled_at,
            self._best.search,
            self._level,
            self._previous,
            self.edge.height,
        )

    def settle_burst(self, *, now: float, beside: int = 0, later: int = 0) -> None:
        """The fate of all calls that left before the cut is known; see `Edge.settle`."""
        edge = self.edge
        if edge.settle(self.limit, now=now, beside=beside, later=later):
            self._highest = self.limit
            edge.is_weak &= not self._before.refuses
        self._probe_from = now + self._step_every * 4.0 ** min(edge.height.confirmations, 8)

    def on_timeout(self, *, now: float, sent_at: float, in_flight: int) -> bool:
        """A call ran into a time limit; whether that is for the load.

        `in_flight` is what the endpoint held, at the most, while the call was under way.
        """
        fitting = self.time_limit.on_timeout(now=now, sent_at=sent_at, in_flight=in_flight)
        if fitting is None:
            return self.time_limit.is_known(sent_at)
        self.edge.cut_at = now
        if self.rate is not None:  # no rate is behind calls that are queued for so long
            self.rate, self.refuses = None, False
            self.edge.forget()
        self._best.forget()
        self._set(min(self.limit, fitting), "timeout")
        if not self.refuses:
            self._measure_anew(now)
        self._before = self._belief()
        return True

    # -- refusals that are not for load -------------------------------------------------------------------

    def hold(self, *, since: float) -> None:
        """The endpoint has let nothing in since then: what was cut for that was cut for nothing."""
        if self.rate is None and self.edge.cut_at >= since:
            self._restore()

    def _restore(self) -> None:
        """Believe what was believed before the last cut."""
        self.edge.withdraw()
        (
            self.limit,
            self.cause,
            self.refuses,
            self.is_learned,
            self._best.settled_at,
            self._best.search,
            self._level,
            self._previous,
            self.edge.height,
        ) = self._before

    def resume(self, *, now: float, in_flight: int, bad_time: float) -> None:
        """The endpoint lets calls in again: come back to where the limit was, by fours."""
        if self.rate is not None or in_flight + 4 >= self.limit:
            return
        self._step_every = max(1.5 * bad_time, self._config.step_every / 10)
        if self._level is None or not self._level.is_return:
            self._interrupted = self._level
        self._level = Level(target=self.limit, base=in_flight, began=now, is_blind=True)
        self._level.is_return = True
        self.edge.forget_last()
        self._set(in_flight + 4, "back")
        self._step = 12
        self._step_at = now + self._step_every

    def forgive(self, *, now: float) -> None:
        """Refusals turned out not to be for load: go back to before they were believed."""
        if self.rate is not None or not self.refuses:
            return
        if self._is_stray:
            self._restore()
            return
        self.refuses = False
        self.edge.forget()
        self._set(max(self.limit, self._highest), "refusals are not for load")
        self._stand(now)

    # -- rates --------------------------------------------------------------------------------------------

    def turn_to_rate(self, rate: float) -> None:
        """Let a pace govern from now on, beginning with so many calls a second."""
        self.rate = rate
        self._level = None
        self._set(self._config.ceiling, "limited by rate")

    def turn_from_rate(self, *, now: float, in_flight: int) -> None:
        """It is no rate after all: go on from what is under way."""
        self.rate = None
        self.refuses = False
        self.edge.forget()
        self._set(self._bounded(max(in_flight, self._config.start)), "no rate")
        self._stand(now)

    def _stand(self, now: float) -> None:
        """Take the limit for a level without proof: whatever comes back from now on tells what it is like."""
        self._previous = None
        self._level = Level(
            target=self.limit, base=self.limit, began=0.0, is_blind=True, filled_at=now, sent=self.limit
        )

    # -- growing ------------------------------------------------------------------------------------------

    def grow(self, *, now: float, accepted: int) -> float:
        """Grow if it is time to, because calls wait; the answer is the time to ask again.

        `accepted` counts the calls under way that would have been refused by now, were they to be.
        """
        if self.rate is not None:
            return NEVER  # the pace says when; at the ceiling, only a reply does
        if self.edge.is_in_doubt and now < self.edge.known_at:
            return self.edge.known_at
        if self._level is None:
            return self._probe(now, accepted) if self.refuses else NEVER
        self._judge(now)
        if self._level is None:
            return self._probe(now, accepted) if self.refuses else NEVER
        if self.limit >= self._level.target:
            return self._level.overdue_at(self._previous)
        return self._climb(now, self._level.target, "back" if self._level.is_return else "level")

    def _probe(self, now: float, accepted: int) -> float:
        edge = self.edge
        if now < edge.answered_at:
            return edge.answered_at
        edge.stood = max(edge.stood, accepted)
        if edge.is_exceeded(accepted) or (self._is_stray and self.limit >= self._before.limit):
            self._restore()
            self.restored += 1
            self._step = max(self._step, self.limit * min(self.restored - 2, 4) // 4)
            return self.grow(now=now, accepted=accepted)
        rate = edge.rate(accepted, now=now, is_stray=self._is_stray)
        if rate is not None:
            self.turn_to_rate(
                max(rate, self._step / 2 / self._step_every)
            )  # of the last step all were let in
            return NEVER
        if edge.is_passed(accepted):
            self.forgive(now=now)
            return self.grow(now=now, accepted=accepted)
        if self._is_stray and edge.is_to_challenge:
            more = max(SOLID + 1, min(self.limit // 4, MOST_CHALLENGED))
            self._set(self._bounded(self.limit + more), "probe")
            return edge.challenge(more, now=now)
        # A capacity confirmed at the same height is asked less and less often: each question is a refusal.
        times = edge.height.confirmations
        pause = min(16 * 2**times, max(64, 4 * self.limit)) if times else 0
        if edge.replies_since_cut < pause and now < self._probe_from:
            return self._probe_from
        return self._climb(now, self._before.limit if self._is_stray else self._config.ceiling, "probe")

    def _climb(self, now: float, top: int, cause: str) -> float:
        if self._step_at is None:
            self._step_at = now + self._step_every
        if self.limit >= top:
            return NEVER
        if now >= self._step_at:
            self._set(min(self.limit + self._step, top), cause)
            if cause == "probe":
                self._step = min(2 * self._step, max(8, self.limit // 4))
            elif cause == "back":
                self._step *= 4
            else:
                self._step = LARGEST_STEP
            self._step_at = now + self._step_every
            if self.limit >= top and cause == "back":
                self._come_back(now)
        return self._step_at

    def _come_back(self, now: float) -> None:
        """Be where the limit was before the endpoint was away; what was settled is measured anew soon."""
        self._step = max(1, self.limit // 64)
        level, self._level, self._interrupted = self._interrupted, None, None
        if self.refuses:
            return
        if level is None:
            self.edge.replies_since_cut, self._best.rounds_to_doubt = 0, 1.0
        else:
            self._stand(now)

    def _judge(self, now: float) -> None:
        """Ask whether the level under way has shown enough to go on from it, or back."""
        level, previous = self._level, self._previous
        if level is None or level.is_return:
            return
        gain = level.gain_over(previous, now=now)
        is_free = not self._cautious and level.is_free(previous, now=now)
        if gain is None and is_free and level.target <= 16 * self.edge.replies:
            self._factor = 2.0
            self._has_gained = self.is_learned = True
            self._open(now, 2 * level.target, reference=previous)
            return
        if gain is None:
            return
        self.is_learned = True
        has_gained = gain >= self._config.gain ** math.log2(level.growth_over(previous))
        if has_gained and previous is not None:
            self._best.settled_at = None
            self._has_gained = True
        if has_gained and (self._best.is_shared or not self._is_slow(level, previous)):
            self._step_every = min(self._config.step_every, level.pace() / 96.0)
            self._open(now, self._next_target(level, gain), reference=level)
            return
        self._level = self._previous = None
        self._best.on_no_gain()
        move = self._best.begin_below(level.base, is_proven=self._has_gained)
        if move is None:
            self._settle(self._knee(level, previous), "no gain")
        else:
            self._move(move, now)

    def _is_slow(self, level: Level, previous: Level | None) -> bool:
        """Whether calls take so much longer here that the best is below."""
        slowdown = level.slowdown_over(previous) if previous is not None else None
        return slowdown is not None and slowdown > SLOW and level.base != level.target

    def _knee(self, level: Level, previous: Level | None) -> int:
        """Where more calls stop to bring more: somewhere between the level and the one it rose from."""
        slowdown = level.slowdown_over(previous) if previous is not None else None
        return level.base if slowdown is None else max(level.base, round(level.target / slowdown**0.5))

    def _next_target(self, level: Level, gain: float) -> int:
        if self._cautious:
            self._cautious -= 1
            return max(level.target + 1, round(1.5 * level.target))
        if level.is_level:
            return max(level.target + 1, round(1.25 * level.target))
        if self._previous is None:  # nothing is proven yet: where a small step shows enough, take that
            level.close()
            self._factor = 1.25 if level.line is not None and level.target >= START else 2.0
            if self.allowance is not None:
                self._factor = max(self._factor, 1.0 + self.allowance / level.target)
        else:
            is_free = gain >= 0.85 * level.target / level.base
            self._factor = 2.0 if is_free else 1.5
            self._cautious = int(not is_free)
        return round(self._factor * level.target)

    def _open(self, now: float, target: int, *, reference: Level | None) -> None:
        """Begin to climb to a new level, which is compared with `reference`."""
        target = self._bounded(self.time_limit.fitting(target, above=self.limit, now=now))
        if target <= self.limit:
            self._settle(self.limit, "ceiling")
            return
        self._previous = reference
        if reference is not None and reference.line is None:
            reference.close()
        is_doubt = self._level is not None and self._level.is_level
        self._level = Level(target=target, base=self.limit, began=now, is_level=is_doubt)
        if reference is not None and reference.line is not None:
            # Not faster than refusals come back, which take no longer than the shortest reply.
            self._step_every = max(reference.pace() / 96.0, reference.line[0] / 8.0)
        self._step = LARGEST_STEP
        self._step_at = now

    def _settle(self, limit: int, cause: str) -> None:
        self.is_learned = True
        self._level = None
        self._cautious = 0
        self._best.settle(max(1, limit))
        self.edge.replies_since_cut = 0
        self._set(max(1, limit), cause)

    def _bounded(self, limit: int) -> int:
        return max(1, min(limit, self._config.ceiling))

    def _set(self, limit: int, cause: str) -> None:
        self.limit = limit
        self.cause = cause
