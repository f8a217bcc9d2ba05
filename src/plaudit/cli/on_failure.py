"""What a line without a verdict gets as its score: null, a number, or the mean of its group."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from plaudit.errors import ConfigError
from plaudit.setup.json_lines import Line, read_back
from plaudit.types import Verdict

WORDS = ("null", "group-mean", "raise")
_NO_SCORE = b'"score":null,"status":'


@dataclass(slots=True)
class _Group:
    size: int = 0
    valid: int = 0
    total: float = 0.0


class OnFailure:
    """One choice of --on-failure, and what it has to remember of the lines it has seen.

    `settle` is called once for each line; `fill_in` may be called when all are seen.
    """

    def __init__(self, choice: str) -> None:
        self._choice = choice
        self._value = None if choice in WORDS else _number(choice)
        self._groups: dict[str, _Group] = {}
        self.first: tuple[int, Verdict] | None = None
        """The first line without a verdict, by number."""

    @property
    def is_raising(self) -> bool:
        """Whether a single failure is to be reported as an error."""
        return self._choice == "raise"

    @property
    def needs_second_pass(self) -> bool:
        """Whether lines already written may have to change."""
        return self._choice == "group-mean"

    def settle(self, line: Line, verdict: Verdict) -> Verdict:
        """The verdict as it is written; its status always says what really happened."""
        if self.needs_second_pass and line.sample.group is not None:
            group = self._groups.setdefault(line.sample.group, _Group())
            group.size += 1
            if verdict.score is not None:
                group.valid += 1
                group.total += verdict.score
        if verdict.is_valid:
            return verdict
        if self.first is None or line.number < self.first[0]:
            self.first = (line.number, verdict)
        return verdict if self._value is None else replace(verdict, score=self._value)

    def fill_in(self, written: bytes) -> bytes:
        """A written line with the mean of its group where it has no score.

        A group with fewer valid verdicts than max(2, half of it) says too little about the others, and lines
        without a group have no others: null stays.
        """
        if not self.needs_second_pass or _NO_SCORE not in written:
            return written
        score, name = read_back(written)
        if score is not None or name is None:
            return written
        group = self._groups[name]
        if group.valid < max(2, group.size / 2):
            return written
        # The last one is the score itself: only text comes after it, and within text quotes are escaped.
        head, _, tail = written.rpartition(_NO_SCORE)
        return head + f'"score":{group.total / group.valid!r},"status":'.encode() + tail


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ConfigError(
            f"is none of {', '.join(WORDS)}, or a number like 0.0", setting="on_failure", value=text
        )
    return value
