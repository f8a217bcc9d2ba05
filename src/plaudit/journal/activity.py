"""What an engine is doing, second by second: calls, limits and rate limits of each endpoint, what waits."""

from __future__ import annotations

from typing import Any

import msgspec

from plaudit.events import (
    BatchFinished,
    BatchStarted,
    BreakerChanged,
    CallFinished,
    CallStarted,
    EndpointLost,
    Event,
    LimitChanged,
    RetryPlanned,
    VerdictsReady,
)


class EndpointActivity(msgspec.Struct):
    """An endpoint: what it does now, and what it did since the engine started."""

    in_flight: int = 0
    limit: int = 0
    """Calls at once that the engine allows; 0: not known yet."""
    ok: int = 0
    rate_limited: int = 0
    failed: int = 0
    state: str = "closed"
    """Of its circuit breaker: `closed` is the ordinary one."""
    error: str = ""


class Activity(msgspec.Struct):
    """One moment of an engine. Counts are sums since it started."""

    at: float = 0.0
    """Unix time."""
    session: str = ""
    open_batches: int = 0
    waiting: int = 0
    """Samples without a verdict."""
    oldest_s: float = 0.0
    """How long the oldest batch has been waiting."""
    verdicts: int = 0
    retries: int = 0
    endpoints: dict[str, EndpointActivity] = {}


class ActivityTally:
    """An observer that keeps the present moment up to date."""

    def __init__(self, session: str) -> None:
        self.now = Activity(session=session)
        self.changes = 0
        self._open: dict[int, float] = {}

    def __call__(self, event: Event) -> None:
        self.changes += 1
        match event:
            case CallStarted():
                self._endpoint(event.endpoint).in_flight = event.in_flight
            case CallFinished():
                self._finish(event)
            case VerdictsReady():
                self.now.waiting -= len(event.verdicts)
                self.now.verdicts += len(event.verdicts)
            case LimitChanged():
                self._endpoint(event.endpoint).limit = event.limit
            case BreakerChanged():
                self._endpoint(event.endpoint).state = event.state
            case EndpointLost():
                self._endpoint(event.endpoint).state = "lost"
            case RetryPlanned():
                self.now.retries += 1
            case BatchStarted():
                self._open[event.batch] = event.at
                self.now.waiting += event.samples
            case BatchFinished():
                self._open.pop(event.batch, None)

    def snapshot(self, *, at: float, loop_time: float) -> bytes:
        """This moment as JSON."""
        self.now.at = at
        self.now.open_batches = len(self._open)
        self.now.oldest_s = loop_time - min(self._open.values()) if self._open else 0.0
        return msgspec.json.encode(self.now)

    def _finish(self, event: CallFinished) -> None:
        endpoint = self._endpoint(event.endpoint)
        endpoint.in_flight = event.in_flight
        if event.outcome == "ok":
            endpoint.ok += 1
        elif event.outcome == "rate_limited":
            endpoint.rate_limited += 1
        elif event.outcome != "cancelled":
            endpoint.failed += 1

    def _endpoint(self, name: str) -> EndpointActivity:
        found = self.now.endpoints.get(name)
        if found is None:
            found = self.now.endpoints[name] = EndpointActivity()
        return found


def read_activity(data: bytes) -> Activity | None:
    """A moment as it was written; None for bytes that are none."""
    try:
        return msgspec.json.decode(data, type=Activity)
    except msgspec.DecodeError:
        return None


def as_json(activity: Activity) -> dict[str, Any]:
    """A moment as plain data."""
    found: dict[str, Any] = msgspec.to_builtins(activity)
    return found
