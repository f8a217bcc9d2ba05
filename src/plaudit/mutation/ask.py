"""Asking a model for text or for vectors through the engine: judges whose verdict is the whole reply.

So rewriting, answering and embedding get everything that judging has: the right concurrency, one call for
identical requests, the cache, retries, deadlines, several servers. A verdict here says nothing of quality:
its score is 1.0 where there is a reply, and its reason is that reply.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from plaudit.errors import ConfigError, UnreadableVerdict
from plaudit.judges.content import has_content, without_reasoning
from plaudit.judges.parse import check_declined, encodable
from plaudit.types import ChatRequest, EmbedRequest, Message, Reply, Sample, Status, Verdict

Vectors = NDArray[np.float32]

TRUNCATED = "truncated"
"""The part of a verdict that tells a reply cut off at its token limit (1.0) from a whole one (absent)."""


@dataclass(frozen=True, slots=True)
class Text:
    """Asks for a text: the sample's prompt goes out as it is, and the verdict's reason is what came back."""

    max_tokens: int = 512
    """Tokens the reply may have."""
    temperature: float = 0.0
    """0.0 makes runs repeatable; identical requests share one reply at any temperature."""

    def __post_init__(self) -> None:
        if self.max_tokens < 1:
            raise ConfigError(f"max_tokens={self.max_tokens} leaves no room for a reply; use 1 or more")
        if not self.temperature >= 0.0:
            raise ConfigError(f"temperature={self.temperature} is no temperature; use 0.0 or more")

    @property
    def version(self) -> str:
        """The request says everything but how its reply is read."""
        return "text-1"

    def render(self, sample: Sample) -> ChatRequest:
        """The sample's prompt as a conversation to be continued."""
        prompt = sample.prompt
        messages: tuple[Message, ...] = (
            ({"role": "user", "content": prompt},) if isinstance(prompt, str) else tuple(prompt)
        )
        return ChatRequest(messages, self.max_tokens, self.temperature)

    def parse(self, reply: Reply, sample: Sample) -> Verdict:  # noqa: ARG002 - the protocol's signature
        """The reply without its reasoning. Raises UnreadableVerdict where nothing is left of it."""
        check_declined(reply)
        is_truncated = reply.finish_reason == "length"
        text = encodable(without_reasoning(reply.text).strip())
        if not has_content(text):
            raise UnreadableVerdict(_why_empty(reply, self.max_tokens, is_truncated=is_truncated))
        return Verdict(
            score=1.0,
            status=Status.OK,
            reason=text,
            model=reply.model,
            usage=reply.usage,
            parts={TRUNCATED: 1.0} if is_truncated else {},
        )


def _why_empty(reply: Reply, max_tokens: int, *, is_truncated: bool) -> str:
    if is_truncated and reply.text.strip():
        return f"the model was still reasoning after {max_tokens} tokens; raise max_tokens"
    return "the reply is empty"


@dataclass(frozen=True, slots=True)
class Embedding:
    """Asks for the vectors of a sample's texts, all in one call."""

    @staticmethod
    def of(texts: tuple[str, ...]) -> Sample:
        """The sample that asks for these texts' vectors."""
        return Sample("", "", extra={"texts": texts})

    @property
    def version(self) -> str:
        """The request says everything but how its reply is read."""
        return "embedding-1"

    def render(self, sample: Sample) -> EmbedRequest:
        """All the texts in one request."""
        return EmbedRequest(sample.extra["texts"])

    def parse(self, reply: Reply, sample: Sample) -> Verdict:
        """The vectors, packed. Raises UnreadableVerdict where a text has no usable one."""
        expected = len(sample.extra["texts"])
        if len({len(vector) for vector in reply.vectors}) != 1 or len(reply.vectors) != expected:
            raise UnreadableVerdict("the vectors are missing, or of different lengths")
        vectors = np.asarray(reply.vectors, dtype=np.float32)
        if not vectors.size or not np.isfinite(vectors).all():
            raise UnreadableVerdict("a vector is empty, or holds a number that is none")
        packed = base64.b64encode(vectors.tobytes()).decode()
        return Verdict(1.0, Status.OK, f"{expected}:{packed}", model=reply.model, usage=reply.usage)


def vectors_in(verdict: Verdict) -> Vectors:
    """The vectors of a good verdict: (texts, dim)."""
    count, _, packed = verdict.reason.partition(":")
    return np.frombuffer(base64.b64decode(packed), dtype=np.float32).reshape(int(count), -1)
