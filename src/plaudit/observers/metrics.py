"""A batch as flat numbers, under names that a tracker plots: judge/... for verdicts, reward/... for rewards.

    wandb.log(metrics(verdicts=verdicts, summary=pending.summary, rewards=rewards, lengths=lengths))

What cannot be known from what was passed, or from this batch, is left out: no number is better than a made-up
one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from statistics import StatisticsError, correlation, fmean
from typing import TYPE_CHECKING

from plaudit.events import Summary
from plaudit.types import Status, Verdict
from plaudit.value_check import check_length

if TYPE_CHECKING:
    from plaudit.rewards import Rewards

FAILURES = tuple(status.value for status in Status if status not in (Status.OK, Status.EMPTY))
DISAGREEMENT = "disagreement"
"""The part of a jury's verdict that says how far its members are apart."""


def metrics(
    *,
    verdicts: Sequence[Verdict] = (),
    summary: Summary | None = None,
    rewards: Rewards | None = None,
    lengths: Sequence[float] | None = None,
) -> dict[str, float]:
    """Everything there is to plot about one batch; pass what there is. `lengths`: of the judged responses."""
    if lengths is not None:
        check_length("lengths", lengths, len(verdicts), "verdicts")
    found: dict[str, float | None] = {}
    if verdicts or summary is not None:
        found.update(_scores(verdicts, summary))
        found.update(_outcomes(verdicts, summary))
    if verdicts:
        found["judge/disagreement"] = _mean(
            [v.parts[DISAGREEMENT] for v in verdicts if DISAGREEMENT in v.parts]
        )
    if lengths is not None:
        found["judge/length_correlation"] = _correlation(verdicts, lengths)
    if summary is not None:
        found.update(_traffic(summary))
    if rewards is not None:
        found.update(_rewards(rewards))
    return {name: float(value) for name, value in found.items() if value is not None}


def _scores(verdicts: Sequence[Verdict], summary: Summary | None) -> dict[str, float | None]:
    if not verdicts and summary is not None:
        return {"judge/score_mean": summary.score_mean, "judge/score_std": summary.score_std}
    scores = [verdict.score for verdict in verdicts if verdict.score is not None]
    return {"judge/score_mean": _mean(scores), "judge/score_std": _std(scores)}


def _outcomes(verdicts: Sequence[Verdict], summary: Summary | None) -> dict[str, float | None]:
    """How many samples came to what, every class named even where it is 0, as plots like it."""
    counted = (verdict.status.value for verdict in verdicts)
    by_status = Counter(summary.by_status if summary is not None and not verdicts else counted)
    total = by_status.total()
    if not total:
        return {}
    failed = {f"judge/failure_rate/{status}": by_status[status] / total for status in FAILURES}
    return {"judge/valid_rate": 1.0 - sum(by_status[status] for status in FAILURES) / total, **failed}


def _traffic(summary: Summary) -> dict[str, float | None]:
    asked = summary.by_source.get("call", 0)
    rereads = summary.rereads
    return {
        "judge/parse_retry_rate": rereads / asked if rereads is not None and asked else None,
        "judge/cache_rate": summary.by_source.get("cache", 0) / summary.samples if summary.samples else None,
        "judge/latency_p50_s": summary.latency_p50_s,
        "judge/latency_p95_s": summary.latency_p95_s,
        "judge/seconds": summary.seconds,
        "judge/calls": summary.calls,
        "judge/retries": summary.retries,
        "judge/hedges": summary.hedges,
        "judge/rate_limited": summary.rate_limited,
        "judge/prompt_tokens": summary.prompt_tokens,
        "judge/completion_tokens": summary.completion_tokens,
        "judge/cost_usd": summary.cost,
    }


def _rewards(rewards: Rewards) -> dict[str, float | None]:
    rows = rewards.rows
    valid = [row.reward for row in rows if row.valid and row.reward is not None]
    found: dict[str, float | None] = {
        "reward/mean": _mean(valid),
        "reward/std": _std(valid),
        "reward/valid_rate": len(valid) / len(rows) if rows else None,
        "reward/groups_masked": rewards.groups_masked,
        "reward/groups_zero_spread": rewards.groups_zero_spread,
        "reward/screened_rate": _mean([float(row.status == "screened") for row in rows]),
    }
    for name in rows[0].raw if rows else ():
        values = [value for row in rows if (value := row.raw[name]) is not None]
        found[f"reward/{name}/mean"] = _mean(values)
        found[f"reward/{name}/std"] = _std(values)
        found[f"reward/{name}/weighted_mean"] = _mean([rows[0].weights[name] * value for value in values])
        found[f"reward/{name}/valid_rate"] = len(values) / len(rows)
    return found


def _correlation(verdicts: Sequence[Verdict], lengths: Sequence[float]) -> float | None:
    """Pearson's; none where there is nothing to correlate: fewer than two scores, or all alike."""
    pairs = [(v.score, length) for v, length in zip(verdicts, lengths, strict=True) if v.score is not None]
    try:
        return correlation([float(score) for score, _ in pairs], [float(length) for _, length in pairs])
    except StatisticsError:
        return None


def _mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None


def _std(values: Sequence[float]) -> float | None:
    if not values:
        return None
    mean = fmean(values)
    return math.sqrt(fmean([(value - mean) ** 2 for value in values]))
