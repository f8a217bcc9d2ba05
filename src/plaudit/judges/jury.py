"""The jury: several judges on every sample, their scores combined, and how far they disagree."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median, pstdev

from plaudit.errors import ConfigError
from plaudit.judges.base import Judge, Panel, Question, is_panel
from plaudit.judges.check import Demanding, check_judge
from plaudit.judges.prompt import set_fields
from plaudit.judges.scale import Scale, unit_score
from plaudit.types import Cause, Sample, Status, Verdict

DISAGREEMENT = "disagreement"
RULES = ("mean", "median", "vote")


@dataclass(frozen=True, slots=True, init=False)
class Jury(Panel):
    """Asks several judges about each sample and combines their scores.

    Jury([Rubric("Is it correct?"), Rubric("Is it brief?", scale=(1, 5)), Yes()], combine="median")
    Jury({"correct": Rubric("Is it correct?"), "brief": Rubric("Is it brief?")}, quorum=2)

    A panel of plain judges; each costs a call a sample. Every score is brought to 0..1 by its judge's own
    scale, combined, and put on the jury's scale. A member without a verdict does not count; with fewer than
    `quorum` there is no score. The parts have each member's score in 0..1, by name, and the disagreement.

    All members ask the endpoints of the engine. Requests name no model as yet; once they do, members may
    differ in nothing but that.
    """

    members: Mapping[str, Judge] = field(hash=False)
    """By name. Of a list, the first Rubric is `rubric_1`, a Yes behind it `yes_2`."""
    rule: str
    """`mean`, `median`, or `vote`: above the middle of its scale a member is for it; most win."""
    quorum: int
    """How many members must have a verdict: by default a majority."""
    scale: tuple[float, float]
    """The worst and the best score of the jury."""
    version: str = field(repr=False, compare=False)

    def __init__(
        self,
        members: Mapping[str, Judge] | Sequence[Judge],
        *,
        combine: str = "mean",
        quorum: int | None = None,
        scale: tuple[float, float] = (0.0, 1.0),
    ) -> None:
        named = _checked_members(members)
        if combine not in RULES:
            raise ConfigError(
                f"is not a way to combine scores; use {', '.join(RULES)}", setting="combine", value=combine
            )
        if quorum is None:
            quorum = len(named) // 2 + 1
        if isinstance(quorum, bool) or not isinstance(quorum, int) or not 1 <= quorum <= len(named):
            raise ConfigError(
                f"of {len(named)} members; use a number from 1 to {len(named)}",
                setting="quorum",
                value=quorum,
            )
        ends = Scale.of(scale, integer=False)
        identity = repr(([(name, judge.version) for name, judge in named.items()], combine, quorum, ends))
        version = "jury-" + hashlib.sha256(identity.encode()).hexdigest()[:16]
        scale = (float(ends.low), float(ends.high))
        set_fields(self, members=named, rule=combine, quorum=quorum, scale=scale, version=version)

    def check(self, sample: Sample) -> None:
        """Whatever any member demands of a sample."""
        for judge in self.members.values():
            if isinstance(judge, Demanding):
                judge.check(sample)

    def split(self, samples: Sequence[Sample]) -> Iterator[Question]:
        for index, sample in enumerate(samples):
            for judge in self.members.values():
                yield Question(judge, sample, (index,))

    def combine(self, index: int, sample: Sample, verdicts: Sequence[Verdict]) -> Verdict:  # noqa: ARG002
        """The members' scores as one, if enough of them have one."""
        heard = dict(zip(self.members, verdicts, strict=True))
        shares: dict[str, float] = {}
        errors: list[str] = []
        for name, verdict in heard.items():
            share = unit_score(verdict, self.members[name])
            if share is not None:
                shares[name] = share
            else:
                error = verdict.error or f"the score {verdict.score} is off the member's scale"
                errors.append(f"{name}: {error}")
        if len(shares) < self.quorum:
            first = next(verdict for name, verdict in heard.items() if name not in shares)
            error = f"{len(shares)} of {len(heard)} members have a verdict, {self.quorum} must; " + "; ".join(
                errors
            )
            return Verdict.failed(first.failure or Cause.CODE, error)
        share, disagreement = _combined(list(shares.values()), self.rule)
        low, high = self.scale
        is_empty = all(heard[name].status is Status.EMPTY for name in shares)
        return Verdict(
            score=min(max(low * (1.0 - share) + high * share, low), high),  # rounding may leave the scale
            status=Status.EMPTY if is_empty else Status.OK,
            reason="; ".join(f"{name}: {heard[name].reason}" for name in shares),
            parts={**shares, DISAGREEMENT: disagreement},
        )


def _combined(shares: Sequence[float], rule: str) -> tuple[float, float]:
    """One score in 0..1, and the disagreement behind it: a standard deviation, or the share outvoted."""
    if rule == "vote":
        ayes = sum(1.0 if share > 0.5 else 0.5 if share == 0.5 else 0.0 for share in shares)
        noes = len(shares) - ayes
        return (1.0 if ayes > noes else 0.5 if ayes == noes else 0.0), min(ayes, noes) / len(shares)
    return (median(shares) if rule == "median" else fmean(shares)), pstdev(shares)


def _checked_members(members: object) -> dict[str, Judge]:
    if isinstance(members, Mapping):
        named = dict(members)
    elif isinstance(members, (list, tuple)):
        named = {f"{type(judge).__name__.lower()}_{n}": judge for n, judge in enumerate(members, start=1)}
    else:
        raise ConfigError("should be a list of judges, or judges by name", setting="members", value=members)
    if len(named) < 2:
        raise ConfigError(f"of a jury should be two or more, and there are {len(named)}", setting="members")
    versions: dict[str, str] = {}
    for name, judge in named.items():
        if not isinstance(name, str) or not name or name == DISAGREEMENT:
            raise ConfigError(f"has {name!r}, which cannot be a name; choose another", setting="members")
        if is_panel(judge):
            raise ConfigError(
                f"is a panel itself ({type(judge).__name__}); a jury has plain judges only",
                setting=f"members.{name}",
            )
        try:
            check_judge(judge, for_rewards=True)
        except ConfigError as error:
            raise ConfigError(error.message, setting=f"members.{name}", value=error.value) from None
        if (twin := versions.setdefault(judge.version, name)) != name:
            raise ConfigError(
                f"has the same judge as {twin!r}; one question has one answer", setting=f"members.{name}"
            )
    return named
