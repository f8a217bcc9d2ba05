"""What the engine hands to a journal: one sample's verdict with the evidence behind it."""

from __future__ import annotations

from typing import Protocol

import msgspec

from plaudit.judges.base import Judge, Panel
from plaudit.types import Request, Sample, Verdict

STEP_KEY = "training_step"
"""Where a sample's `extra` says which step of a training it belongs to."""

GOLD_KEY = "gold"
"""Where a sample's `extra` says what it truly deserves, from 0 to 1, if that is known."""

CANARY_KEY = "canary"
"""Where a sample's `extra` says that it is a wrong answer to test the judge: the score that lets it pass."""


class Exchange(msgspec.Struct, array_like=True, gc=False):
    """One request that was answered, or failed for good."""

    endpoint: str
    reply: str | None
    """The reply as it came; None where there was none."""
    error: str | None
    """Why there was none, or why it could not be read."""
    finish_reason: str
    latency_s: float
    sends: int
    """Everything sent for it: retries, rate-limited tries and hedges included."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    reasoning: str = ""
    """What the model thought before it answered, where the endpoint gives it apart from the reply."""


class Judged(msgspec.Struct, gc=False):
    """One sample with its verdict, and what led to it."""

    sample: Sample
    judge: Judge | Panel
    verdict: Verdict
    batch: int
    position: int
    """Of the sample in its batch."""
    request: Request | None = None
    exchanges: tuple[Exchange, ...] = ()
    queued_s: float = 0.0
    """Seconds between the look-up and the first send."""
    is_late: bool = False
    """Whether the caller had gone on without it."""
    panel: int = 0
    """Of a question that a panel asked: the panel's batch."""
    serves: tuple[int, ...] = ()
    """The samples of the panel's batch that needed it."""
    at: float = 0.0
    """Unix time, set by the journal that takes it."""


class Journal(Protocol):
    """Takes what an engine has judged. Called on the engine's thread; it never raises and never waits."""

    def add(self, *judged: Judged) -> None:
        """Keep verdicts."""
        ...
