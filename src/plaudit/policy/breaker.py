"""When an endpoint lets nothing in: stop, probe with single calls, and come back as soon as one passes.

Pure: no clock, no I/O. A call that was refused or broke is *bad*. While calls sent at the same time are let
in, bad ones say nothing of the endpoint as a whole. Where a bad call is followed by another that was sent in
the knowledge of it, and nothing was let in between them, the door is shut: that says nothing about how many
calls the endpoint takes, so the limits stay as they are, for the time when it opens again.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

OUTLIVED = 1.5
"""A call that has been under way so many times as long as bad ones take was let in."""
MOMENT = 0.002
"""Seconds by which our own clock may be late."""
FEW, SHORT = 8, 1.0
"""Calls let in between two shut doors, and seconds: with fewer and less, the door was hardly open."""
TRUTHS = 2
"""How often in a row an endpoint must have said right when it would be back, to be believed from then on."""
CHANCE = 0.02
"""How improbable a run of failures must be, given the usual share of them, to mean that nothing is let in."""
MANY = 0.2
"""The share of failures from which on they are no single call's fault."""
MOST_USUAL = 0.6
"""The highest share of failures that is taken for usual."""
FEWEST = 32.0
FEWER = 0.95
"""Share of the calls under way at the first of several refusals, below which there are fewer for sure."""
MEMORY = 128.0
"""Calls after which older ones count half in the usual share of failures."""
SOON = 1.0
"""Seconds until which looks may come as often as is useful."""
LATE_LOOK = 10.0
"""Seconds by which a probe may be late. What exceeds them, as where few requests a minute are allowed, is no
time in which the endpoint failed to answer."""
NEVER = float("inf")
BELIEVED = 4.0
"""How many times the last wait it may ask for and be believed."""


class BreakerState(StrEnum):
    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half-open"
    LOST = "lost"
    """Given up: every call to it would fail. A new batch looks again."""


@dataclass(frozen=True, slots=True)
class BreakerConfig:
    first_wait: float = 0.025
    """Seconds before the first probe; later ones come after a tenth of the time the door has been shut."""
    longest_wait: float = 2.0
    patience: float = 120.0
    """Seconds without any success after which an endpoint whose calls break is given up."""
    cold_patience: float = 60.0
    """The same for an endpoint that never answered and that nobody can connect to: it may yet start."""
    last_patience: float = 30.0
    """The same where it has answered, and one call is left to ask it: it may be that call's own fault."""
    refusal_patience: float = 600.0
    """The same for an endpoint that refuses every call for its load or rate: it is alive."""
    look_again: float = 60.0
    """Seconds after which new work may look again at an endpoint given up, though others are at hand."""
    look_again_last: float = 5.0
    """The same where none is at hand: until then new work fails at once, with the message of the last."""


@dataclass(frozen=True, slots=True)
class BadCall:
    """A call that was refused or broke."""

    sent_at: float
    who: object = None
    """What was asked: the same again is no news."""
    retry_after: float | None = None
    is_refusal: bool = False
    is_counted: bool = False
    """Whether what is refused may count like what is let in, as with a limit of requests a minute."""
    is_unreachable: bool = False
    """Whether nobody could connect."""


class Breaker:
    """Closed: calls flow. Open: none. Half-open: one probe decides. Lost: none, until revived."""

    def __init__(self, config: BreakerConfig | None = None) -> None:
        self._config = config or BreakerConfig()
        self.state = BreakerState.CLOSED
        self.open_until = 0.0
        self.shut_at = float("-inf")
        """When the door was last found shut."""
        self.bad_time = 0.0
        """Seconds that the last bad call took to come back."""
        self.least_wait = 0.0
        """Seconds between two requests of the present pace: a look counts as one of them."""
        self.short_openings = 0
        """How often in a row the door was shut again before more than a few calls were let in."""
        self.streak = 0
        """Bad calls in a row, with none let in among them."""
        self._rounds = 0
        self.streak_from = float("inf")
        """When the first of them left."""
        self._known_at = 0.0
        self._height = 0
        self._sent = self._failed = 0.0
        """Calls of late, and those of them that failed."""
        self._usual_failing = 0.0
        """The same when the present run of bad calls began."""
        self._callers: set[object] = set()
        self._let_in: int | None = None
        self._probe_sent = 0.0
        self._asked_until = 0.0
        self._is_lie = False
        """Whether it refused a probe that had waited for as long as it asks for."""
        self._wait = 0.0
        self._was_shut = 0.0
        self._truths = 0
        self._bad_since: float | None = None
        self._ever_worked = self._ever_open = False
        self._lost_at = 0.0

    @property
    def is_closed(self) -> bool:
        return self.state is BreakerState.CLOSED

    @property
    def failing(self) -> float:
        """Share of the calls that fail while the door is open, of late; none while few were sent."""
        return min(self._failed / self._sent, 1.0) if self._sent >= FEWEST else 0.0

    @property
    def is_sick(self) -> bool:
        """Whether different calls fail, one after another, or many did: then it is not the calls' fault."""
        return self.state is not BreakerState.CLOSED and (len(self._callers) > 1 or self.failing > MANY)

    def may_be_away(self, *, now: float) -> bool:
        """Whether it has worked and may again: it is open yet whether one call that fails is the cause."""
        if self.is_closed or self._bad_since is None or not self._ever_worked:
            return False
        return now - self._bad_since < self._config.last_patience

    # -- leaving ------------------------------------------------------------------------------------------

    def ready_at(self, *, now: float) -> float:
        """The earliest time at which a call may be sent; the door opens here if its probe has passed."""
        match self.state:
            case BreakerState.CLOSED:
                return now
            case BreakerState.OPEN:
                return max(now, self.open_until)
            case BreakerState.HALF_OPEN:
                passed_at = self._probe_sent + OUTLIVED * self.bad_time + MOMENT
                if now >= passed_at:
                    self._close()
                return max(now, passed_at)
        return float("inf")

    def on_send(self, *, now: float, in_flight: int = 0) -> None:
        if self.state is BreakerState.OPEN:
            if self._bad_since is not None:
                self._bad_since += max(0.0, now - self.open_until - LATE_LOOK)
            self.state = BreakerState.HALF_OPEN
            self._probe_sent = now
            return
        self._sent += 1.0
        if self._sent >= max(MEMORY, 4 * in_flight):  # what is under way is not to count half
            self._sent, self._failed = self._sent / 2.0, self._failed / 2.0
        if self._let_in is not None:
            self._let_in += 1

    # -- coming back --------------------------------------------------------------------------------------

    def on_success(self, *, sent_at: float) -> None:
        """A call came back with a reply. One that was let in before the door was shut does not open it."""
        self._bad_since = None
        self._ever_worked = True
        is_news = sent_at >= (self._probe_sent if self.state is BreakerState.HALF_OPEN else self.shut_at)
        if self.state is not BreakerState.CLOSED and is_news:
            self._close()

    def on_bad(self, call: BadCall, *, now: float, passed: float, accepted: int, rounds: int = 2) -> bool:
        """Count a bad call; True where that shuts the door.

        `passed` is when the newest call left that is known to have been let in; `accepted` calls are under
        way; `rounds` bad calls, each sent in the knowledge of the one before, shut the door. A refusal counts
        only where fewer are under way than at the first: otherwise the endpoint may just be full.
        """
        if self.state is BreakerState.LOST:
            return False  # it left before the endpoint was given up, and must not bring it back
        if self._let_in is not None:
            self._let_in -= 1
        usual = self.failing
        if not call.is_refusal and self.state is BreakerState.CLOSED:
            self._failed += 1.0
        if self._bad_since is None:
            self._bad_since = now
        if self.state is not BreakerState.CLOSED:
            self._callers.add(call.who)
            if self.state is BreakerState.HALF_OPEN and call.sent_at >= self._probe_sent:
                self.bad_time = now - call.sent_at
                patience = self.patience(is_refusal=call.is_refusal, is_unreachable=call.is_unreachable)
                self._shut_again(now, call, patience)
            return False
        if call.sent_at <= passed:
            return False
        self.bad_time = now - call.sent_at
        if not self._rounds or self.streak_from <= passed:
            self._rounds, self.streak_from, self._known_at, self._callers = 1, call.sent_at, now, set()
            self.streak, self._height = 0, accepted
            self._usual_failing = min(usual, MOST_USUAL)
        elif call.sent_at > self._known_at and (accepted < FEWER * self._height - 0.5 or not call.is_refusal):
            self._rounds += 1
            self._known_at = now
        self.streak += 1
        self._callers.add(call.who)
        if accepted and (self._rounds < rounds or not (call.is_refusal or self._is_improbable)):
            return False
        self._shut(now, call.retry_after, is_counted=call.is_counted)
        return True

    @property
    def _is_improbable(self) -> bool:
        """Whether so many failures in a row are more than bad luck at an endpoint that often fails."""
        return self._usual_failing**self._rounds < CHANCE

    # -- given up -----------------------------------------------------------------------------------------

    def patience(self, *, is_refusal: bool = False, is_unreachable: bool = False) -> float:
        """Seconds of such calls, and of none that succeeds, after which the endpoint is given up."""
        if is_refusal:
            return self._config.refusal_patience
        if is_unreachable and not (self._ever_worked or self._ever_open):
            return self._config.cold_patience
        return self._config.patience

    def lose(self, *, now: float) -> None:
        """Give the endpoint up at once: it said that it will refuse every call."""
        self.state = BreakerState.LOST
        self._lost_at = now

    def is_due(self, *, now: float, is_last: bool = False) -> bool:
        """Whether an endpoint given up was left alone for long enough to look again; less for the last."""
        wait = self._config.look_again_last if is_last else self._config.look_again
        return self.state is BreakerState.LOST and now - self._lost_at >= wait

    def revive(self, *, now: float) -> None:
        """Look again with one probe, because new work has come for an endpoint given up earlier."""
        self._shut(now, None)
        self.open_until = now
        self._bad_since = None

    def on_idle(self) -> None:
        """Nobody has asked for a while: that time is none in which it failed to answer."""
        self._bad_since = None

    # -- the door -----------------------------------------------------------------------------------------

    def _shut(self, now: float, retry_after: float | None, *, is_counted: bool = False) -> None:
        is_short = self._let_in is not None and self._let_in < FEW and now - self._probe_sent < SHORT
        self.short_openings = self.short_openings + 1 if is_short else 0
        self.state = BreakerState.OPEN
        self.shut_at = now
        first = max(self._config.first_wait, self.least_wait)
        longest = NEVER if is_counted else self._config.longest_wait
        self._wait = max(first, min(0.25 * self._was_shut, longest))
        self._let_in = None
        self._ask(now, retry_after)

    def _shut_again(self, now: float, call: BadCall, patience: float) -> None:
        if self._bad_since is not None and now - self._bad_since >= patience:
            self.lose(now=now)
            return
        self.state = BreakerState.OPEN
        away = now - self.shut_at
        self._is_lie = call.is_counted and 0.0 < self._asked_until <= self._probe_sent + MOMENT
        longest = self._config.longest_wait
        if self._asked_until > now:  # what it asks for is a claim: asked early, but less and less often
            self._wait = max(min(2.0 * self._wait, longest), 0.25 * away)
        else:
            self._wait = min(max(self._wait, 0.1 * away), longest)
        if call.is_counted and away > SOON:  # looks may keep a limit used up: leave it more and more time
            self._wait = max(self._wait, 0.25 * away)
        self._wait = max(self._wait, 2.0 * self.least_wait)
        self._ask(now, call.retry_after)

    def _ask(self, now: float, retry_after: float | None) -> None:
        """Set the time of the next probe: by our own schedule, or when the endpoint says, if that is sooner.

        An endpoint that was found to say the truth is believed, and not asked before; and so is one that has
        been away for longer than it asks for. One that then refuses all the same is asked later still.
        """
        if retry_after:
            self._asked_until = now + retry_after
        asked = self._asked_until - now
        self.open_until = now + self._wait
        if asked > 0.0:
            is_trusted = self._truths >= TRUTHS and asked <= BELIEVED * self._was_shut
            is_believed = is_trusted or asked <= now - self.shut_at
            if self._is_lie:
                asked = max(asked, self._wait)
            self.open_until = now + (asked if is_believed else min(self._wait, asked))

    def _close(self) -> None:
        """Open the door: the probe passed. That it passed when the endpoint had said is to its credit."""
        is_true = self._asked_until and self._probe_sent >= self._asked_until - MOMENT
        self._truths = self._truths + 1 if is_true else 0
        self._was_shut = self._probe_sent - self.shut_at
        self.state = BreakerState.CLOSED
        self._ever_open = True
        self._rounds = 0
        self._let_in = 1
        self._asked_until = 0.0
