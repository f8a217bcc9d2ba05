"""A judge that will never answer: recognised by its verdicts, and found out beforehand.

A refused key, an unknown model or a URL without an API fails every call alike until somebody changes a
setting. A training that went on would spend its GPU time on nothing.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import cast
from weakref import WeakSet

from plaudit.config import Endpoint
from plaudit.engine import BaseEngine, Engine
from plaudit.errors import BatchFailed
from plaudit.judges.base import Judge, Panel, is_panel
from plaudit.types import Cause, ChatRequest, LikelihoodRequest, Reply, Request, Sample, Status, Verdict

NEVER = frozenset({Cause.REFUSED_KEY, Cause.UNKNOWN_MODEL, Cause.ENDPOINT_REFUSED})
"""Causes that no waiting mends."""
GREETING_SECONDS = 20.0
"""How long the small call may take; one that is not answered by then proves nothing."""
EARLY_SECONDS = 3.0
"""The same where nothing waits for the judge yet, and a reward is only being made."""
_answered: WeakSet[BaseEngine] = WeakSet()
"""Engines whose judge is known to answer."""


def check_engine(
    engine: BaseEngine, judge: Judge | Panel | None = None, *, seconds: float, is_cheap: bool = True
) -> None:
    """Find out whether an engine's judge will answer, unless it has.

    By a call of a few tokens; a cheap check does without where the server's list of models tells enough.
    A server that is not up yet, or too busy to answer in time, is let be.

    Raises:
        BatchFailed: the judge will never answer.
    """
    if engine in _answered:
        return
    if isinstance(engine, Engine):
        from plaudit.setup.model_list import Reach, reach  # loads an HTTP client

        found = reach(engine.endpoints, seconds=seconds) if engine.is_over_http else Reach.AWAY
        if found is Reach.AWAY or (is_cheap and found is Reach.PROVEN):
            return
    asked = Greeting.like(judge)
    (verdict,) = engine.score([greeting(uuid.uuid4().hex)], asked, deadline=seconds, progress=False)
    check_answers([verdict], has_begun=False)
    if verdict.is_valid:
        _answered.add(engine)


def is_up(endpoints: Sequence[Endpoint]) -> bool:
    """Whether one of these servers answers at all."""
    from plaudit.setup.model_list import Reach, reach  # loads an HTTP client

    return bool(endpoints) and reach(endpoints, seconds=EARLY_SECONDS) is not Reach.AWAY


def check_answers(verdicts: Iterable[Verdict], *, has_begun: bool = True) -> None:
    """Raise BatchFailed where a verdict is missing for a cause that will be the same for every other."""
    stored = ". What was judged is stored, so that resuming from the last checkpoint pays for nothing twice"
    for verdict in verdicts:
        if verdict.cause in NEVER:
            raise BatchFailed(f"the judge will never answer: {verdict.error}{stored if has_begun else ''}")


@dataclass(frozen=True, slots=True)
class Greeting:
    """A judge for one sample that takes any reply for a verdict: it only asks whether there is one."""

    is_chat: bool = True
    """Whether it asks by chat; else for a likelihood, which servers of base models give and no chat."""
    version: str = "greeting-1"
    scale: tuple[float, float] = (0.0, 1.0)
    higher_is_better: bool = True
    compares: bool = False

    @classmethod
    def like(cls, judge: Judge | Panel | None) -> Greeting:
        """A greeting by the route that the judge takes."""
        sample = Sample("What is 7 times 8?", "56", reference="56")
        try:
            if judge is not None and is_panel(judge):
                question = next(iter(judge.split([sample])))
                judge, sample = question.judge, question.sample
            request = cast(Judge, judge).render(sample) if judge is not None else None
            return cls(is_chat=not isinstance(request, LikelihoodRequest))
        except Exception:  # noqa: BLE001 - the user's code, which may need columns that this sample has not
            return cls()

    def render(self, sample: Sample) -> Request:
        if not self.is_chat:
            return LikelihoodRequest("Is anyone there?", f" {sample.response}")
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
