"""What was asked about one batch: by each judge, about the rows that it can judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from plaudit.engine import Engine
from plaudit.errors import ConfigError
from plaudit.events import Summary
from plaudit.judges.base import Judge, Panel
from plaudit.judges.check import Demanding
from plaudit.pending import Pending
from plaudit.types import Sample, Status, Verdict

Judges = Mapping[str, Judge | Panel]
UNIT = (0.0, 1.0)


@dataclass(frozen=True, slots=True)
class _Part:
    """The questions of one judge."""

    judge: Judge | Panel
    settled: Mapping[int, Verdict]
    """Rows that were not asked about, and why."""
    rows: Sequence[int]
    pending: Pending


class Asked:
    """Verdicts on their way, for every row of a batch."""

    def __init__(
        self, engine: Engine, judges: Judges, samples: Sequence[Sample], *, deadline: float | None
    ) -> None:
        self._samples = samples
        self._parts: dict[str, _Part] = {}
        for name, judge in judges.items():
            settled = _unfit(judge, samples)
            rows = [row for row in range(len(samples)) if row not in settled]
            pending = engine.submit([samples[row] for row in rows], judge, deadline=deadline)
            self._parts[name] = _Part(judge, settled, rows, pending)

    def is_about(self, samples: Sequence[Sample]) -> bool:
        """Whether a judge would be asked the same about these samples."""
        return [_shown(sample) for sample in self._samples] == [_shown(sample) for sample in samples]

    async def verdicts(self) -> dict[str, list[Verdict]]:
        """By judge, one for each row, in order; scores from 0 to 1, whatever the judge's scale."""
        return {name: await self._verdicts(part) for name, part in self._parts.items()}

    def complaint(self) -> str:
        """Why a judge can judge no row at all; nothing where each can judge some."""
        for part in self._parts.values():
            if part.settled and not part.rows:
                return str(part.settled[0].error)
        return ""

    def summary(self, name: str) -> Summary:
        """What one judge's part took."""
        return self._parts[name].pending.summary

    def cancel(self) -> None:
        """Send nothing more."""
        for part in self._parts.values():
            part.pending.cancel()

    async def _verdicts(self, part: _Part) -> list[Verdict]:
        low, high = getattr(part.judge, "scale", UNIT)
        verdicts = dict(part.settled)
        for row, verdict in zip(part.rows, await part.pending, strict=True):
            score = None if verdict.score is None else (verdict.score - low) / (high - low)
            verdicts[row] = replace(verdict, score=score)
        return [verdicts[row] for row in range(len(self._samples))]


def _unfit(judge: Judge | Panel, samples: Sequence[Sample]) -> dict[int, Verdict]:
    """Rows that lack what the judge demands. One of them must not cost the others their verdicts."""
    unfit: dict[int, Verdict] = {}
    for row, sample in enumerate(samples if isinstance(judge, Demanding) else ()):
        try:
            judge.check(sample)  # type: ignore[union-attr]
        except ConfigError as error:
            unfit[row] = Verdict(None, Status.FAILED, error=f"row {row}: {error}")
    return unfit


def _shown(sample: Sample) -> tuple[object, ...]:
    return sample.prompt, sample.response, sample.reference, sample.group
