"""The yes-or-no judge: one question about the response, and how sure the judge is that the answer is yes.

The score is read from the log-probabilities of the answer's first word, not from its text: it is a number
between the ends of the scale even where the judge can only say yes or no, and it tells a sure yes from a
doubtful one.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from plaudit.config import Sampling
from plaudit.errors import ConfigError
from plaudit.judges import odds
from plaudit.judges.base import Judge
from plaudit.judges.content import View, check_turns_of
from plaudit.judges.fence import MAX_CHARS
from plaudit.judges.prompt import (
    AS_IT_IS,
    Prompt,
    build_prompt,
    checked_text,
    nothing_to_judge,
)
from plaudit.judges.scale import Scale
from plaudit.types import ChatRequest, Reply, Sample, Status, Verdict
from plaudit.value_check import check_fields


@dataclass(frozen=True, slots=True)
class Yes(Judge):
    """Asks a yes-or-no question about the response; the score is P(yes) / (P(yes) + P(no)) on the scale."""

    criteria: str = "Is the response right?"
    """The question. Yes must be the good answer."""
    scale: tuple[float, float] = (0.0, 1.0)
    """The score of a sure no and of a sure yes."""
    min_mass: float = field(default=0.5, kw_only=True)
    """How probable yes and no must be together. Below, the judge was about to say something else: no verdict.

    Good judges reach 0.9 and more. A model of 135M hardly reaches 0.5: what it says below is mostly noise.
    """
    show_thinking: bool = field(default=False, kw_only=True)
    """Whether the judge sees the response's `<think>...</think>`."""
    max_chars: int = field(default=MAX_CHARS, kw_only=True)
    """Characters shown of the task, the reference and the response each; of a longer text, head and tail."""
    view: View = field(default="full", kw_only=True)
    """What is shown of a trajectory: all of it (`full`), or what its last turn says (`last`)."""
    sampling: Sampling = field(default=AS_IT_IS, kw_only=True)
    """Temperature, top_p, seed, reasoning effort and more fields of its requests."""

    _prompt: Prompt = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_fields(self)
        question = checked_text("criteria", self.criteria, 'ask a question, like "Is it right?"')
        if not isinstance(self.scale, (tuple, list)) or len(self.scale) != 2:
            raise ConfigError(
                "needs two numbers, the worst and the best, like (0, 1)", setting="scale", value=self.scale
            )
        if not 0.0 < self.min_mass <= 1.0:
            raise ConfigError(
                "is not a probability above 0 and up to 1", setting="min_mass", value=self.min_mass
            )
        ends = Scale(*self.scale, integer=False)
        scale = (float(ends.low), float(ends.high))
        made = build_prompt(
            "yes",
            {"criteria": question},
            self,
            reading=(odds.VERSION, scale, self.min_mass),
            max_tokens=odds.MAX_TOKENS,
            top_logprobs=odds.TOP_LOGPROBS,
        )
        object.__setattr__(self, "scale", scale)
        object.__setattr__(self, "_prompt", made)

    @property
    def version(self) -> str:
        """Changes with everything that could change a verdict."""
        return self._prompt.version

    def check(self, sample: Sample) -> None:
        """Raises ConfigError where the sample's task or response is no conversation that can be shown."""
        check_turns_of(sample, self.view)

    def render(self, sample: Sample) -> ChatRequest | Verdict:
        """The request that judges this sample; the worst score, without a call, where it says nothing."""
        return self._prompt.ask(sample) or nothing_to_judge(self.scale[0])

    def parse(self, reply: Reply, sample: Sample) -> Verdict:  # noqa: ARG002 - the protocol's signature
        """P(yes) on the scale. Raises UnreadableVerdict where yes and no were hardly considered."""
        (share, _), mass = odds.odds(reply, ("yes", "no"), min_mass=self.min_mass)
        low, high = self.scale
        return Verdict(
            score=min(max(low * (1.0 - share) + high * share, low), high),  # rounding may leave the scale
            status=Status.OK,
            reason=f"P(yes) = {share:.2f} of mass {mass:.2f}",
            model=reply.model,
            usage=reply.usage,
            parts={"mass": mass},
        )
