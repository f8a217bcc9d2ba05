"""What a judge demands of a sample, asked before the first call: a reference, a field of its own.

Any judge may have a third method, `check(sample)`, which raises ConfigError where the sample lacks something.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, runtime_checkable

from plaudit.errors import ConfigError
from plaudit.types import Sample


@runtime_checkable
class Demanding(Protocol):
    """A judge that cannot judge just any sample."""

    def check(self, sample: Sample) -> None:
        """Raises ConfigError, naming the field, where the sample cannot be judged."""
        ...


def check_samples(judge: object, samples: Iterable[tuple[int, Sample]]) -> None:
    """Ask a judge that has demands whether these numbered samples meet them; ConfigError names the first."""
    if not isinstance(judge, Demanding):
        return
    for number, sample in samples:
        try:
            judge.check(sample)
        except ConfigError as error:
            raise ConfigError(f"sample {number}: {error}") from None
