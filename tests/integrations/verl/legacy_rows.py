"""Rows as a legacy manager reads them, and a judge that remembers what it was shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from plaudit import ChatRequest, Reply, Rubric, Sample, Verdict
from plaudit.integrations.verl.batch_row import BatchRow
from plaudit.judges.base import Judge

RUBRIC = Rubric("Is it correct and brief?")


def row(response: str, *, group: str = "a", source: str = "my/essays", truth: str | None = "4") -> BatchRow:
    sample = Sample(
        f"What is {group}?", response, reference=truth, group=group, extra={"data_source": source}
    )
    return BatchRow(sample, len(response), source, truth, {"index": 1}, name=f"row {response!r}")


def rows(count: int, *, groups: int = 4) -> list[BatchRow]:
    return [row(f"It is {number}.", group=f"g{number % groups}") for number in range(count)]


@dataclass
class Watched(Judge):
    """The rubric, with a list of the samples and requests that passed through it."""

    inner: Rubric = RUBRIC
    samples: list[Sample] = field(default_factory=list)
    requests: list[ChatRequest] = field(default_factory=list)

    @property
    def version(self) -> str:
        return self.inner.version

    @property
    def scale(self) -> tuple[float, float]:
        return self.inner.scale

    def render(self, sample: Sample) -> ChatRequest | Verdict:
        request = self.inner.render(sample)
        self.samples.append(sample)
        if isinstance(request, ChatRequest):
            self.requests.append(request)
        return request

    def parse(self, reply: Reply, sample: Sample) -> Verdict:
        return self.inner.parse(reply, sample)


def texts(requests: Sequence[ChatRequest]) -> list[str]:
    """What was said in each request, all messages together."""
    return ["\n".join(message["content"] for message in request.messages) for request in requests]
