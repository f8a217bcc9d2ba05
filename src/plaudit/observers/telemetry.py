"""Spans and metrics for OpenTelemetry, by its conventions for generative AI. Extra `otel`.

    Engine(url, observers=[OpenTelemetry()])
    plaudit serve --observers plaudit:OpenTelemetry ...

Nothing of a prompt, a response or a reason is in them. Where they go is a matter of the SDK's own settings
(OTEL_EXPORTER_OTLP_ENDPOINT and its like).
"""

from __future__ import annotations

import time
from typing import Any

from plaudit.errors import ConfigError
from plaudit.events import CallFinished, Event, VerdictsReady
from plaudit.install_command import install_command

OPERATION = "gen_ai.operation.name"
DURATIONS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
TOKENS = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864)
"""Bounds that the conventions recommend."""


class OpenTelemetry:
    """An observer: a span and a duration for each call, its tokens, and verdicts by status.

    Args:
        tracer_provider: Left out: the global one.
        meter_provider: Left out: the global one.

    Raises:
        ConfigError: opentelemetry-api is not installed.
    """

    def __init__(self, *, tracer_provider: Any = None, meter_provider: Any = None) -> None:
        try:
            from opentelemetry import metrics, trace
        except ImportError as error:
            raise ConfigError(
                f"opentelemetry is not installed ({error}); run: {install_command('plaudit[otel]')}"
            ) from error
        self._tracer = trace.get_tracer("plaudit", tracer_provider=tracer_provider)
        self._failed = trace.StatusCode.ERROR
        self._kind = trace.SpanKind.CLIENT
        meter = metrics.get_meter("plaudit", meter_provider=meter_provider)
        self._durations = meter.create_histogram(
            "gen_ai.client.operation.duration",
            unit="s",
            description="Duration of a call in seconds.",
            explicit_bucket_boundaries_advisory=DURATIONS,
        )
        self._tokens = meter.create_histogram(
            "gen_ai.client.token.usage",
            unit="{token}",
            description="Tokens of a call.",
            explicit_bucket_boundaries_advisory=TOKENS,
        )
        self._verdicts = meter.create_counter(
            "plaudit.verdicts", unit="{verdict}", description="Verdicts, by status and source."
        )

    def __call__(self, event: Event) -> None:
        if isinstance(event, CallFinished):
            self._on_call(event)
        elif isinstance(event, VerdictsReady):
            for verdict in event.verdicts:
                self._verdicts.add(
                    1, {"plaudit.status": verdict.status.value, "plaudit.source": verdict.source.value}
                )

    def _on_call(self, event: CallFinished) -> None:
        about: dict[str, str | int] = {OPERATION: "chat", "server.address": event.endpoint}
        if event.outcome != "ok":
            about["error.type"] = event.outcome
        self._durations.record(event.latency_s, about)
        used = {"input": event.usage.prompt_tokens, "output": event.usage.completion_tokens}
        for kind, count in used.items():
            if count:
                self._tokens.record(count, {**about, "gen_ai.token.type": kind})
        end = time.time_ns()
        counts = {f"gen_ai.usage.{kind}_tokens": count for kind, count in used.items()}
        span = self._tracer.start_span(
            "chat",
            kind=self._kind,
            attributes={**about, **counts},
            start_time=end - int(event.latency_s * 1e9),
        )
        if event.outcome in ("failed", "refused"):
            span.set_status(self._failed)
        span.end(end)
