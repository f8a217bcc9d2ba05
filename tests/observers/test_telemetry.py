"""OpenTelemetry's own SDK gets spans and metrics by its conventions, and no text."""

from __future__ import annotations

from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from plaudit.events import CallFinished, VerdictsReady
from plaudit.observers.telemetry import OpenTelemetry
from plaudit.types import Status, Usage, Verdict


def observed() -> tuple[list[Any], dict[str, Any]]:
    spans, reader = InMemorySpanExporter(), InMemoryMetricReader()
    tracers = TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(spans))
    meters = MeterProvider([reader])
    observer = OpenTelemetry(tracer_provider=tracers, meter_provider=meters)
    observer(CallFinished(1.0, "judge:8000", 3, "ok", 0.5, Usage(100, 20)))
    observer(CallFinished(2.0, "judge:8000", 2, "failed", 2.0, error="a-private-text"))
    observer(VerdictsReady(2.0, 1, (Verdict(7.0, Status.OK, reason="a-private-text"),)))
    found = reader.get_metrics_data()
    assert found is not None
    (scope,) = found.resource_metrics[0].scope_metrics
    return list(spans.get_finished_spans()), {metric.name: metric for metric in scope.metrics}


def test_a_call_is_a_client_span_as_long_as_the_call() -> None:
    (good, bad), _ = observed()
    assert (good.name, good.kind) == ("chat", SpanKind.CLIENT)
    assert good.attributes["gen_ai.operation.name"] == "chat"
    assert good.attributes["server.address"] == "judge:8000"
    assert good.attributes["gen_ai.usage.input_tokens"] == 100
    assert good.end_time - good.start_time == 500_000_000
    assert bad.status.status_code is StatusCode.ERROR
    assert bad.attributes["error.type"] == "failed"


def test_durations_tokens_and_verdicts_are_counted() -> None:
    _, metrics = observed()
    durations = metrics["gen_ai.client.operation.duration"]
    assert durations.unit == "s"
    assert sum(point.count for point in durations.data.data_points) == 2
    points = metrics["gen_ai.client.token.usage"].data.data_points
    assert {point.attributes["gen_ai.token.type"]: point.sum for point in points} == {
        "input": 100,
        "output": 20,
    }
    (verdicts,) = metrics["plaudit.verdicts"].data.data_points
    assert (verdicts.value, verdicts.attributes["plaudit.status"]) == (1, "ok")


def test_no_text_is_in_any_of_it() -> None:
    spans, metrics = observed()
    shown = " ".join(
        [*(span.to_json() for span in spans), *(metric.to_json() for metric in metrics.values())]
    )
    assert "a-private-text" not in shown
