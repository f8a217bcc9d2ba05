"""Numbers for Prometheus: counted as events come, written when they are asked for.

No label has more values than there are endpoints, statuses or routes; nothing of a prompt is in one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

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


COUNTED = (
    ("requests_total", "Requests answered by this server.", ("route", "status")),
    ("calls_total", "Calls to endpoints, by outcome.", ("endpoint", "outcome")),
    ("verdicts_total", "Answers and verdicts, by status.", ("status",)),
    ("answers_total", "Answers by source: call, cache, shared or rule.", ("source",)),
    ("tokens_total", "Tokens, as endpoints counted them.", ("kind",)),
    ("cost_dollars_total", "US dollars spent.", ()),
    ("in_flight", "Calls in flight.", ("endpoint",)),
    ("concurrency_limit", "Concurrency limit of the endpoint, as learned so far.", ("endpoint",)),
    ("endpoint_down", "Whether an endpoint is unavailable.", ("endpoint",)),
    ("waiting_requests", "Requests in flight.", ()),
)
"""Name, help and labels of each counter and gauge."""


class Prometheus:
    """An observer of the engine, and the counters of the service's own routes."""

    def __init__(self) -> None:
        self._values: dict[str, dict[tuple[str, ...], float]] = {
            name: {} if labels else {(): 0} for name, _, labels in COUNTED
        }
        self._durations = Histogram(SECONDS)
        self._scores = Histogram(SCORES)
        self._waits = Histogram(SECONDS)
        self.waiting = 0

    def __call__(self, event: Event) -> None:
        match event:
            case CallStarted(endpoint=name):
                self._add("in_flight", name)
                self._add("endpoint_down", name, by=0)
            case CallFinished(endpoint=name):
                self._add("in_flight", name, by=-1)
                self._add("calls_total", name, event.outcome)
                self._durations.add(event.latency_s)
            case LimitChanged():
                self._values["concurrency_limit"][event.endpoint,] = event.limit
            case BreakerChanged():
                self._values["endpoint_down"][event.endpoint,] = event.state == "open"
            case VerdictsReady():
                for verdict in event.verdicts:
                    self._add("verdicts_total", verdict.status.value)
                    self._add("answers_total", verdict.source.value)
                    self._add("cost_dollars_total", by=verdict.usage.cost or 0.0)
                    self._add("tokens_total", "prompt", by=verdict.usage.prompt_tokens)
                    self._add("tokens_total", "completion", by=verdict.usage.completion_tokens)

    def on_request(self, route: str, status: int, seconds: float) -> None:
        self._add("requests_total", route, str(status))
        self._waits.add(seconds)

    def on_score(self, unit: float) -> None:
        self._scores.add(unit)

    def text(self) -> str:
        """All of it, in Prometheus' format."""
        self._values["waiting_requests"][()] = self.waiting
        return "\n".join(self._lines()) + "\n"

    def _add(self, name: str, *labels: str, by: float = 1) -> None:
        values = self._values[name]
        values[labels] = values.get(labels, 0) + by

    def _lines(self) -> Iterator[str]:
        for name, help_text, labels in COUNTED:
            yield from _head(name, help_text, "counter" if name.endswith("_total") else "gauge")
            # A copy, made in one step: the engine's thread counts on meanwhile.
            for values, count in sorted(self._values[name].copy().items()):
                pairs = zip(labels, map(_quoted, values), strict=True)
                shown = ",".join(f'{label}="{value}"' for label, value in pairs)
                yield f"plaudit_{name}{f'{{{shown}}}' if shown else ''} {count:.15g}"
        for name, help_text, histogram in (
            ("call_duration_seconds", "Duration of a call in seconds.", self._durations),
            ("request_duration_seconds", "Duration of a request to this server in seconds.", self._waits),
            ("score", "Scores, from 0 to 1.", self._scores),
        ):
            yield from _head(name, help_text, "histogram")
            yield from histogram.lines(f"plaudit_{name}")


def _head(name: str, help_text: str, kind: str) -> tuple[str, str]:
    return f"# HELP plaudit_{name} {help_text}", f"# TYPE plaudit_{name} {kind}"


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
