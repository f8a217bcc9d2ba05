"""A judge that will never answer: recognised by its verdicts, and found out by one small call beforehand.

A refused key, an unknown model or a URL without an API fails every call alike until somebody changes a
setting. A training that went on would spend its GPU time on nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from plaudit.errors import BatchFailed
from plaudit.types import Cause, ChatRequest, Reply, Sample, Status, Verdict

NEVER = frozenset({Cause.REFUSED_KEY, Cause.UNKNOWN_MODEL, Cause.ENDPOINT_REFUSED})
"""Causes that no waiting mends."""
GREETING_SECONDS = 20.0
"""How long the small call may take; one that is not answered by then proves nothing."""


def check_answers(verdicts: Iterable[Verdict]) -> None:
    """Raise BatchFailed where a verdict is missing for a cause that will be the same for every other."""
    for verdict in verdicts:
        if verdict.cause in NEVER:
            raise BatchFailed(
                f"the judge will never answer: {verdict.error}. What was judged is stored, so that resuming "
                "from the last checkpoint pays for nothing twice"
            )


@dataclass(frozen=True, slots=True)
class Greeting:
    """A judge for one sample that takes any reply for a verdict: it only asks whether there is one."""

    version: str = "greeting-1"
    scale: tuple[float, float] = (0.0, 1.0)
    higher_is_better: bool = True
    compares: bool = False

    def render(self, sample: Sample) -> ChatRequest:
        return ChatRequest(
            ({"role": "user", "content": f"Reply with: ok\n({sample.response})"},),
            max_tokens=16,
            is_fixed=True,
        )

    def parse(self, reply: Reply, sample: Sample) -> Verdict:  # noqa: ARG002
        return Verdict(1.0, Status.OK)


def greeting(name: str) -> Sample:
    """What to ask a Greeting about; the same name within a run, so that its processes share one call."""
    return Sample("Is anyone there?", name)
