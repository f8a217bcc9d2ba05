"""Anchors: what the scores of a scale stand for, in the user's words, or every score in general ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from plaudit.errors import ConfigError
from plaudit.judges.scale import Scale

WORST = "nothing of what the rubric asks for: wrong, beside the point, or no answer"
POOR = "a little of it; serious faults outweigh what is right"
MIDDLING = "about half of it; what is right and what is wrong weigh the same"
GOOD = "nearly all of it; only small faults"
BEST = "all of it, without a fault"


def checked_anchors(anchors: Mapping[float, str], scale: Scale) -> dict[float, str]:
    """The anchors, if each is a score of the scale and says something."""
    if not isinstance(anchors, Mapping):
        raise ConfigError('should be like {0: "wrong", 10: "right"}', setting="anchors", value=anchors)
    for score, text in anchors.items():
        if isinstance(score, bool) or not isinstance(score, (int, float)) or score not in scale:
            raise ConfigError(
                f"has {score!r}, which is not on the scale from {scale.low:g} to {scale.high:g}; "
                "describe scores that the judge can give",
                setting="anchors",
            )
        if not isinstance(text, str) or not text.strip():
            raise ConfigError(
                f"has no description for {score!r}; say what such a response is like", setting="anchors"
            )
    return dict(anchors)


def anchor_lines(anchors: Mapping[float, str], scale: Scale) -> str:
    """A line for each anchor; where none are given, lines that say of every score what it stands for."""
    if anchors:
        return "".join(f"\n{score:g}: {text}" for score, text in sorted(anchors.items()))
    return "".join(f"\n{scores}: {text}" for scores, text in (_bands if scale.integer else _marks)(scale))


def _bands(scale: Scale) -> Iterator[tuple[str, str]]:
    """All whole numbers of the scale, the worst and the best alone, those between in up to three bands."""
    low, high = int(scale.low), int(scale.high)
    inner = range(low + 1, high)
    texts = {0: [], 1: [MIDDLING], 2: [POOR, GOOD]}.get(len(inner), [POOR, MIDDLING, GOOD])
    yield f"{low}", WORST
    for place, text in enumerate(texts):
        start, stop = (len(inner) * cut // len(texts) for cut in (place, place + 1))
        first, last = inner[start], inner[stop - 1]
        yield (f"{first}" if first == last else f"{first} to {last}"), text
    yield f"{high}", BEST


def _marks(scale: Scale) -> Iterator[tuple[str, str]]:
    """Five numbers of a scale that has endlessly many."""
    for quarter, text in enumerate((WORST, POOR, MIDDLING, GOOD, BEST)):
        yield f"{scale.low + (scale.high - scale.low) * quarter / 4:g}", text
