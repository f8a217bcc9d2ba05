"""Two judges on the same pairs or the same answers: where they agree, where they part, and which of them is
with the label then."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import fmean

from plaudit.audit.calibration import scores_of
from plaudit.audit.pairs import Pair
from plaudit.report.measure import Share, rank_correlation, share
from plaudit.types import Sample, Verdict

CLOSE = 0.1
"""Distance of two scores, as shares of their scales, up to which they count as close."""


@dataclass(frozen=True, slots=True)
class Contender:
    """A judge by name, with its verdicts on `samples_of(pairs)`, or on the answers."""

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
        (pair, scores, other_scores, one.leaning, other.leaning)
        for pair, one, other in zip(pairs, ones, others, strict=True)
        if (scores := one.scores) and (other_scores := other.scores)
    ]
    points = [
        (_unit(x, first.scale), _unit(y, second.scale), is_better)
        for _, one_scores, other_scores, _, _ in both
        for x, y, is_better in zip(one_scores, other_scores, (True, False), strict=True)
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
            Disagreement(pair.id, pair.prompt, scores, other_scores, with_label=(left == 1, right == 1))
            for pair, scores, other_scores, left, right in both
            if left != right
        ),
        points=tuple(points),
    )


@dataclass(frozen=True, slots=True)
class AnswerDifference:
    """An answer that two judges score differently."""

    number: int
    """Its place among the answers, from 1."""
    prompt: str
    response: str
    scores: tuple[float, float]
    """Each on the scale of its judge."""
    distance: float
    """Of the scores as shares of their scales."""


@dataclass(frozen=True, slots=True)
class AnswerComparison:
    """What two judges have in common on answers without labels."""

    names: tuple[str, str]
    close: Share
    """Answers whose scores are within a tenth of the scale of each other."""
    same_order: Share
    """Of two answers in one group that both judges tell apart, those that both put in the same order."""
    correlation: float | None
    """Spearman's, over all answers."""
    mean_difference: float | None
    """Mean distance of the two scores, each as a share of its scale."""
    means: tuple[float, float] | None
    """The mean score of each judge, on its own scale."""
    missing: int
    """Answers without a score from one of the judges."""
    differences: tuple[AnswerDifference, ...]
    """All that are not close, the largest first."""
    points: tuple[tuple[float, float, bool], ...]
    """For each answer both scores, as shares of their scales, and whether they are close."""


def compare_answers(samples: Sequence[Sample], first: Contender, second: Contender) -> AnswerComparison:
    """Compare two judges on the answers for which both have scores."""
    scored = [
        (number, sample, one.score, other.score)
        for number, (sample, one, other) in enumerate(
            zip(samples, first.verdicts, second.verdicts, strict=True), start=1
        )
        if one.score is not None and other.score is not None
    ]
    points = [(_unit(one, first.scale), _unit(other, second.scale)) for _, _, one, other in scored]
    found = [
        AnswerDifference(number, _task(sample), sample.text, (one, other), abs(x - y))
        for (number, sample, one, other), (x, y) in zip(scored, points, strict=True)
    ]
    apart = sorted((one for one in found if one.distance > CLOSE), key=lambda one: -one.distance)
    same, ordered = _orders([(sample.group, one, other) for _, sample, one, other in scored])
    return AnswerComparison(
        names=(first.name, second.name),
        close=share(len(found) - len(apart), len(found)),
        same_order=share(same, ordered),
        correlation=rank_correlation([x for x, _ in points], [y for _, y in points]),
        mean_difference=fmean(one.distance for one in found) if found else None,
        means=(fmean(one for _, _, one, _ in scored), fmean(other for *_, other in scored))
        if scored
        else None,
        missing=len(samples) - len(found),
        differences=tuple(apart),
        points=tuple((x, y, abs(x - y) <= CLOSE) for x, y in points),
    )


def _task(sample: Sample) -> str:
    return sample.prompt if isinstance(sample.prompt, str) else sample.prompt[-1]["content"]


def _orders(scored: Sequence[tuple[str | None, float, float]]) -> tuple[int, int]:
    """Pairs within a group that both judges put in the same order, of those that both tell apart."""
    groups: dict[str, list[tuple[float, float]]] = {}
    for group, one, other in scored:
        if group is not None:
            groups.setdefault(group, []).append((one, other))
    same = opposite = 0
    for answers in groups.values():
        worse: list[float] = []  # sorted: the second judge's scores of what the first finds worse
        for _, ties in groupby(sorted(answers), key=lambda scores: scores[0]):
            others = [other for _, other in ties]
            same += sum(bisect_left(worse, other) for other in others)
            opposite += sum(len(worse) - bisect_right(worse, other) for other in others)
            for other in others:
                insort(worse, other)
    return same, same + opposite


def _unit(score: float, scale: tuple[float, float]) -> float:
    low, high = scale
    return (score - low) / (high - low)
