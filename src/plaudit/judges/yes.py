"""The yes-or-no judge: one question about the response, and how sure the judge is that the answer is yes.

The score is read from the log-probabilities of the answer's first word, not from its text: it is a number
between the ends of the scale even where the judge can only say yes or no, and it tells a sure yes from a
doubtful one. Needs an endpoint that returns `top_logprobs` (OpenAI, vLLM, SGLang, llama.cpp).
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field

import msgspec

from plaudit.errors import ConfigError, Refused, UnreadableVerdict
from plaudit.judges.content import answer_of, has_content
from plaudit.judges.fence import MAX_CHARS, Content, fence
from plaudit.judges.scale import Scale
from plaudit.judges.template import fill, prompt_file
from plaudit.types import ChatRequest, Message, Reply, Sample, Source, Status, TokenChoice, Verdict

VERSION = 1
"""Raise it whenever some reply is read differently than before."""
TOP_LOGPROBS = 20
MAX_TOKENS = 4
"""Room for a line break or a quotation mark before the word."""
AROUND_A_WORD = " \t\r\n\"'`*_.,:;!()[]▁Ġ"
"""Tokens come as `Yes`, ` yes`, `▁Yes`, `"yes`, `**Yes`: all of them say yes."""


@dataclass(frozen=True, slots=True)
class Yes:
    """Asks a yes-or-no question about the response; the score is P(yes) / (P(yes) + P(no)) on the scale."""

    criteria: str = "Is the response right?"
    """The question. Yes must be the good answer."""
    scale: tuple[float, float] = (0.0, 1.0)
    """The score of a sure no and of a sure yes."""
    min_mass: float = field(default=0.05, kw_only=True)
    """How probable yes and no must be together. Below, the judge was about to say something else: no verdict.

    Good judges reach 0.9 and more, so 0.5 is a sensible demand on them; a model of 135M hardly reaches 0.5.
    """
    show_thinking: bool = field(default=False, kw_only=True)
    """Whether the judge sees the response's `<think>...</think>`."""
    max_chars: int = field(default=MAX_CHARS, kw_only=True)
    """Characters shown of the task, the reference and the response each; of a longer text, head and tail."""

    version: str = field(init=False, repr=False, compare=False)
    _system: Message = field(init=False, repr=False, compare=False)
    _instructions: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._check()
        ends = Scale(*self.scale, integer=False)
        scale = (float(ends.low), float(ends.high))
        words = {"criteria": self.criteria.strip()}
        system, after = (fill(prompt_file(name), words) for name in ("yes_system", "yes_after"))
        identity = (VERSION, system, after, scale, self.min_mass, self.show_thinking, self.max_chars)
        for name, value in {
            "scale": scale,
            "version": "yes-" + hashlib.sha256(msgspec.json.encode(identity)).hexdigest()[:16],
            "_system": {"role": "system", "content": system},
            "_instructions": "\n\n" + after,
        }.items():
            object.__setattr__(self, name, value)

    def _check(self) -> None:
        if not isinstance(self.criteria, str) or not has_content(self.criteria):
            raise ConfigError(
                f'criteria={self.criteria!r} asks nothing; write a question, like "Is it right?"'
            )
        if any("\ud800" <= character <= "\udfff" for character in self.criteria):
            raise ConfigError(f"criteria={self.criteria!r} holds a lone surrogate, which is no text")
        if not isinstance(self.scale, (tuple, list)) or len(self.scale) != 2:
            raise ConfigError(f"scale={self.scale!r} needs two numbers, the worst and the best, like (0, 1)")
        if not 0.0 < self.min_mass <= 1.0:
            raise ConfigError(f"min_mass={self.min_mass!r} is not a probability above 0 and up to 1")
        if self.max_chars < 1:
            raise ConfigError(f"max_chars={self.max_chars} leaves nothing to judge; use 1 or more")

    def render(self, sample: Sample) -> ChatRequest | Verdict:
        """The request that judges this sample; the worst score, without a call, where it says nothing."""
        answer = answer_of(sample, with_reasoning=self.show_thinking)
        if not has_content(answer):
            reason = "nothing to judge: the response has no content"
            return Verdict(self.scale[0], Status.EMPTY, reason, source=Source.RULE)
        contents: dict[str, Content] = {"task": sample.prompt}
        if sample.reference is not None:
            contents["reference"] = sample.reference
        contents["response"] = answer
        blocks = fence(contents, salt=self.version.encode(), max_chars=self.max_chars)
        messages: tuple[Message, ...] = (
            self._system,
            {"role": "user", "content": blocks + self._instructions},
        )
        return ChatRequest(messages, MAX_TOKENS, temperature=0.0, top_logprobs=TOP_LOGPROBS)

    def parse(self, reply: Reply, sample: Sample) -> Verdict:  # noqa: ARG002 - the protocol's signature
        """P(yes) on the scale. Raises UnreadableVerdict where yes and no were hardly considered."""
        if reply.refusal or reply.finish_reason == "content_filter":
            raise Refused(
                "the judge declined: " + (reply.refusal or "its content filter stopped the reply")[:80]
            )
        yes, no = _masses(_first_word(reply))
        if yes + no < self.min_mass:
            raise UnreadableVerdict(
                f"yes and no together have probability {yes + no:.2f}, less than min_mass={self.min_mass:g}"
            )
        share = yes / (yes + no)
        low, high = self.scale
        return Verdict(
            score=min(max(low * (1.0 - share) + high * share, low), high),  # rounding may leave the scale
            status=Status.OK,
            reason=f"P(yes) = {share:.2f} of mass {yes + no:.2f}",
            model=reply.model,
            usage=reply.usage,
        )


def _first_word(reply: Reply) -> TokenChoice:
    """The first token that is more than white space and punctuation."""
    if not reply.tokens:
        raise UnreadableVerdict(
            "the reply has no log-probabilities; use an endpoint that returns top_logprobs, or another judge"
        )
    for choice in reply.tokens:
        if choice.token.strip(AROUND_A_WORD):
            return choice
    raise UnreadableVerdict("the reply has no word in it")


def _masses(choice: TokenChoice) -> tuple[float, float]:
    """How probable yes was, and how probable no."""
    masses = {"yes": 0.0, "no": 0.0}
    for token, logprob in choice.top:
        word = token.strip(AROUND_A_WORD).lower()
        if word not in masses:
            continue
        if not logprob < 0.01:  # NaN too; some servers round a sure thing to a little above zero
            raise UnreadableVerdict(f"{logprob} is not the logarithm of a probability")
        masses[word] += math.exp(logprob)
    return masses["yes"], masses["no"]
