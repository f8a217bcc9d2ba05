"""What a judge is: two pure functions, from sample to request and from reply to verdict.

A judge that needs several calls for one sample, or one call for several samples, is a panel: it splits a
batch into questions for plain judges, and combines their verdicts.

Both say four things about themselves: `version` and `scale`, which every class must define, and
`higher_is_better` and `compares`, which are True and False where a class does not define them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeGuard

from plaudit.types import Reply, Request, Sample, Verdict


class Contract(Protocol):
    """What judges and panels say about themselves."""

    __slots__ = ()

    @property
    def version(self) -> str:
        """Changes whenever the same reply could be read differently; part of every cache key."""
        ...

    @property
    def scale(self) -> tuple[float, float]:
        """The lowest and the highest score it can give; -inf where there is no lowest one."""
        ...

    @property
    def higher_is_better(self) -> bool:
        """Whether the highest score is the best one. Rewards are 1 for the best score, 0 for the worst."""
        return True

    @property
    def compares(self) -> bool:
        """Whether it needs the other responses of a sample's group."""
        return False


class Judge(Contract, Protocol):
    """Renders a sample into a request and reads the reply. Pure: same input, same output."""

    __slots__ = ()

    def render(self, sample: Sample) -> Request | Verdict:
        """The request that judges this sample, or its verdict where a rule settles it without a call."""
        ...

    def parse(self, reply: Reply, sample: Sample) -> Verdict:
        """Read the reply. Raises UnreadableVerdict or Declined where it holds no verdict."""
        ...


@dataclass(frozen=True, slots=True)
class Question:
    """One thing that a panel asks a plain judge."""

    judge: Judge
    sample: Sample
    """What the judge gets to see; often not a sample of the batch."""
    serves: tuple[int, ...]
    """The samples of the batch, by index, that need its verdict. The first one bears its cost."""


class Panel(Contract, Protocol):
    """Judges a batch by asking plain judges. Pure: same input, same output."""

    __slots__ = ()

    def split(self, samples: Sequence[Sample]) -> Iterable[Question]:
        """What to ask about these samples. Raises ConfigError where they cannot be judged like this.

        A sample that no question serves is settled by `combine` without verdicts.
        """
        ...

    def combine(self, index: int, sample: Sample, verdicts: Sequence[Verdict]) -> Verdict:
        """The verdict on one sample, from those on the questions that serve it, in the order of `split`.

        Some may have failed: they carry a status and an error, and no score. Score, status, reason, error
        and parts are the panel's to say; the engine adds what the calls took.
        """
        ...


def is_panel(judge: object) -> TypeGuard[Panel]:
    """Whether it has a panel's methods. A class that lacks `scale` is a panel too: one with a mistake."""
    return hasattr(judge, "split") and hasattr(judge, "combine")


def compares(judge: object) -> bool:
    """Whether a judge needs the other responses of a sample's group; False where it does not say."""
    return bool(getattr(judge, "compares", False))


def higher_is_better(judge: object) -> bool:
    """Whether a judge's highest score is its best one; True where it does not say."""
    return bool(getattr(judge, "higher_is_better", True))
