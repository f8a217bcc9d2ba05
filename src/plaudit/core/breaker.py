"""When to stop calling an endpoint that is down, when to look again, and when to give it up."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class BreakerState(StrEnum):
    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half-open"
    LOST = "lost"
    """Given up: every call to it would fail. A new batch looks again."""


@dataclass(frozen=True, slots=True)
class BreakerConfig:
    failures: int = 10
    """Failures in a row, without a success between them, that open the breaker."""
    first_open: float = 1.0
    max_open: float = 15.0
    patience: float = 60.0
    """Seconds without any success after which an endpoint that once worked is given up."""
    cold_patience: float = 3.0
    """The same for an endpoint that nobody could connect to and that never answered."""
    look_again: float = 60.0
    """Seconds after which new work may look again at an endpoint given up, though others are at hand."""
    look_again_last: float = 5.0
    """The same where none is at hand: until then new work fails at once, with the message of the last."""


class Breaker:
    """Closed: calls flow. Open: none. Half-open: one probe decides. Lost: none, until revived."""

    def __init__(self, config: BreakerConfig | None = None) -> None:
        self._config = config or BreakerConfig()
        self.state = BreakerState.CLOSED
        self.open_until = 0.0
        self._failures = 0
        self._open_for = self._config.first_open
        self._first_failure: float | None = None
        self._ever_worked = False
        self._lost_at = 0.0

    def allows(self, *, now: float, in_flight: int) -> bool:
        """Whether a call may be sent now; an open breaker whose time is up becomes half-open."""
        if self.state is BreakerState.CLOSED:
            return True
        if self.state is BreakerState.OPEN and now >= self.open_until:
            self.state = BreakerState.HALF_OPEN
        return self.state is BreakerState.HALF_OPEN and in_flight == 0

    def on_success(self) -> None:
        self.state = BreakerState.CLOSED
        self._failures = 0
        self._first_failure = None
        self._open_for = self._config.first_open
        self._ever_worked = True

    def on_failure(self, *, now: float, is_unreachable: bool) -> None:
        """Count a call that broke (not one that was turned away: an endpoint that rejects is alive)."""
        if self.state is BreakerState.LOST:
            return  # it left before the endpoint was given up, and must not bring it back
        self._failures += 1
        if self._first_failure is None:
            self._first_failure = now
        is_cold = is_unreachable and not self._ever_worked
        patience = self._config.cold_patience if is_cold else self._config.patience
        if self._failures >= self._config.failures or self.state is not BreakerState.CLOSED:
            if now - self._first_failure >= patience:
                self.lose(now=now)
            elif self.state is not BreakerState.OPEN:
                self.state = BreakerState.OPEN
                self.open_until = now + self._open_for
                self._open_for = min(self._open_for * 2.0, self._config.max_open)

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
        self.state = BreakerState.OPEN
        self.open_until = now
        self._open_for = self._config.first_open
        self._first_failure = None
        self._failures = 0
