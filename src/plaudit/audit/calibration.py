"""How far a judge agrees with labelled pairs, with itself, and with mere length and format.

verdicts = engine.score(samples_of(pairs), judge)
result = calibrate(pairs, verdicts, scale=judge.scale)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from plaudit.audit.pairs import Pair
from plaudit.report.measure import Share, rank_correlation, share
from plaudit.types import Verdict

_MARKDOWN = re.compile(
    r"^\s{0,3}(?:#{1,6}\s|[-*+]\s|\d+[.)]\s|>|```|\|)|\*\*[^*\n]+\*\*|`[^`\n]+`", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class Bias:
    """Whether the judge follows a trait of the responses, such as their length."""

    correlation: float | None
    """Spearman's, of the trait with the score, over all responses; None where one of them never changes."""
    preferred: Share
    """Of the pairs that differ in it and got different scores: where the one with more of it won."""
    labelled: Share
    """Of the same pairs: where it should have won. A judge far above it follows the trait."""


@dataclass(frozen=True, slots=True)
class Retest:
    """The same questions asked again, past the cache."""

    same: Share
    """Responses with the same score both times."""
    mean_change: float | None
    """Mean distance of the two scores, as a share of the scale."""
    flipped: Share
    """Pairs whose winner changed; a tie that is won the second time counts."""


@dataclass(frozen=True, slots=True)
class ScoredPair:
    """A pair and its two scores."""

    id: str
    subset: str
    better: float | None
    worse: float | None

    @property
    def scores(self) -> tuple[float, float] | None:
        """Of the better response and of the worse one; None where one is missing."""
        return None if self.better is None or self.worse is None else (self.better, self.worse)

    @property
    def leaning(self) -> int | None:
        """1 where the judge agrees with the label, 0 for a tie, -1 against it; None without both scores."""
        return (self.scores[0] > self.scores[1]) - (self.scores[0] < self.scores[1]) if self.scores else None


@dataclass(frozen=True, slots=True)
class ScoredResponse:
    """A response in the picture of scores over lengths."""

    length: int
    score: float
    is_better: bool


@dataclass(frozen=True, slots=True)
class Calibration:
    """What the labelled pairs say about a judge."""

    scale: tuple[float, float]
    agreement: Share
    """Pairs whose better response got the higher score; a tie is no agreement."""
    decided: Share
    """The same among the pairs that are not tied."""
    ties: Share
    missing: int
    """Pairs without both scores."""
    subsets: tuple[tuple[str, Share], ...]
    length: Bias
    markdown: Bias
    swap: Share | None
    """Pairs where the judge names the same winner in both orders; None where it sees no order."""
    retest: Retest | None
    pairs: tuple[ScoredPair, ...]
    points: tuple[ScoredResponse, ...]


def calibrate(
    pairs: Sequence[Pair],
    verdicts: Sequence[Verdict],
    *,
    scale: tuple[float, float],
    again: Sequence[Verdict] | None = None,
) -> Calibration:
    """Compare the verdicts on `samples_of(pairs)` with the labels, and with a second set of verdicts."""
    scored = scores_of(pairs, verdicts)
    leanings = [pair.leaning for pair in scored if pair.leaning is not None]
    right, ties = leanings.count(1), leanings.count(0)
    subsets = sorted({pair.subset for pair in scored})
    return Calibration(
        scale=scale,
        agreement=share(right, len(leanings)),
        decided=share(right, len(leanings) - ties),
        ties=share(ties, len(leanings)),
        missing=len(scored) - len(leanings),
        subsets=tuple((name, _agreement(pair for pair in scored if pair.subset == name)) for name in subsets)
        if len(subsets) > 1
        else (),
        length=_bias(pairs, scored, len),
        markdown=_bias(pairs, scored, markdown_marks),
        swap=_swap(verdicts),
        retest=None if again is None else _retest(scored, scores_of(pairs, again), scale),
        pairs=tuple(scored),
        points=tuple(
            ScoredResponse(len(response), score, is_better)
            for pair, result in zip(pairs, scored, strict=True)
            for response, score, is_better in (
                (pair.better, result.better, True),
                (pair.worse, result.worse, False),
            )
            if score is not None
        ),
    )


def scores_of(pairs: Sequence[Pair], verdicts: Sequence[Verdict]) -> list[ScoredPair]:
    return [
        ScoredPair(pair.id, pair.subset, better.score, worse.score)
        for pair, better, worse in zip(pairs, verdicts[::2], verdicts[1::2], strict=True)
    ]


def markdown_marks(text: str) -> int:
    """How many headings, bullets, quotes, table rows, code marks and bold words a text has."""
    return len(_MARKDOWN.findall(text))


def _agreement(pairs: Iterable[ScoredPair]) -> Share:
    leanings = [pair.leaning for pair in pairs if pair.leaning is not None]
    return share(leanings.count(1), len(leanings))


def _bias(pairs: Sequence[Pair], scored: Sequence[ScoredPair], trait: Callable[[str], int]) -> Bias:
    traits: list[float] = []
    scores: list[float] = []
    preferred = labelled = differing = 0
    for pair, result in zip(pairs, scored, strict=True):
        of_better, of_worse = trait(pair.better), trait(pair.worse)
        for amount, score in ((of_better, result.better), (of_worse, result.worse)):
            if score is not None:
                traits.append(amount)
                scores.append(score)
        if result.leaning and of_better != of_worse:
            differing += 1
            labelled += of_better > of_worse
            preferred += (of_better > of_worse) == (result.leaning > 0)
    return Bias(rank_correlation(traits, scores), share(preferred, differing), share(labelled, differing))


def _swap(verdicts: Sequence[Verdict]) -> Share | None:
    """From what a pairwise judge says of its own comparisons; both responses of a pair say the same."""
    told = [verdict.parts for verdict in verdicts[::2] if "inconsistent" in verdict.parts]
    total = round(sum(parts["comparisons"] for parts in told))
    changed = sum(round(parts["inconsistent"] * parts["comparisons"]) for parts in told)
    return share(total - changed, total) if told else None


def _retest(first: Sequence[ScoredPair], second: Sequence[ScoredPair], scale: tuple[float, float]) -> Retest:
    changes = [
        abs(before - after)
        for one, other in zip(first, second, strict=True)
        for before, after in ((one.better, other.better), (one.worse, other.worse))
        if before is not None and after is not None
    ]
    leanings = [
        (one.leaning, other.leaning)
        for one, other in zip(first, second, strict=True)
        if one.leaning is not None and other.leaning is not None
    ]
    return Retest(
        same=share(sum(change == 0 for change in changes), len(changes)),
        mean_change=fmean(changes) / (scale[1] - scale[0]) if changes else None,
        flipped=share(sum(before != after for before, after in leanings), len(leanings)),
    )
