"""A run in numbers, for people (a few lines on stderr) and for scripts (JSON with stable keys).

docs/command-line.md says what the keys of `--summary FILE.json` mean.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from dataclasses import asdict, dataclass, field
from typing import Any

from plaudit.events import EndpointSummary, Summary
from plaudit.report.score_digest import ScoreDigest
from plaudit.types import Cause, Usage

AS_THEY_ARE = (
    "calls", "retries", "hedges", "rate_limited", "rereads", "latency_p50_s", "latency_p95_s",
    "prompt_tokens", "completion_tokens", "cached_tokens", "reasoning_tokens", "cost", "score_mean",
    "score_std",
)  # fmt: skip
"""Keys that an engine's own summary has, too."""
FEW = 10
"""Lines below which the summary shows no histogram and no examples."""
MANY = 0.05
"""Share of the calls from which it is worth a word that they were sent again."""
BAR = 32
"""Characters of the longest bar."""
SHORT = 48
"""Characters of a text that an example shows."""


@dataclass(slots=True)
class Saved:
    """What verdicts from the cache would have cost."""

    lines: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None
    """US dollars; None where no price is known."""

    def add(self, usage: Usage, price: tuple[float, float] | None) -> None:
        """Count one verdict; the price is for a million tokens, of the prompt and of the completion."""
        self.lines += 1
        self.prompt_tokens += usage.prompt_tokens
        self.completion_tokens += usage.completion_tokens
        if price is not None:
            cost = (usage.prompt_tokens * price[0] + usage.completion_tokens * price[1]) / 1e6
            self.cost = (self.cost or 0.0) + cost

    def __str__(self) -> str:
        tokens = f"{self.prompt_tokens:,} tokens in, {self.completion_tokens:,} out"
        cost = "" if self.cost is None else f", ${self.cost:,.4f}"
        return f"saved {self.lines:,} call{'s' * (self.lines != 1)}, {tokens}{cost}"


@dataclass(slots=True)
class RunSummary:
    """What there is to say when a run is over; it is gathered meanwhile."""

    summary: Summary = field(default_factory=lambda: Summary(samples=0, seconds=0.0))
    skipped: int = 0
    models: tuple[str, ...] = ()
    output: str | None = None
    exit_status: int = 0
    cut: int = 0
    max_chars: int = 0
    """Characters of a text that the judge reads."""
    digest: ScoreDigest = field(default_factory=ScoreDigest)
    saved: Saved = field(default_factory=Saved)

    def as_json(self) -> dict[str, Any]:
        """The numbers under stable keys."""
        summary = self.summary
        return {
            "lines": summary.samples,
            "scored": summary.samples - summary.failures,
            "failed": summary.failures,
            "skipped": self.skipped,
            "cut": self.cut,
            "seconds": round(summary.seconds, 3),
            "rate": round(_rate(summary), 3),
            "by_status": dict(summary.by_status),
            "by_source": dict(summary.by_source),
            "errors": [
                {"cause": one.cause, "message": one.error, "count": one.count} for one in summary.causes
            ],
            **{name: getattr(summary, name) for name in AS_THEY_ARE},
            "histogram": self.digest.histogram(),
            "saved": asdict(self.saved),
            "model": ", ".join(self.models),
            "output": self.output,
            "exit_status": self.exit_status,
            "endpoints": [
                {**asdict(endpoint), "away_s": round(endpoint.away_s, 3)} for endpoint in summary.endpoints
            ],
        }

    def as_text(self, *, already_shown: Collection[Cause] = (), width: int | None = None) -> list[str]:
        """A few lines for people; causes that warnings have named are left out, examples cut to the width."""
        summary = self.summary
        where = f" -> {'stdout' if self.output == '-' else self.output}" if self.output else ""
        lines = [
            f"{summary.samples - summary.failures:,} of {summary.samples:,} lines scored in "
            f"{summary.seconds:.2f} s ({_rate(summary):,.1f}/s){where}"
        ]
        if self.skipped:
            lines.append(f"  skipped   {self.skipped:,} bad lines")
        if self.cut:
            lines.append(
                f"  cut       lines with a text of more than {self.max_chars:,} characters: {self.cut:,}; "
                "the judge only sees its beginning and end (set max_chars in a judge file)"
            )
        if summary.failures or set(summary.by_status) - {"ok"}:
            lines.append(f"  status    {_counts(_statuses(summary))}")
        if set(summary.by_source) - {"call"}:
            lines.append(f"  source    {_counts(summary.by_source)}")
        if summary.score_mean is not None and summary.score_std is not None:
            lines.append(
                f"  score     mean {summary.score_mean:.4g}, standard deviation {summary.score_std:.3g}"
            )
        lines += _spread(self.digest, width)
        if summary.calls:
            lines.append(f"  calls     {_calls(summary)}")
        if summary.prompt_tokens or summary.completion_tokens:
            cost = "" if summary.cost is None else f", ${summary.cost:,.4f}"
            cached = f" ({summary.cached_tokens:,} cached)" if summary.cached_tokens else ""
            thought = f" ({summary.reasoning_tokens:,} of reasoning)" if summary.reasoning_tokens else ""
            lines.append(
                f"  tokens    {summary.prompt_tokens:,} in{cached}, "
                f"{summary.completion_tokens:,} out{thought}{cost}"
            )
        if self.saved.lines:
            lines.append(f"  cache     {self.saved}")
        said = {one.error for one in summary.causes}
        troubles = (_trouble(endpoint, said) for endpoint in summary.endpoints)
        lines += [f"  endpoint  {text}" for text in troubles if text]
        lines += [
            f"  {one.count:,} x {one.cause}: {one.error}"
            for one in summary.causes
            if one.cause not in (Cause.DEADLINE, Cause.CANCELLED, *already_shown)
        ]
        return lines


def _spread(digest: ScoreDigest, width: int | None) -> list[str]:
    """The histogram, and the lines at both ends; nothing for a few lines, which can be read themselves."""
    if len(digest.scores) < FEW:
        return []
    bins = digest.histogram()
    most = max(count for _, _, count in bins)
    lines = [
        f"    {f'{low:g} to {high:g}':>12}  {'#' * math.ceil(BAR * count / most):{BAR}}  {count:,}"
        for low, high, count in bins
    ]
    for name, examples in (("worst", digest.worst), ("best", digest.best)):
        for one in examples:
            reason = f" ({_short(one.reason)})" if one.reason else ""
            line = f"  {name:8}  {one.score:g}, line {one.number}: {_short(one.response)}{reason}"
            lines.append(_short(line, width) if width else line)
    return lines


def _short(text: str, length: int = SHORT) -> str:
    text = re.sub(r"\s*\n\s*", " ", text.rstrip())
    return text if len(text) <= length else f"{text[: length - 3]}..."


def _rate(summary: Summary) -> float:
    return (summary.samples - summary.failures) / summary.seconds if summary.seconds > 0 else 0.0


def _statuses(summary: Summary) -> dict[str, int]:
    """Samples by status; those that were cancelled when the run was stopped are no failures to people."""
    cancelled = sum(one.count for one in summary.causes if one.cause is Cause.CANCELLED)
    counts = {**summary.by_status, "failed": summary.by_status.get("failed", 0) - cancelled}
    return {name: count for name, count in {**counts, "not judged": cancelled}.items() if count > 0}


def _counts(counts: Any) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in counts.items())


def _trouble(endpoint: EndpointSummary, said: Collection[str]) -> str:
    """What went wrong at an endpoint, in a line, without errors that are `said` anyway; empty for nothing."""
    parts = []
    if endpoint.away_s:
        times = f", {endpoint.times_away:,} times" if endpoint.times_away > 1 else ""
        parts.append(f"was unavailable for {endpoint.away_s:.1f} s{times}")
    if endpoint.rate_limited:
        share = endpoint.rate_limited / endpoint.calls
        why = f": {endpoint.cause}" if endpoint.cause else ""
        parts.append(f"rate limited {share:.{0 if share >= 0.01 else 1}%} of {endpoint.calls:,} calls{why}")
    if endpoint.refused:
        why = "" if endpoint.refusal in said else f", most recently: {endpoint.refusal}"
        parts.append(f"refused {endpoint.refused:,} of {endpoint.calls:,} calls{why}")
    if endpoint.sent_again > MANY * endpoint.calls:
        why = f", most recently: {endpoint.sent_again_for}"
        parts.append(f"was sent {endpoint.sent_again:,} of {endpoint.calls:,} calls again{why}")
    if endpoint.failed and not endpoint.away_s:
        parts.append(
            f"failed {endpoint.failed:,} of {endpoint.calls:,} calls, most recently: {endpoint.error}"
        )
    return f"{endpoint.name} {'; '.join(parts)}" if parts else ""


def _calls(summary: Summary) -> str:
    parts = [f"{summary.calls:,}"]
    if summary.latency_p50_s is not None and summary.latency_p95_s is not None:
        parts.append(f"half within {summary.latency_p50_s:.2f} s, 95% within {summary.latency_p95_s:.2f} s")
    for count, word in (
        (summary.retries, "retried"),
        (summary.hedges, "hedged"),
        (summary.rereads, "repeated after a reply without a verdict"),
        (summary.rate_limited, "rate limited"),
    ):
        if count:
            parts.append(f"{count:,} {word}")
    return ", ".join(parts)
