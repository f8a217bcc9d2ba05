"""What a judge may say beyond its two functions: which samples it can judge, which verdicts it can give.

Any judge may have a third method, `check(sample)`, which raises ConfigError where the sample lacks something;
and a fourth, `could_give(verdict, sample)`, by which stored verdicts are checked. Without that, its `scale`
decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol, runtime_checkable

from plaudit.errors import ConfigError
from plaudit.types import Sample, Verdict

CouldGive = Callable[[Verdict, Sample], bool]
"""Whether a verdict on a sample can be the judge's own."""


@runtime_checkable
class Demanding(Protocol):
    """A judge that cannot judge just any sample."""

    def check(self, sample: Sample) -> None:
        """Raises ConfigError, naming the field, where the sample cannot be judged."""
        ...


def could_give(judge: object) -> CouldGive | None:
    """How to tell whether a stored verdict can be this judge's own; None where nothing is known of it."""
    own: CouldGive | None = getattr(judge, "could_give", None)
    if own is not None:
        return own
    match getattr(judge, "scale", None):
        case (int() | float() as low, int() | float() as high):
            return lambda verdict, _: verdict.score is not None and low <= verdict.score <= high
        case _:
            return None


def check_samples(judge: object, samples: Iterable[tuple[int, Sample]]) -> None:
    """Ask a judge that has demands whether these numbered samples meet them; ConfigError names the first."""
    if not isinstance(judge, Demanding):
        return
    for number, sample in samples:
        try:
            judge.check(sample)
        except ConfigError as error:
            raise ConfigError(f"sample {number}: {error}") from None
