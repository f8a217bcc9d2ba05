"""The checklist judge: criteria with weights, the same for every sample or each row's own, met or graded."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from hashlib import sha256
from typing import Any

from plaudit.errors import ConfigError, UnreadableVerdict
from plaudit.judges import parse
from plaudit.judges.base import Panel, Question
from plaudit.judges.criteria import (
    Criterion,
    Total,
    checked_criteria,
    checked_levels,
    read_criteria,
    reason_key,
    summed,
)
from plaudit.judges.prompt import (
    Prompt,
    PromptJudge,
    PromptOptions,
    build_prompt,
    nothing_to_judge,
    object_schema,
    set_fields,
)
from plaudit.judges.reply_rows import named_rows
from plaudit.judges.scale import Scale
from plaudit.types import ROOM, ChatRequest, Reply, Sample, Status, Verdict
from plaudit.value_check import check_fields

COLUMNS = ("rubric", "rubrics")
"""Where a row's own criteria are looked for."""
REFERENCE = "reference"
"""The column that stands for the sample's reference."""
_TOKENS_EACH = 160
"""Room for one reason and its verdict."""


@dataclass(frozen=True, slots=True, repr=False)
class _Criteria(PromptOptions):
    """What both checklists have: criteria, the same for every sample or each row's own, and their sum."""

    criteria: Sequence[Criterion] | None = None
    """The same for every sample, as `Criterion` or in a shape that rows have; None: each row has its own."""
    column: str | None = field(default=None, kw_only=True)
    """Where a row has its criteria: a name in `Sample.extra`, or `reference` for the sample's reference,
    which is not shown to the judge then. By default `rubric`, or else `rubrics`."""
    total: Total = field(default="share", kw_only=True)
    """`share`: the weight earned, of all the weight; a fault earns its own where it is avoided. `points`:
    what is met, faults subtracted, over the points above 0 (as HealthBench counts)."""
    clip: bool = field(default=False, kw_only=True)
    """Whether a sum of points below 0 counts as 0. Rewards need it: they have a lower end."""
    levels: int = field(default=1, kw_only=True)
    """For criteria from rows: 1 for met or not, 2 for 0, 1 or 2, and so on."""
    max_tokens: int | None = field(default=None, kw_only=True)
    """Tokens the reply may have; by default 160 for each criterion, and no fewer than 2,048."""

    @property
    def scale(self) -> tuple[float, float]:
        """No criterion met, all met; without a lower end for points that may fall below 0."""
        return (0.0, 1.0) if self.total == "share" or self.clip else (-math.inf, 1.0)

    def check(self, sample: Sample) -> None:
        """Raises ConfigError where the row's own criteria are missing, or it is nothing that can be shown."""
        self.criteria_of(sample)
        PromptOptions.check(self, sample)

    def criteria_of(self, sample: Sample) -> tuple[Criterion, ...]:
        """The criteria that this sample is judged by."""
        if self.criteria is not None:
            return tuple(self.criteria)
        column, rubric = _rubric_of(sample, self.column)
        return read_criteria(rubric, levels=self.levels, total=self.total, setting=column)

    def _score(self, criteria: Sequence[Criterion], parts: Mapping[str, float]) -> float:
        return summed(criteria, parts, total=self.total, clip=self.clip)

    def _checked(self) -> tuple[Criterion, ...] | None:
        """The criteria, unless the rows bring them. Raises ConfigError where the options cannot be."""
        check_fields(self)
        if self.clip and self.total != "points":
            raise ConfigError(
                'is for total="points"; a share is never below 0', setting="clip", value=self.clip
            )
        checked_levels(self.levels)
        if self.criteria is None:
            return None
        if self.column is not None:
            raise ConfigError(
                "names the rows' own criteria, and criteria= gives the same to all; leave out one of them",
                setting="column",
                value=self.column,
            )
        if isinstance(self.criteria, list | tuple) and all(
            isinstance(one, Criterion) for one in self.criteria
        ):
            return checked_criteria(self.criteria, total=self.total)
        return read_criteria(self.criteria, levels=self.levels, total=self.total, setting="criteria")


@dataclass(frozen=True, slots=True, repr=False)
class Checklist(PromptJudge, _Criteria):
    """Asks about all criteria in one call. `SplitChecklist` uses several calls.

    Checklist([Criterion("correct", "The answer is right.", weight=3), Criterion("brief", "It is short.")])
    Checklist()                                            # each row's own criteria, in the column `rubric`
    Checklist(column="checks", total="points", clip=True)  # HealthBench's sum, at least 0
    """

    def __post_init__(self) -> None:
        criteria = self._checked()
        set_fields(self, criteria=criteria)
        set_fields(self, _prompt=_prompt_of(criteria or _ANY, self))

    def render(self, sample: Sample) -> ChatRequest | Verdict:
        """The request that judges this sample; nothing met, without a call, where it says nothing."""
        criteria = self.criteria_of(sample)
        if self.column == REFERENCE:
            sample = replace(sample, reference=None)
        request = _prompt_of(criteria, self).ask(sample)
        return request or nothing_to_judge(0.0, {point.name: 0.0 for point in criteria})

    def could_give(self, verdict: Verdict, sample: Sample) -> bool:
        """Whether there is a verdict on each criterion, and the score is their sum."""
        criteria = self.criteria_of(sample)
        levels = {point.name: Scale(0, point.levels) for point in criteria}
        return (
            verdict.parts.keys() == levels.keys()
            and all(value * levels[name].high in levels[name] for name, value in verdict.parts.items())
            and verdict.score == self._score(criteria, verdict.parts)
        )

    def parse(self, reply: Reply, sample: Sample) -> Verdict:
        """The sum of what is met. Raises UnreadableVerdict unless every criterion has its one answer."""
        criteria = self.criteria_of(sample)
        names = {_letters(point.name): point.name for point in criteria}
        if len(names) < len(criteria):  # what tells them apart are signs
            names = {}
        names |= {point.name: point.name for point in criteria}
        found = named_rows(
            reply,
            [point.name for point in criteria],
            find=lambda said: names.get(str(said)) or names.get(_letters(str(said))),
            key=criteria[0].name,
            judged=sample.text,
        )
        known = {key for point in criteria for key in (point.name, reason_key(point))}
        if unknown := {name for name in found.keys() - known if not parse.is_remark(found[name])}:
            raise UnreadableVerdict(f"the reply has {min(unknown)[:40]!r}, which is not a criterion")
        for point in criteria:
            if point.name not in found:
                raise UnreadableVerdict(f"the reply leaves out the criterion {point.name!r}")
        if all(type(found[point.name]) is int and point.levels == 1 for point in criteria):
            found |= {point.name: {0: False, 1: True}.get(found[point.name]) for point in criteria}
        parts = {point.name: _value(found, point) for point in criteria}
        reasons = [
            f"{point.name} {_word(parts[point.name])}: {parse.words(found, reason_key(point))}"
            for point in criteria
        ]
        return Verdict.of(reply, self._score(criteria, parts), "; ".join(reasons), parts)


@dataclass(frozen=True, slots=True, repr=False)
class SplitChecklist(_Criteria, Panel):
    """Asks about the criteria in several calls, by default one each, which keeps answers independent.

    A sample with a missing answer has no score. `max_tokens` applies to each call.
    """

    per_call: int = field(default=1, kw_only=True)
    """Criteria in one call."""

    version: str = field(init=False, repr=False, compare=False)
    _call: Checklist = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        criteria = self._checked()
        call = Checklist(
            show_thinking=self.show_thinking,
            max_chars=self.max_chars,
            max_tokens=self.max_tokens,
            sampling=self.sampling,
            view=self.view,
        )
        identity = (call.version, criteria, self.total, self.clip, self.levels, self.column, self.per_call)
        version = f"checklists-{sha256(repr(identity).encode()).hexdigest()[:16]}"
        set_fields(self, criteria=criteria, version=version, _prompt=call._prompt, _call=call)

    def split(self, samples: Sequence[Sample]) -> Iterator[Question]:
        """A question for each `per_call` criteria of each sample. The judge sees no weights."""
        for index, sample in enumerate(samples):
            points = [replace(point, weight=1.0) for point in self.criteria_of(sample)]
            reference = None if self.column == REFERENCE else sample.reference
            for start in range(0, len(points), self.per_call):
                extra = {COLUMNS[0]: tuple(points[start : start + self.per_call])}
                asked = replace(sample, reference=reference, extra=extra)
                yield Question(self._call, asked, (index,))

    def combine(self, index: int, sample: Sample, verdicts: Sequence[Verdict]) -> Verdict:  # noqa: ARG002
        """The sum of what is met; the first failure where there is one."""
        criteria = self.criteria_of(sample)
        for number, verdict in enumerate(verdicts):
            if verdict.score is None:
                point = criteria[number * self.per_call]
                error = f"criterion {point.name!r}: {verdict.error}"
                return Verdict(None, verdict.status, error=error, failure=verdict.failure)
        parts = {name: value for verdict in verdicts for name, value in verdict.parts.items()}
        if all(verdict.status is Status.EMPTY for verdict in verdicts):
            return nothing_to_judge(0.0, parts)
        return Verdict(
            score=self._score(criteria, parts),
            status=Status.OK,
            reason="; ".join(verdict.reason for verdict in verdicts),
            parts=parts,
        )


def _rubric_of(sample: Sample, column: str | None) -> tuple[str, object]:
    """The column that has the row's criteria, and what stands there."""
    if column == REFERENCE:
        found: dict[str, Any] = {} if sample.reference is None else {REFERENCE: sample.reference}
    else:
        names = COLUMNS if column is None else (column,)
        found = {name: sample.extra[name] for name in names if sample.extra.get(name) is not None}
    if not found:
        there = ", ".join(map(str, sample.extra)) or "none"
        raise ConfigError(
            "is missing: the row brings no criteria to be judged by; add that column, or name another one "
            f"with column= (there are: {there}), or give the judge criteria for all rows",
            setting=column or COLUMNS[0],
        )
    return next(iter(found.items()))


_ANY = (Criterion("any", "Any."), Criterion("graded", "Any.", levels=2))
"""Stand-ins by which the words around a row's own criteria get their version."""


@lru_cache(maxsize=256)  # the responses of a group have one rubric
def _prompt_of(criteria: tuple[Criterion, ...], judge: Checklist) -> Prompt:
    """The prompt for these criteria. It changes with their weights, too, which decide the score."""
    answers = [f'"{reason_key(point)}": "...", "{point.name}": {_form(point)}' for point in criteria]
    has_levels = any(point.levels > 1 for point in criteria)
    properties: dict[str, Any] = {}
    for point in criteria:
        properties[reason_key(point)] = {"type": "string"}
        properties[point.name] = {"type": "boolean"} if point.levels == 1 else Scale(0, point.levels).schema()
    return build_prompt(
        "checklist",
        {
            "criteria": "\n".join(f"{point.name}: {point.text.strip()}" for point in criteria),
            "form": "{" + ", ".join(answers) + "}",
            "levels": _LEVELS if has_levels else "",
        },
        judge,
        schema=object_schema(properties),
        reading=(parse.VERSION, judge.total, judge.clip, [float(point.weight) for point in criteria]),
        max_tokens=max(ROOM, _TOKENS_EACH * len(criteria)) if judge.max_tokens is None else judge.max_tokens,
    )


_LEVELS = (
    " Where whole numbers are asked for instead, 0 means that the criterion is not met at all, the highest "
    "number that it is met in full, and those between that it is met in part."
)


def _letters(name: str) -> str:
    """A name but for its case, spaces and signs: `Criterion 1` for `criterion_1`."""
    return re.sub(r"[\W_]+", "", name.casefold()) or name


def _form(point: Criterion) -> str:
    return "<true or false>" if point.levels == 1 else f"<whole number from 0 to {point.levels}>"


def _value(found: Mapping[str, Any], point: Criterion) -> float:
    if point.levels == 1:
        return float(parse.truth(found, point.name))
    return Scale(0, point.levels).read(found[point.name]) / point.levels


def _word(value: float) -> str:
    return "met" if value == 1.0 else "not met" if value == 0.0 else f"{value:.0%} met"
