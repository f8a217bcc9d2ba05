"""A run in numbers, for people (a few lines on stderr) and for scripts (JSON with stable keys).

The keys of `--summary FILE.json`:
    lines, scored, failed    lines read that could be scored; those with a verdict; those without
    skipped                  lines left out by --skip-bad
    cut                      lines whose text is longer than the judge reads
    seconds, rate            wall time; verdicts a second
    by_status, by_source     counts: ok, empty, failed, ...; call, cache, shared, rule
    errors                   [{cause, message, count}], the commonest first, ten at most
    calls, retries, hedges, rate_limited requests sent, and of these the repeated, doubled and rate limited
    latency_p50_s, latency_p95_s         of answered calls; null where there was none
    prompt_tokens, completion_tokens     as the endpoints counted them
    cached_tokens, reasoning_tokens      of these, where they count them
    cost                     US dollars; null where no price is known
    score_mean, score_std    of the lines with a verdict; null where there is none
    model                    those that judged, separated by commas
    output                   the file written, or null
    exit_status              as the command ends
    endpoints                [{name, calls, failed, rate_limited, away_s, times_away, cause, error}]
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass
from typing import Any

from plaudit.events import EndpointSummary, Summary
from plaudit.types import Cause

SETTLED = ("ok", "empty")


@dataclass(frozen=True, slots=True)
class RunSummary:
    """What there is to say when a run is over."""

    summary: Summary
    skipped: int
    models: tuple[str, ...]
    output: str | None
    exit_status: int
    cut: int = 0
    max_chars: int = 0
    """Characters of a text that the judge reads."""

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
            "calls": summary.calls,
            "retries": summary.retries,
            "hedges": summary.hedges,
            "rate_limited": summary.rate_limited,
            "latency_p50_s": summary.latency_p50_s,
            "latency_p95_s": summary.latency_p95_s,
            "prompt_tokens": summary.prompt_tokens,
            "completion_tokens": summary.completion_tokens,
            "cached_tokens": summary.cached_tokens,
            "reasoning_tokens": summary.reasoning_tokens,
            "cost": summary.cost,
            "score_mean": summary.score_mean,
            "score_std": summary.score_std,
            "model": ", ".join(self.models),
            "output": self.output,
            "exit_status": self.exit_status,
            "endpoints": [
                {**asdict(endpoint), "away_s": round(endpoint.away_s, 3)} for endpoint in summary.endpoints
            ],
        }

    def as_text(self, *, already_shown: Collection[Cause] = ()) -> list[str]:
        """A few lines for people; causes they have been shown while it ran are not repeated."""
        summary = self.summary
        where = f" -> {self.output}" if self.output else ""
        lines = [
            f"{summary.samples - summary.failures:,} of {summary.samples:,} lines scored in "
            f"{summary.seconds:.2f} s ({_rate(summary):,.1f}/s){where}"
        ]
        if self.skipped:
            lines.append(f"  skipped   {self.skipped:,} bad lines")
        if self.cut:
            lines.append(
                f"  cut       {self.cut:,} lines have a text of more than {self.max_chars:,} characters: "
                "the judge reads its beginning and its end (max_chars in a judge's file)"
            )
        if summary.failures or set(summary.by_status) - {"ok"}:
            lines.append(f"  status    {_counts(summary.by_status)}")
        if set(summary.by_source) - {"call"}:
            lines.append(f"  source    {_counts(summary.by_source)}")
        if summary.score_mean is not None and summary.score_std is not None:
            lines.append(f"  score     mean {summary.score_mean:.4g}, deviation {summary.score_std:.3g}")
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
        lines += [f"  endpoint  {text}" for text in map(_trouble, summary.endpoints) if text]
        lines += [
            f"  {one.count:,} x {one.cause}: {one.error}"
            for one in summary.causes
            if one.cause is not Cause.DEADLINE and one.cause not in already_shown
        ]
        return lines


def _rate(summary: Summary) -> float:
    return (summary.samples - summary.failures) / summary.seconds if summary.seconds > 0 else 0.0


def _counts(counts: Any) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in counts.items())


def _trouble(endpoint: EndpointSummary) -> str:
    """What went wrong at an endpoint, in a line; empty where nothing did."""
    parts = []
    if endpoint.away_s:
        times = f", {endpoint.times_away:,} times" if endpoint.times_away > 1 else ""
        parts.append(f"was away for {endpoint.away_s:.1f} s{times}")
    if endpoint.rate_limited:
        share = endpoint.rate_limited / endpoint.calls
        why = f": {endpoint.cause}" if endpoint.cause else ""
        parts.append(f"rate limited {share:.{0 if share >= 0.01 else 1}%} of {endpoint.calls:,} calls{why}")
    if endpoint.failed and not endpoint.away_s:
        parts.append(
            f"failed {endpoint.failed:,} of {endpoint.calls:,} calls, the last one: {endpoint.error}"
        )
    return f"{endpoint.name} {'; '.join(parts)}" if parts else ""


def _calls(summary: Summary) -> str:
    parts = [f"{summary.calls:,}"]
    if summary.latency_p50_s is not None and summary.latency_p95_s is not None:
        parts.append(f"half within {summary.latency_p50_s:.2f} s, 95% within {summary.latency_p95_s:.2f} s")
    for count, word in (
        (summary.retries, "retried"),
        (summary.hedges, "hedged"),
        (summary.rate_limited, "rate limited"),
    ):
        if count:
            parts.append(f"{count:,} {word}")
    return ", ".join(parts)
