"""Events as log lines: a batch at INFO, trouble at WARNING once per cause, the rest at DEBUG.

    logging.basicConfig(level=logging.INFO)
    Engine(url, model="m", observers=[Log()])

No line carries a prompt, a response, a reason or a key.
"""

from __future__ import annotations

import logging

from plaudit.events import (
    BatchFinished,
    BatchStarted,
    BreakerChanged,
    CacheTrouble,
    CallFinished,
    CallStarted,
    EndpointLost,
    Event,
    LimitChanged,
    RetryPlanned,
    Summary,
    VerdictsReady,
)

REPEAT_AFTER = 600.0
"""Seconds before the same trouble is worth a second line."""
CAUSES_KEPT = 1000
_ROUTINE = frozenset((BatchStarted, CallStarted, VerdictsReady))


class Log:
    """An observer that writes to a logger, `plaudit` by default."""

    def __init__(self, logger: logging.Logger | None = None) -> None:
        self._logger = logger or logging.getLogger("plaudit")
        self._warned_at: dict[tuple[str, ...], float] = {}

    def __call__(self, event: Event) -> None:
        is_routine = type(event) in _ROUTINE or (isinstance(event, CallFinished) and event.outcome == "ok")
        if is_routine and not self._logger.isEnabledFor(logging.DEBUG):
            return  # nearly every event
        if trouble := _trouble(event):
            cause, message = trouble
            if self._is_news(cause, event.at):
                lost = event.cause if isinstance(event, EndpointLost) else None
                self._logger.warning("%s", message, extra={"plaudit_cause": lost})
        elif isinstance(event, BatchFinished):
            if self._logger.isEnabledFor(logging.INFO):
                self._logger.info("%s", _finished(event.summary))
        elif self._logger.isEnabledFor(logging.DEBUG):
            self._logger.debug("%s", _detail(event))

    def _is_news(self, cause: tuple[str, ...], at: float) -> bool:
        last = self._warned_at.get(cause)
        if last is not None and at - last < REPEAT_AFTER:
            return False
        if len(self._warned_at) >= CAUSES_KEPT:
            self._warned_at.clear()  # bounded: better a line too many than memory without end
        self._warned_at[cause] = at
        return True


def _trouble(event: Event) -> tuple[tuple[str, ...], str] | None:
    """What identifies the trouble, and the line that says it."""
    match event:
        case EndpointLost():
            return ("lost", event.endpoint, event.cause), f"endpoint lost: {event.error}"
        case BreakerChanged(state="open", waits_s=float(seconds)):
            told = f"{event.error}. Still trying, for up to {seconds:g} s"
            return ("unreachable", event.endpoint), told
        case BreakerChanged(state="open"):
            why = f": {event.error}" if event.error else ""
            return ("breaker", event.endpoint), f"{event.endpoint} keeps failing; calls to it pause{why}"
        case CacheTrouble():
            return ("cache", event.message), event.message
        case CallFinished(outcome="rate_limited"):
            told = event.error or f"{event.endpoint} is rate limiting"
            return ("rate_limited", event.endpoint), f"{told}; fewer calls are sent at once"
        case _:
            return None


def _finished(summary: Summary) -> str:
    scored = summary.samples - summary.failures
    each_ms = 1000 * summary.seconds / summary.samples if summary.samples else 0.0
    parts = [
        f"scored {scored:,} of {summary.samples:,} in {summary.seconds:.2f} s ({each_ms:.1f} ms a response)"
    ]
    if summary.score_mean is not None:
        parts.append(f"mean score {summary.score_mean:.4g}")
    if cached := summary.by_source.get("cache", 0):
        parts.append(f"{cached:,} from the cache")
    if summary.failures:
        lost = ", ".join(
            f"{count:,} {status}"
            for status, count in summary.by_status.items()
            if status not in ("ok", "empty")
        )
        parts.append(f"without a verdict: {lost}")
    return "; ".join(parts)


def _detail(event: Event) -> str:
    match event:
        case BatchStarted():
            return f"batch {event.batch}: {event.samples:,} samples"
        case VerdictsReady():
            return f"batch {event.batch}: {len(event.verdicts):,} verdicts"
        case CallStarted():
            return f"{event.endpoint}: {'hedge' if event.is_hedge else 'call'} {event.in_flight} in flight"
        case CallFinished():
            why = f" ({event.error})" if event.error else ""
            return f"{event.endpoint}: {event.outcome} after {event.latency_s:.3f} s{why}"
        case RetryPlanned():
            return f"{event.endpoint}: attempt {event.attempt} in {event.wait_s:.2f} s after {event.error}"
        case LimitChanged():
            return f"{event.endpoint}: limit {event.limit} ({event.cause})"
        case BreakerChanged():
            return f"{event.endpoint}: breaker {event.state}"
        case _:
            return type(event).__name__
