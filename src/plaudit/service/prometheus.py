"""Numbers for Prometheus: counted as events come, written when they are asked for.

No label has more values than there are endpoints, statuses or routes; nothing of a prompt is in one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping

from plaudit.events import BreakerChanged, CallFinished, CallStarted, Event, LimitChanged, VerdictsReady

SECONDS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)
SCORES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


class Histogram:
    """Counts of values up to each bound."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def add(self, value: float) -> None:
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def lines(self, name: str) -> Iterator[str]:
        total = 0
        for bound, count in zip((*self._bounds, float("inf")), self._counts, strict=True):
            total += count
            yield f'{name}_bucket{{le="{"+Inf" if bound == float("inf") else f"{bound:g}"}"}} {total}'
        yield f"{name}_sum {self._sum:.6f}"
        yield f"{name}_count {total}"


class Prometheus:
    """An observer of the engine, and the counters of the service's own routes."""

    def __init__(self) -> None:
        self._calls: Counter[tuple[str, str]] = Counter()
        self._in_flight: Counter[str] = Counter()
        self._limits: dict[str, float] = {}
        self._away: set[str] = set()
        self._verdicts: Counter[str] = Counter()
        self._sources: Counter[str] = Counter()
        self._dollars = 0.0
        self._tokens: Counter[str] = Counter()
        self._durations = Histogram(SECONDS)
        self._scores = Histogram(SCORES)
        self._requests: Counter[tuple[str, int]] = Counter()
        self._waits = Histogram(SECONDS)
        self.waiting = 0

    def __call__(self, event: Event) -> None:
        if isinstance(event, CallStarted):
            self._in_flight[event.endpoint] += 1
        elif isinstance(event, CallFinished):
            self._in_flight[event.endpoint] -= 1
            self._calls[event.endpoint, event.outcome] += 1
            self._durations.add(event.latency_s)
        elif isinstance(event, LimitChanged):
            self._limits[event.endpoint] = event.limit
        elif isinstance(event, BreakerChanged):
            change = self._away.add if event.state == "open" else self._away.discard
            change(event.endpoint)
        elif isinstance(event, VerdictsReady):
            for verdict in event.verdicts:
                self._verdicts[verdict.status.value] += 1
                self._sources[verdict.source.value] += 1
                self._dollars += verdict.usage.cost or 0.0
                self._tokens["prompt"] += verdict.usage.prompt_tokens
                self._tokens["completion"] += verdict.usage.completion_tokens

    def on_request(self, route: str, status: int, seconds: float) -> None:
        self._requests[route, status] += 1
        self._waits.add(seconds)

    def on_score(self, unit: float) -> None:
        self._scores.add(unit)

    def text(self) -> str:
        """All of it, in Prometheus' format."""
        return "\n".join(self._lines()) + "\n"

    def _lines(self) -> Iterator[str]:
        # Each is copied, in one step: the engine's thread counts on meanwhile.
        in_flight = dict(self._in_flight)
        away = {name: int(name in self._away) for name in in_flight}
        requests = {
            f'route="{route}",status="{n}"': count for (route, n), count in dict(self._requests).items()
        }
        calls = {
            f'endpoint="{_quoted(endpoint)}",outcome="{_quoted(outcome)}"': count
            for (endpoint, outcome), count in dict(self._calls).items()
        }
        by_status, by_source, tokens = self._verdicts, self._sources, self._tokens
        for name, help_text, values in (
            ("requests_total", "Requests answered by this server.", requests),
            ("calls_total", "Calls to endpoints, by outcome.", calls),
            ("verdicts_total", "Answers and verdicts, by status.", _by("status", by_status)),
            ("answers_total", "Answers by source: call, cache, shared or rule.", _by("source", by_source)),
            ("tokens_total", "Tokens, as endpoints counted them.", _by("kind", tokens)),
            ("cost_dollars_total", "US dollars spent.", {"": self._dollars}),
            ("in_flight", "Calls in flight.", _by("endpoint", in_flight)),
            (
                "concurrency_limit",
                "Concurrency limit of the endpoint, as learned so far.",
                _by("endpoint", self._limits),
            ),
            ("endpoint_down", "Whether an endpoint is unavailable.", _by("endpoint", away)),
            ("waiting_requests", "Requests in flight.", {"": self.waiting}),
        ):
            yield from _head(name, help_text, "counter" if name.endswith("_total") else "gauge")
            for labels, value in sorted(values.items()):
                yield f"plaudit_{name}{f'{{{labels}}}' if labels else ''} {value:g}"
        for name, help_text, histogram in (
            ("call_duration_seconds", "Duration of a call in seconds.", self._durations),
            ("request_duration_seconds", "Duration of a request to this server in seconds.", self._waits),
            ("score", "Scores, from 0 to 1.", self._scores),
        ):
            yield from _head(name, help_text, "histogram")
            yield from histogram.lines(f"plaudit_{name}")


def _head(name: str, help_text: str, kind: str) -> tuple[str, str]:
    return f"# HELP plaudit_{name} {help_text}", f"# TYPE plaudit_{name} {kind}"


def _by(label: str, counts: Mapping[str, float]) -> dict[str, float]:
    return {f'{label}="{_quoted(value)}"': count for value, count in dict(counts).items()}


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
