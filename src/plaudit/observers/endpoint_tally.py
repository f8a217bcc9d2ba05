"""What happened to one endpoint in a run: how long it was away, how often it was rate limiting, and why."""

from __future__ import annotations

from plaudit.events import (
    BreakerChanged,
    CallFinished,
    EndpointLost,
    EndpointSummary,
    Event,
    LimitChanged,
)

AWAY_AFTER = 0.5
"""Seconds without a single answer, while calls fail, from which an endpoint counts as away."""
EXPLAINED = {
    "limited by rate": "it limits the rate",
    "refusals are not for load": "it does so at any load",
    "no rate": "",
}
"""What the cause of a changed limit says of the endpoint."""
FAR_ABOVE = 1.5
"""How many times as many calls at once show that it takes more than was thought."""
FAILURES = 3
"""Calls that must have failed meanwhile: one or two are bad luck."""


class EndpointTally:
    """Counts the events of one endpoint, in bounded memory."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._calls = self._failed = self._rate_limited = 0
        self._away_s = 0.0
        self._times_away = 0
        self._bad_since: float | None = None
        self._bad_calls = 0
        self._is_open = False
        self._last_at = 0.0
        self._cause = ""
        self._capacity = 0
        self._error = ""

    def __call__(self, event: Event) -> None:
        self._last_at = event.at
        match event:
            case CallFinished(outcome="ok"):
                self._calls += 1
                if self._bad_since is not None and not self._is_open:  # else let in before the door was shut
                    self._come_back(event.at)
            case CallFinished(outcome="rate_limited"):
                self._calls += 1
                self._rate_limited += 1
            case CallFinished(outcome="failed"):
                self._calls += 1
                self._failed += 1
                self._bad_calls += 1
                self._error = event.error or self._error
                self._leave(event.at)
            case BreakerChanged(state="open") | EndpointLost():
                self._is_open = True
                if self._capacity:
                    self._capacity, self._cause = 0, ""  # those refusals said nothing of the room
                self._error = event.error or self._error
                self._leave(event.at)
            case BreakerChanged(state="closed"):
                self._come_back(event.at)
            case LimitChanged() if self._rate_limited:
                self._explain(event)
            case _:
                pass

    def summary(self) -> EndpointSummary:
        """Everything so far; an absence that goes on counts up to the last event."""
        now = self._absence(self._last_at)
        return EndpointSummary(
            name=self._name,
            calls=self._calls,
            failed=self._failed,
            rate_limited=self._rate_limited,
            away_s=self._away_s + now,
            times_away=self._times_away + (now > 0.0),
            cause=self._cause,
            error=self._error,
        )

    def _explain(self, event: LimitChanged) -> None:
        """Say why calls are rate limited, by what the engine makes of it."""
        if event.cause == "rate limited":
            self._capacity = event.limit
            self._cause = f"it takes {event.limit:,} at once"
        elif event.cause in EXPLAINED:
            self._capacity, self._cause = 0, EXPLAINED[event.cause]
        elif self._capacity and event.limit > FAR_ABOVE * self._capacity:
            self._capacity, self._cause = 0, ""  # that was not why

    def _leave(self, at: float) -> None:
        if self._bad_since is None:
            self._bad_since = at

    def _come_back(self, at: float) -> None:
        absence = self._absence(at)
        self._away_s += absence
        self._times_away += absence > 0.0
        self._bad_since, self._bad_calls, self._is_open = None, 0, False

    def _absence(self, until: float) -> float:
        """Seconds it has been away for, if it has."""
        if self._bad_since is None or not (self._is_open or self._bad_calls >= FAILURES):
            return 0.0
        seconds = until - self._bad_since
        return seconds if seconds >= AWAY_AFTER else 0.0
