"""One endpoint as the dispatcher sees it: its transport, its limits, and the calls under way on it."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from plaudit.config import Endpoint
from plaudit.core.balance import Load
from plaudit.core.breaker import Breaker, BreakerConfig, BreakerState
from plaudit.core.budget import cost_of
from plaudit.core.histogram import LatencyHistogram
from plaudit.core.limit import ConcurrencyLimit, LimitConfig
from plaudit.core.pace import Pace, rate_hint
from plaudit.core.quota import Quota
from plaudit.errors import RateLimited
from plaudit.scheduler.call import Call
from plaudit.transports.base import Transport
from plaudit.types import Reply, Usage

NEVER = float("inf")
FIRST_REST = 0.05
LONGEST_REST = 1.0
"""Seconds of rest for an endpoint that turns away even a call that comes alone: doubled each time."""


class Flight:
    """One attempt of one call on one lane."""

    __slots__ = ("call", "has_begun", "id", "is_overdue", "lane", "sent_at", "task")

    def __init__(self, call: Call, lane: Lane, *, sent_at: float, id: int) -> None:
        self.call = call
        self.lane = lane
        self.sent_at = sent_at
        self.id = id
        self.has_begun = False
        self.is_overdue = False
        """Whether it was ended because it took too long."""
        self.task: asyncio.Task[None] | None = None


class Lane:
    """Everything known about one endpoint. Decisions come from core/; the dispatcher acts on them."""

    def __init__(
        self,
        endpoint: Endpoint,
        transport: Transport,
        *,
        start: LimitConfig | None = None,
        ceiling: int | None = None,
        breaker: BreakerConfig | None = None,
    ) -> None:
        self.endpoint = endpoint
        self.name = endpoint.name
        self.transport = transport
        start = start or LimitConfig()
        ceilings = [c for c in (endpoint.max_concurrent, ceiling, start.ceiling) if c is not None]
        self.ceiling = min(ceilings)
        self.limit = ConcurrencyLimit(replace(start, ceiling=self.ceiling))
        self.pace = Pace()
        self.breaker = Breaker(breaker)
        has_quota = endpoint.rpm is not None or endpoint.tpm is not None
        self.quota = Quota(rpm=endpoint.rpm, tpm=endpoint.tpm) if has_quota else None
        self.flights: dict[int, Flight] = {}
        """In the order of sending."""
        self.latencies = LatencyHistogram()
        self._typical: float | None = None
        self._slow: float | None = None
        self.rate_hint: float | None = None
        """Requests a second, as the endpoint's headers told."""
        self.last_success: float | None = None
        self._rest = FIRST_REST

    @property
    def in_flight(self) -> int:
        return len(self.flights)

    @property
    def is_lost(self) -> bool:
        return self.breaker.state is BreakerState.LOST

    def is_sound(self, call: Call, *, now: float) -> bool:
        """Whether only the calls under way, if anything, keep this one from leaving here."""
        if self.breaker.state is not BreakerState.CLOSED or self.pace.rate is not None:
            return False
        if self.pace.paused_until > now:
            return False
        return self.quota is None or self.quota.ready_at(now=now, tokens=sum(call.token_bound)) <= now

    @property
    def load(self) -> Load:
        return Load(len(self.flights), self.limit.limit, self._slow, self._typical)

    def on_reply(self, reply: Reply, *, sent_at: float, now: float) -> None:
        """Learn from a reply, which is no longer counted as under way."""
        self.last_success = now
        self._rest = FIRST_REST
        self._note_latency(now - sent_at)
        self.limit.on_success(
            now=now, sent_at=sent_at, in_flight=self.in_flight + 1, tokens=reply.usage.completion_tokens
        )
        if reply.rate is not None:
            self.rate_hint = rate_hint(reply.rate) or self.rate_hint
            if reply.rate.remaining_requests == 0 and self.rate_hint is not None:
                self.pace.begin(now=now, rate=self.rate_hint)

    def on_reject(self, error: RateLimited, *, sent_at: float, now: float) -> bool:
        """Learn from a call turned away: too many at once, or too many a second? True: a pause begins."""
        begins = self.pace.on_refusal(now=now, sent_at=sent_at, retry_after=error.retry_after)
        if self.pace.rate is not None:
            return begins
        old_enough = self.sent_by(now - 1.25 * (now - sent_at))
        self.limit.on_reject(
            now=now,
            sent_at=sent_at,
            accepted=self.sent_by(sent_at),
            fresh=max(0, old_enough - self.sent_by(self.limit.cut_at)),
        )
        if self.limit.is_rate:
            self.pace.begin(now=now)
        if error.retry_after is not None and not self.limit.is_capacity:
            begins = self.pace.paused_until <= now
            self.pace.pause(now=now, seconds=error.retry_after)
            if self.rate_hint is not None:
                self.pace.begin(now=now, rate=self.rate_hint)
        elif not self.in_flight:  # there is no fewer than one: come back more and more rarely
            begins = self.pace.paused_until <= now
            self.pace.pause(now=now, seconds=self._rest)
            self._rest = min(2.0 * self._rest, LONGEST_REST)
        return begins

    def _note_latency(self, seconds: float) -> None:
        """Remember how long a call took."""
        self.latencies.add(seconds)
        self._typical = seconds if self._typical is None else self._typical + (seconds - self._typical) / 32.0
        if len(self.latencies) % 16 == 0:
            self._slow = self.latencies.quantile(0.9)

    def ready_at(self, call: Call, *, now: float) -> float:
        """The earliest time at which this lane may take the call; infinity: only a reply can tell."""
        if len(self.flights) >= self.limit.limit:
            return NEVER
        if not self.breaker.allows(now=now, in_flight=len(self.flights)):
            return self.breaker.open_until if self.breaker.state is BreakerState.OPEN else NEVER
        ready = self.pace.ready_at(now=now)
        if self.quota is not None:
            ready = max(ready, self.quota.ready_at(now=now, tokens=sum(call.token_bound)))
        return ready

    def cost_bound(self, call: Call) -> float:
        """What the call may cost here at the most, in dollars; 0.0 without a price."""
        price = self.endpoint.price
        if price is None:
            return 0.0
        prompt, completion = call.token_bound
        return cost_of(price, prompt_tokens=prompt, completion_tokens=completion)

    def cost(self, usage: Usage) -> float | None:
        """What a reply cost: as the endpoint said, else by its price; None where neither is known."""
        if usage.cost is not None or self.endpoint.price is None:
            return usage.cost
        return cost_of(
            self.endpoint.price,
            prompt_tokens=usage.prompt_tokens,
            completion_tokens=usage.completion_tokens,
        )

    def sent_by(self, when: float) -> int:
        """Calls under way that left no later than `when`."""
        newer = 0
        for flight in reversed(self.flights.values()):
            if flight.sent_at <= when:
                break
            newer += 1
        return len(self.flights) - newer
