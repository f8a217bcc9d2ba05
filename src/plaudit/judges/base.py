"""What a judge is: two pure functions, from sample to request and from reply to verdict."""

from __future__ import annotations

from typing import Protocol

from plaudit.types import ChatRequest, Reply, Sample, Verdict


class Judge(Protocol):
    """Renders a sample into a request and reads the reply. Pure: same input, same output."""

    @property
    def version(self) -> str:
        """Changes whenever the same reply could be read differently; part of every cache key."""
        ...

    def render(self, sample: Sample) -> ChatRequest | Verdict:
        """The request that judges this sample, or its verdict where a rule settles it without a call."""
        ...

    def parse(self, reply: Reply, sample: Sample) -> Verdict:
        """Read the reply. Raises UnreadableVerdict or Refused where it holds no verdict."""
        ...
