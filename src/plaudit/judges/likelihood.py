"""The likelihood judge: how probable the model itself finds the response as an answer to the prompt.

Nothing is asked and nothing is generated: the score is the log-probability of the response's own tokens
after `Question: ...` and `Answer:`. A model far too small to follow a rubric still finds "Paris" a likelier
capital of France than "Lyon". It suits short factual answers. It is no judge of style, of reasoning or of
instructions followed; and because every further token makes a text less probable, it favours short answers:
compare answers of about the same length.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field

from plaudit.errors import ConfigError, UnreadableVerdict
from plaudit.judges.base import Judge
from plaudit.judges.content import has_content
from plaudit.judges.fence import MAX_CHARS
from plaudit.judges.prompt import checked_text, nothing_to_judge
from plaudit.judges.transcript import answer_of
from plaudit.rows import text_of
from plaudit.types import LikelihoodRequest, Reply, Sample, Verdict
from plaudit.value_check import check_fields

PLACE = "{prompt}"


@dataclass(frozen=True, slots=True)
class Likelihood(Judge):
    """Scores a response by its log-probability after the prompt, from `floor` up to 0 (certain).

    Needs an endpoint that gives the log-probabilities of a text it did not write: llama.cpp, vLLM, SGLang and
    every server whose completions take `echo`.
    """

    template: str = f"Question: {PLACE}\nAnswer:"
    """The text before the response; `{prompt}` stands for the sample's prompt."""
    floor: float = field(default=-300.0, kw_only=True)
    """The lowest score, in natural logarithms: responses that are less probable all get it."""
    max_chars: int = field(default=MAX_CHARS, kw_only=True)
    """The longest prompt and the longest response, in characters; longer ones are an error of the sample."""

    def __post_init__(self) -> None:
        check_fields(self)
        checked_text("template", self.template, f'write it like "Question: {PLACE} Answer:"')
        if PLACE not in self.template:
            raise ConfigError(
                f"does not show the prompt; put {PLACE} where it belongs",
                setting="template",
                value=self.template,
            )

    @property
    def scale(self) -> tuple[float, float]:
        return (self.floor, 0.0)

    @property
    def version(self) -> str:
        """Changes with everything that could change a verdict."""
        identity = repr((self.template, self.floor, self.max_chars))
        return f"likelihood-{hashlib.sha256(identity.encode(errors='replace')).hexdigest()[:16]}"

    def render(self, sample: Sample) -> LikelihoodRequest | Verdict:
        """What to ask about this sample; the lowest score, without a call, where the response is empty."""
        answer = _plain(answer_of(sample, with_reasoning=False, view="last"))
        if not has_content(answer):
            return nothing_to_judge(self.floor)
        prompt = _plain(_words(sample))
        if max(len(prompt), len(answer)) > self.max_chars:
            raise ConfigError(
                f"is less than the {max(len(prompt), len(answer)):,} characters of a text, "
                f"{self.max_chars:,}; a likelihood is meant for short answers",
                setting="max_chars",
                value=self.max_chars,
            )
        return LikelihoodRequest(self.template.replace(PLACE, prompt), f" {answer}")

    def parse(self, reply: Reply, sample: Sample) -> Verdict:  # noqa: ARG002 - the protocol's signature
        """The sum of the tokens' log-probabilities. Raises UnreadableVerdict where they are none."""
        if not reply.tokens:
            raise UnreadableVerdict("the reply has no log-probabilities of the response")
        logprobs = [token.logprob for token in reply.tokens]
        if not all(-math.inf < logprob < 0.01 for logprob in logprobs):  # NaN too; 0 may be rounded up
            raise UnreadableVerdict("the reply contains numbers that are not log-probabilities")
        total = math.fsum(logprobs)
        reason = f"log-probability {total:.1f} over {len(logprobs)} tokens"
        return Verdict.of(reply, min(max(total, self.floor), 0.0), reason, {"tokens": float(len(logprobs))})


def _words(sample: Sample) -> str:
    """The prompt as text: of a conversation, what was said in it, turn by turn."""
    if isinstance(sample.prompt, str):
        return sample.prompt
    return "\n".join(text_of(message.get("content")) for message in sample.prompt)


def _plain(text: str) -> str:
    """The text as one paragraph without control characters, as it would follow `Answer:`."""
    return "".join(character for character in text if character.isprintable() or character == "\n").strip()
