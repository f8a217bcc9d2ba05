"""Two judges on the same pairs: where they agree, where they part, and who is with the label then."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from plaudit.audit.calibration import ScoredPair, scores_of
from plaudit.audit.pairs import Pair
from plaudit.report.measure import Share, rank_correlation, share
from plaudit.types import Verdict


@dataclass(frozen=True, slots=True)
class Contender:
    """A judge by name, with its verdicts on `samples_of(pairs)`."""

    name: str
    scale: tuple[float, float]
    verdicts: Sequence[Verdict]


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A pair on which the two judges lean to different sides."""

    id: str
    prompt: str
    first: tuple[float, float]
    """The first judge's scores of the better and the worse response, on its own scale."""
    second: tuple[float, float]
    with_label: tuple[bool, bool]


@dataclass(frozen=True, slots=True)
class Comparison:
    """What two judges have in common."""

    names: tuple[str, str]
    agreement: Share
    """Pairs on which both lean to the same side, or both see a tie."""
    with_label: tuple[Share, Share]
    correlation: float | None
    """Spearman's, of the two scores, over all responses."""
    mean_difference: float | None
    """Mean distance of the two scores, each as a share of its scale."""
    missing: int
    """Pairs on which one of the judges has no two scores."""
    disagreements: tuple[Disagreement, ...]
    points: tuple[tuple[float, float, bool], ...]
    """For each response both scores, as shares of their scales, and whether it is the better one."""


def compare(pairs: Sequence[Pair], first: Contender, second: Contender) -> Comparison:
    """Compare two judges on the pairs on which both have scores."""
    ones, others = scores_of(pairs, first.verdicts), scores_of(pairs, second.verdicts)
    both = [
        (pair, one, other, one.leaning, other.leaning)
        for pair, one, other in zip(pairs, ones, others, strict=True)
        if one.leaning is not None and other.leaning is not None
    ]
    points = [
        (_unit(one_score, first.scale), _unit(other_score, second.scale), is_better)
        for _, one, other, _, _ in both
        for one_score, other_score, is_better in (
            (one.better, other.better, True),
            (one.worse, other.worse, False),
        )
    ]
    return Comparison(
        names=(first.name, second.name),
        agreement=share(sum(left == right for *_, left, right in both), len(both)),
        with_label=(
            share(sum(left == 1 for *_, left, _ in both), len(both)),
            share(sum(right == 1 for *_, right in both), len(both)),
        ),
        correlation=rank_correlation([x for x, _, _ in points], [y for _, y, _ in points]),
        mean_difference=fmean(abs(x - y) for x, y, _ in points) if points else None,
        missing=len(pairs) - len(both),
        disagreements=tuple(
            Disagreement(pair.id, pair.prompt, _both(one), _both(other), with_label=(left == 1, right == 1))
            for pair, one, other, left, right in both
            if left != right
        ),
        points=tuple(points),
    )


def _unit(score: float | None, scale: tuple[float, float]) -> float:
    assert score is not None
    low, high = scale
    return (score - low) / (high - low)


def _both(pair: ScoredPair) -> tuple[float, float]:
    assert pair.better is not None
    assert pair.worse is not None
    return pair.better, pair.worse
