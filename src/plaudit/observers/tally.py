"""Adds events up into one Summary, however many batches they come from, in bounded memory."""

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
    Event,
    LimitChanged,
    RetryPlanned,
    Summary,
    VerdictsReady,
)
from plaudit.observers.endpoint_tally import EndpointTally
from plaudit.policy.histogram import LatencyHistogram
from plaudit.types import Source, Status, Verdict


class Tally:
    """An observer that counts. Called on the engine's thread; `summary` may be asked from any other."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_status: Counter[Status] = Counter()
        self._by_source: Counter[Source] = Counter()
        self._causes = CauseCounter()
        self._latencies = LatencyHistogram()
        self._calls = self._retries = self._hedges = self._rate_limited = self._rereads = 0
        self._prompt_tokens = self._completion_tokens = self._cached_tokens = self._reasoning_tokens = 0
        self._cost: float | None = None
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
                    self._add_call(event)
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
                prompt_tokens=self._prompt_tokens,
                completion_tokens=self._completion_tokens,
                cached_tokens=self._cached_tokens,
                reasoning_tokens=self._reasoning_tokens,
                cost=self._cost,
                score_mean=self._mean if self._scores else None,
                score_std=math.sqrt(self._squares / self._scores) if self._scores else None,
                endpoints=tuple(endpoint.summary() for endpoint in self._endpoints.values()),
            )

    def _endpoint(self, name: str) -> EndpointTally:
        found = self._endpoints.get(name)
        if found is None:
            found = self._endpoints[name] = EndpointTally(name)
        return found

    def _add_verdicts(self, same: list[Verdict]) -> None:
        """Count one verdict that so many samples have: past a deadline, thousands."""
        verdict, count = same[0], len(same)
        self._by_status[verdict.status] += count
        self._by_source[verdict.source] += count
        if verdict.failure is not None:
            self._causes.add(verdict, count)
        for _ in range(count if verdict.score is not None else 0):
            assert verdict.score is not None
            self._scores += 1
            difference = verdict.score - self._mean
            self._mean += difference / self._scores
            self._squares += difference * (verdict.score - self._mean)

    def _add_call(self, event: CallFinished) -> None:
        self._rate_limited += event.outcome == "rate_limited"
        if event.outcome == "ok":
            self._latencies.add(event.latency_s)
        usage = event.usage
        self._prompt_tokens += usage.prompt_tokens
        self._completion_tokens += usage.completion_tokens
        self._cached_tokens += usage.cached_tokens
        self._reasoning_tokens += usage.reasoning_tokens
        if usage.cost is not None:
            self._cost = (self._cost or 0.0) + usage.cost
