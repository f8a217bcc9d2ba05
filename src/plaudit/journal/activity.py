"""What an engine is doing at a moment: what waits, and what each endpoint takes."""

from __future__ import annotations

import msgspec


class EndpointActivity(msgspec.Struct):
    """An endpoint: what it does now, and what it did since the engine started."""

    in_flight: int = 0
    limit: int = 0
    """Calls at once that the engine allows."""
    pace: float | None = None
    """Calls a second that the engine keeps to, where it has found a rate limit."""
    ok: int = 0
    rate_limited: int = 0
    failed: int = 0
    state: str = "closed"
    """Of its circuit breaker: `closed` is the ordinary one."""


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
    spent: float = 0.0
    """US dollars."""
    assumed: float = 0.0
    """The part of it for calls without a reply, of which only the highest possible cost is known."""
    budget: float | None = None
    """What may be spent; None: no limit."""
    endpoints: dict[str, EndpointActivity] = {}
