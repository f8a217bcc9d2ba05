"""What happens inside the engine, as one typed stream: logs, progress, metrics and tests all read it.

No event carries a key, a prompt or a response text, except the verdicts of VerdictsReady (whose `reason` is
the judge's own text): observers must not log that above DEBUG.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from plaudit.types import Cause, Usage, Verdict


@dataclass(frozen=True, slots=True)
class CauseCount:
    """How many samples have no score for one cause, at one endpoint where it is an endpoint's."""

    cause: Cause
    count: int
    error: str
    """The first of their messages."""


class CauseCounter:
    """Counts verdicts without a score by cause and endpoint, in bounded memory."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[Cause, str]] = Counter()
        self._errors: dict[tuple[Cause, str], str] = {}

    def add(self, verdict: Verdict, count: int = 1) -> None:
        """Count a verdict that so many samples have."""
        if verdict.failure is None:
            return
        key = verdict.failure.cause, str(verdict.failure.facts.get("endpoint", ""))
        self._counts[key] += count
        self._errors.setdefault(key, verdict.error or verdict.failure.cause)

    def commonest(self) -> tuple[CauseCount, ...]:
        """The ten commonest causes."""
        return tuple(
            CauseCount(key[0], count, self._errors[key]) for key, count in self._counts.most_common(10)
        )


@dataclass(frozen=True, slots=True)
class EndpointSummary:
    """What happened to one endpoint in a run."""

    name: str
    calls: int
    """Calls that came back, in whatever way."""
    failed: int = 0
    rate_limited: int = 0
    """Calls that were rate limited (429, or 503 with Retry-After)."""
    away_s: float = 0.0
    """Seconds in which calls failed and none was answered."""
    times_away: int = 0
    cause: str = ""
    """Why calls were rate limited, as far as the engine can tell; empty where it cannot."""
    error: str = ""
    """The last error of a call that failed."""
    refused: int = 0
    """Calls that were refused, for their key, model or content (4xx)."""
    refusal: str = ""
    """The last error of such a call."""
    sent_again: int = 0
    """Calls that left again at once: for an unknown parameter, or a connection that the server had closed."""
    sent_again_for: str = ""
    """Why the last of them did."""


@dataclass(frozen=True, slots=True)
class Summary:
    """A batch in numbers."""

    samples: int
    seconds: float
    by_status: Mapping[str, int] = field(default_factory=dict)
    by_source: Mapping[str, int] = field(default_factory=dict)
    causes: tuple[CauseCount, ...] = ()
    """Why samples have no score, the commonest cause first, ten at most."""
    calls: int = 0
    """Requests sent for this batch, retries and hedges included."""
    retries: int = 0
    hedges: int = 0
    rate_limited: int = 0
    """Answers that said "too many requests"."""
    rereads: int | None = None
    """Replies that held no verdict and were asked for again; None where they were not counted."""
    latency_p50_s: float | None = None
    latency_p95_s: float | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    """Of the prompts', those that endpoints had in their caches; of the completions', those of reasoning."""
    reasoning_tokens: int = 0
    cost: float | None = None
    """US dollars; None where no endpoint has a price."""
    score_mean: float | None = None
    score_std: float | None = None
    endpoints: tuple[EndpointSummary, ...] = ()
    """What happened to each endpoint; of a single batch it is not known."""

    @property
    def failures(self) -> int:
        """Samples without a verdict."""
        return self.samples - self.by_status.get("ok", 0) - self.by_status.get("empty", 0)


@dataclass(frozen=True, slots=True)
class BatchStarted:
    at: float
    batch: int
    samples: int


@dataclass(frozen=True, slots=True)
class VerdictsReady:
    at: float
    batch: int
    verdicts: tuple[Verdict, ...]


@dataclass(frozen=True, slots=True)
class BatchFinished:
    at: float
    batch: int
    summary: Summary


@dataclass(frozen=True, slots=True)
class CallStarted:
    at: float
    endpoint: str
    in_flight: int
    """Calls on their way to this endpoint, this one included."""
    is_hedge: bool = False


@dataclass(frozen=True, slots=True)
class CallFinished:
    at: float
    endpoint: str
    in_flight: int
    outcome: str
    """`ok`, `rate_limited`, `sent_again` (no fault of the endpoint), `failed`, `refused` or `cancelled`."""
    latency_s: float
    usage: Usage = field(default_factory=Usage)
    error: str | None = None


@dataclass(frozen=True, slots=True)
class RetryPlanned:
    at: float
    endpoint: str
    attempt: int
    wait_s: float
    error: str


@dataclass(frozen=True, slots=True)
class LimitChanged:
    at: float
    endpoint: str
    limit: int
    cause: str


@dataclass(frozen=True, slots=True)
class BreakerChanged:
    at: float
    endpoint: str
    state: str
    """`open`, `half-open` or `closed`."""
    error: str | None = None
    waits_s: float | None = None
    """Where no connection succeeds: seconds after which it is given up, if that stays so."""
    due: float = 0.0
    """Where it is open: when a call may look again, at the earliest."""


@dataclass(frozen=True, slots=True)
class EndpointLost:
    """The endpoint will refuse every call: wrong key, unknown model, no server."""

    at: float
    endpoint: str
    error: str
    cause: Cause = Cause.UNREACHABLE


@dataclass(frozen=True, slots=True)
class CacheTrouble:
    at: float
    message: str


Event = (
    BatchStarted
    | VerdictsReady
    | BatchFinished
    | CallStarted
    | CallFinished
    | RetryPlanned
    | LimitChanged
    | BreakerChanged
    | EndpointLost
    | CacheTrouble
)

Observer = Callable[[Event], None]
"""Called on the engine's thread: be quick, and never raise."""
