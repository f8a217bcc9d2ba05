"""The scale of a judge: which numbers are verdicts, and what a score is worth and stands for."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from plaudit.errors import ConfigError, UnreadableVerdict
from plaudit.judges.base import Judge, Panel, higher_is_better
from plaudit.judges.numerals import said_first
from plaudit.types import Verdict

ROUNDING = 1e-9
"""The share of a scale by which a mean may leave it."""


@dataclass(frozen=True, slots=True)
class Scale:
    """From `low` (worst) to `high` (best), both included; whole numbers only if `integer`."""

    low: float
    high: float
    integer: bool = True

    def __post_init__(self) -> None:
        for end in (self.low, self.high):
            if isinstance(end, bool) or not isinstance(end, (int, float)) or not -1e300 < end < 1e300:
                raise self._wrong("needs two finite numbers, like (0, 10)")
        if self.low >= self.high:
            raise self._wrong("is reversed; write the worst score first, then the best")
        if self.integer and not (float(self.low).is_integer() and float(self.high).is_integer()):
            raise self._wrong("has ends that are not whole numbers; use whole numbers, or integer=False")

    @staticmethod
    def of(ends: object, *, integer: bool = True) -> Scale:
        """The scale between two ends, as users write it. Raises ConfigError where they make none."""
        if not isinstance(ends, (tuple, list)) or len(ends) != 2:
            complaint = "needs two numbers, the worst and the best, like (0, 10)"
            raise ConfigError(complaint, setting="scale", value=ends)
        return Scale(ends[0], ends[1], integer)

    def _wrong(self, complaint: str) -> ConfigError:
        return ConfigError(complaint, setting="scale", value=(self.low, self.high))

    def __contains__(self, number: float) -> bool:
        return self.low <= number <= self.high and (not self.integer or float(number).is_integer())

    def read(self, value: object) -> float:
        """The score that a judge gave: a number, its text, alone in a list or out of the best. Never clamps.

        Raises:
            UnreadableVerdict: it is no score on this scale.
        """
        match value:
            case [one]:
                value = one
            case {"value": one, **others} if not others or others == {"max": self.high}:
                value = one
        found = said_first(value) if isinstance(value, str) else None
        if found and found.of in (None, self.high):
            value = found.value
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise UnreadableVerdict(f"the score is {_describe(value)}, not a number")
        if not self.low <= value <= self.high:  # NaN too
            raise UnreadableVerdict(
                f"the score {_short(value)} is not between {self.low:g} and {self.high:g}"
            )
        if self.integer and not float(value).is_integer():
            raise UnreadableVerdict(f"the score {_short(value)} is not a whole number")
        return float(value)

    def schema(self) -> dict[str, Any]:
        """The JSON schema of a score on this scale."""
        if self.integer:
            return {"type": "integer", "minimum": int(self.low), "maximum": int(self.high)}
        return {"type": "number", "minimum": float(self.low), "maximum": float(self.high)}


def unit_score(verdict: Verdict, judge: Judge | Panel) -> float | None:
    """The score from 0 (the judge's worst) to 1 (its best); None where there is no score on its scale."""
    if verdict.score is None or not is_on_scale(verdict.score, judge):
        return None
    low, high = judge.scale
    assert low > -math.inf, "check_judge refuses such a judge where its scores become rewards"
    share = min(max((verdict.score - low) / (high - low), 0.0), 1.0)  # rounding may leave the scale
    return share if higher_is_better(judge) else 1.0 - share


def unit_verdict(verdict: Verdict, judge: Judge | Panel) -> Verdict:
    """The same verdict with its score from 0 to 1."""
    return replace(verdict, score=unit_score(verdict, judge))


def is_on_scale(score: float, judge: Judge | Panel) -> bool:
    """Whether a judge can have given this score, rounding aside."""
    low, high = judge.scale
    slack = ROUNDING * (high - low if low > -math.inf else 1.0)
    return low - slack <= score <= high + slack


def _describe(value: object) -> str:
    if isinstance(value, str):
        return f"the text {value[:12]!r}" + "..." * (len(value) > 12)
    return "null" if value is None else str(value).lower()


def _short(number: float) -> str:
    return "of hundreds of digits" if isinstance(number, int) and abs(number) > 1e300 else f"{number:g}"


# --- what the scores of a scale stand for ------------------------------------------------------------------

WORST = "nothing of what the rubric asks for: wrong, beside the point, or no answer"
POOR = "a little of it; serious faults outweigh what is right"
MIDDLING = "about half of it; what is right and what is wrong weigh the same"
GOOD = "nearly all of it; only small faults"
BEST = "all of it, without a fault"


def checked_anchors(anchors: Mapping[float, str], scale: Scale) -> dict[float, str]:
    """The anchors, if each is a score of the scale and says something."""
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
