"""The yes-or-no judge: one question about the response, and how sure the judge is that the answer is yes.

The score is read from the log-probabilities of the answer's first word, not from its text: it is a number
between the ends of the scale even where the judge can only say yes or no, and it tells a sure yes from a
doubtful one.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from plaudit.judges import odds
from plaudit.judges.prompt import PromptJudge, checked_text, set_fields
from plaudit.judges.scale import Scale
from plaudit.types import Reply, Sample, Verdict
from plaudit.value_check import check_fields


@dataclass(frozen=True, slots=True, repr=False)
class Yes(PromptJudge):
    """Asks a yes-or-no question about the response; the score is P(yes) / (P(yes) + P(no)) on the scale."""

    criteria: str = "Is the response right?"
    """The question. Yes must be the good answer."""
    scale: tuple[float, float] = (0.0, 1.0)
    """The score of a sure no and of a sure yes."""
    min_mass: float = field(default=0.5, kw_only=True)
    """How probable yes and no must be together. Below, the judge was about to say something else: no verdict.

    Good judges reach 0.9 and more. A model of 135M hardly reaches 0.5: what it says below is mostly noise.
    """

    def __post_init__(self) -> None:
        check_fields(self)
        question = checked_text("criteria", self.criteria, 'ask a question, like "Is it right?"')
        ends = Scale.of(self.scale, integer=False)
        scale = (float(ends.low), float(ends.high))
        self._set_prompt(
            "yes",
            {"criteria": question},
            reading=(odds.VERSION, scale, self.min_mass),
            max_tokens=odds.MAX_TOKENS,
            top_logprobs=odds.TOP_LOGPROBS,
        )
        set_fields(self, scale=scale)

    def parse(self, reply: Reply, sample: Sample) -> Verdict:  # noqa: ARG002 - the protocol's signature
        """P(yes) on the scale. Raises UnreadableVerdict where yes and no were hardly considered."""
        (share, _), mass = odds.odds(reply, ("yes", "no"), min_mass=self.min_mass)
        low, high = self.scale
        score = min(max(low * (1.0 - share) + high * share, low), high)  # rounding may leave the scale
        return Verdict.of(reply, score, f"P(yes) = {share:.2f} of mass {mass:.2f}", {"mass": mass})
