"""The expected-score judge: the mean of all scores, each weighted by how probable the judge found it.

Finer than the one score that a judge states, and free of ties, since it is read from the log-probabilities
of the score's token. Therefore a score is one digit ("10" is two tokens), and no reason comes with it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from plaudit.errors import ConfigError, UnreadableVerdict
from plaudit.judges import odds
from plaudit.judges.prompt import PromptJudge, checked_text, set_fields
from plaudit.judges.scale import Scale, anchor_lines, checked_anchors
from plaudit.types import Reply, Sample, Verdict
from plaudit.value_check import check_fields

_GOES_ON = re.compile(r"\d|[.,/]\s*\d")
"""What makes more than a digit of a digit: 1 of 10, 4 of 4.5, 7 of 7/10."""


@dataclass(frozen=True, slots=True, repr=False)
class Expected(PromptJudge):
    """Scores a response by criteria in words; the score lies between the digits of the scale."""

    criteria: str
    scale: tuple[int, int] = (1, 5)
    """The worst and the best score, both single digits."""
    anchors: Mapping[float, str] | None = field(default=None, hash=False, kw_only=True)
    """What some scores of the scale stand for; without any, every score is described in general words."""
    min_mass: float = field(default=0.8, kw_only=True)
    """How probable the digits of the scale must be together; below, there is no verdict."""

    _digits: tuple[str, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_fields(self)
        criteria = checked_text("criteria", self.criteria, "write what makes a response good")
        scale = Scale.of(self.scale)
        low, high = int(scale.low), int(scale.high)
        if not 0 <= low < high <= 9:
            raise ConfigError(
                "has scores of more than one token; use digits, like (1, 5) or (0, 9)",
                setting="scale",
                value=(low, high),
            )
        anchors = checked_anchors(self.anchors or {}, scale)
        words = {
            "criteria": criteria,
            "scale": f"from {low} to {high}",
            "anchors": anchor_lines(anchors, scale),
        }
        self._set_prompt(
            "expected",
            words,
            reading=(odds.VERSION, self.min_mass),
            max_tokens=odds.MAX_TOKENS,
            top_logprobs=odds.TOP_LOGPROBS,
        )
        digits = tuple(map(str, range(low, high + 1)))
        set_fields(self, scale=(low, high), anchors=anchors or None, _digits=digits)

    def parse(self, reply: Reply, sample: Sample) -> Verdict:  # noqa: ARG002 - the protocol's signature
        """The mean score. Raises UnreadableVerdict where the digits of the scale were hardly considered."""
        shares, mass = odds.odds(reply, self._digits, min_mass=self.min_mass)
        rest = reply.tokens[reply.tokens.index(odds.first_word(reply)) + 1 :]
        if _GOES_ON.match("".join(choice.token for choice in rest)):
            raise UnreadableVerdict(f"the reply {reply.text[:12]!r} is not one digit")
        low, high = self.scale
        scores = range(low, high + 1)
        mean = math.fsum(share * score for share, score in zip(shares, scores, strict=True))
        mean = min(max(mean, low), high)  # rounding may leave the scale
        variance = math.fsum(share * (score - mean) ** 2 for share, score in zip(shares, scores, strict=True))
        parts = {"mass": mass, "std": math.sqrt(variance)}
        return Verdict.of(reply, float(mean), f"mean {mean:.2f} of mass {mass:.2f}", parts)
