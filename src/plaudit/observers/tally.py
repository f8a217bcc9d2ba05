"""Adds events up into one Summary, of however many batches and of each endpoint, in bounded memory."""

from __future__ import annotations

import itertools
import math
import threading
from collections import Counter

from plaudit.events import (
    BatchFinished,
    BreakerChanged,
    CallFinished,
    CallStarted,
    CauseCounter,
    EndpointLost,
    EndpointSummary,
    Event,
    LimitChanged,
    RetryPlanned,
    Summary,
    VerdictsReady,
)
from plaudit.policy.breaker import LATE_LOOK
from plaudit.policy.histogram import LatencyHistogram
from plaudit.types import Source, Status, Usage, Verdict

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


class Tally:
    """An observer that counts. Called on the engine's thread; `summary` may be asked from any other."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_status: Counter[Status] = Counter()
        self._by_source: Counter[Source] = Counter()
        self._causes = CauseCounter()
        self._latencies = LatencyHistogram()
        self._calls = self._retries = self._hedges = self._rate_limited = self._rereads = 0
        self._usage = Usage()
        self._endpoints: dict[str, EndpointTally] = {}
        self._scores = 0
        self._mean = self._squares = 0.0  # Welford's running mean and sum of squared differences

    def __call__(self, event: Event) -> None:
        with self._lock:
            match event:
                case CallStarted():
                    self._calls += 1
                    self._hedges += event.is_hedge
                case CallFinished():
                    self._endpoint(event.endpoint)(event)
                    self._rate_limited += event.outcome == "rate_limited"
                    if event.outcome == "ok":
                        self._latencies.add(event.latency_s)
                    self._usage += event.usage
                case VerdictsReady():
                    for _, same in itertools.groupby(event.verdicts, key=id):
                        self._add_verdicts(list(same))
                case RetryPlanned():
                    self._retries += 1
                case BatchFinished():
                    self._rereads += event.summary.rereads or 0
                case BreakerChanged() | EndpointLost() | LimitChanged():
                    self._endpoint(event.endpoint)(event)
                case _:
                    pass

    def summary(self, seconds: float) -> Summary:
        """Everything so far; `seconds` is how long it took, as the caller saw it."""
        with self._lock:
            return Summary(
                samples=self._by_status.total(),
                seconds=seconds,
                by_status={status.value: count for status, count in self._by_status.most_common()},
                by_source={source.value: count for source, count in self._by_source.most_common()},
                causes=self._causes.commonest(),
                calls=self._calls,
                retries=self._retries,
                hedges=self._hedges,
                rate_limited=self._rate_limited,
                rereads=self._rereads,
                latency_p50_s=self._latencies.quantile(0.5),
                latency_p95_s=self._latencies.quantile(0.95),
                prompt_tokens=self._usage.prompt_tokens,
                completion_tokens=self._usage.completion_tokens,
                cached_tokens=self._usage.cached_tokens,
                reasoning_tokens=self._usage.reasoning_tokens,
                cost=self._usage.cost,
                score_mean=self._mean if self._scores else None,
                score_std=math.sqrt(self._squares / self._scores) if self._scores else None,
                endpoints=tuple(endpoint.summary() for endpoint in self._endpoints.values()),
            )

    def _endpoint(self, name: str) -> EndpointTally:
        if name not in self._endpoints:
            self._endpoints[name] = EndpointTally(name)
        return self._endpoints[name]

    def _add_verdicts(self, same: list[Verdict]) -> None:
        """Count one verdict that so many samples have: past a deadline, thousands."""
        verdict, count = same[0], len(same)
        self._by_status[verdict.status] += count
        self._by_source[verdict.source] += count
        if verdict.failure is not None:
            self._causes.add(verdict, count)
        if verdict.score is not None:
            self._scores += count
            difference = verdict.score - self._mean
            self._mean += count * difference / self._scores
            self._squares += count * difference * (verdict.score - self._mean)


class EndpointTally:
    """Counts the events of one endpoint, in bounded memory."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._calls = self._failed = self._rate_limited = self._refused = self._sent_again = 0
        self._away_s = 0.0
        self._times_away = 0
        self._bad_since: float | None = None
        self._bad_calls = 0
        self._is_open = False
        self._due = 0.0
        self._quiet_from: float | None = None
        """Since when no call is under way."""
        self._last_at = 0.0
        self._cause = ""
        self._capacity = 0
        self._error = self._refusal = self._sent_again_for = ""

    def __call__(self, event: Event) -> None:
        self._last_at = event.at
        match event:
            case CallFinished():
                self._look_for_silence(event)
                self._count(event)
            case BreakerChanged(state="open") | EndpointLost():
                self._is_open = True
                self._due = event.due if isinstance(event, BreakerChanged) else 0.0
                if self._capacity:
                    self._capacity, self._cause = 0, ""  # those refusals said nothing of the room
                if not self._failed or isinstance(event, EndpointLost):  # a refusal is no failure
                    self._error = event.error or self._error
                self._leave(event.at)
            case BreakerChanged(state="closed"):
                self._come_back(event.at)
            case LimitChanged() if self._rate_limited:
                self._explain(event)
            case _:
                pass

    def _count(self, event: CallFinished) -> None:
        self._calls += event.outcome != "cancelled"
        match event.outcome:
            case "ok":
                if self._bad_since is not None and not self._is_open:  # else let in before the door was shut
                    self._come_back(event.at)
            case "rate_limited":
                self._rate_limited += 1
            case "sent_again":
                self._sent_again += 1
                self._sent_again_for = event.error or self._sent_again_for
            case "refused":
                self._refused += 1
                self._refusal = event.error or self._refusal
            case "failed":
                self._failed += 1
                self._bad_calls += 1
                self._error = event.error or self._error
                self._leave(event.at)
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
            refused=self._refused,
            refusal=self._refusal,
            sent_again=self._sent_again,
            sent_again_for=self._sent_again_for,
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

    def _look_for_silence(self, event: CallFinished) -> None:
        """Count no time in which it was not asked: there were no calls, or their rate is limited."""
        if self._bad_since is not None and self._quiet_from is not None:
            asked_at = event.at - event.latency_s
            self._bad_since += max(0.0, asked_at - max(self._quiet_from, self._due) - LATE_LOOK)
        self._quiet_from = None if event.in_flight else event.at

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
