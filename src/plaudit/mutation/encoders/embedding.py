"""Asking for embeddings through the engine: a judge whose verdict carries the vectors of several texts."""

from __future__ import annotations

import base64
from dataclasses import dataclass

import numpy as np

from plaudit.errors import UnreadableVerdict
from plaudit.mutation.encoders.base import Vectors
from plaudit.types import EmbedRequest, Reply, Sample, Status, Verdict


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
