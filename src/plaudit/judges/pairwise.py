"""The pairwise judge: which of two responses is better, asked in both orders."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from statistics import fmean
from typing import ClassVar, Literal, NamedTuple

from plaudit.errors import ConfigError, UnreadableVerdict
from plaudit.judges import parse
from plaudit.judges.base import Judge, Panel, Question
from plaudit.judges.content import has_content
from plaudit.judges.grouping import HIDDEN, IDS, alias, answer_groups
from plaudit.judges.prompt import (
    Prompt,
    PromptOptions,
    checked_text,
    nothing_to_judge,
    object_schema,
    set_fields,
)
from plaudit.rows import reference_images
from plaudit.types import ROOM, ChatRequest, Reply, Sample, Source, Status, Verdict
from plaudit.value_check import check_fields

OTHER = "second"
"""Where a question's sample carries the second response; the first is its own."""
PICTURES = "pictures"
"""Where it carries the pictures of both, in their order."""
POINTS = {"first": 1.0, "tie": 0.5, "second": 0.0}
"""What each winner is worth to the first response."""
_WINNER = re.compile(r"(?:the )?(first|second|tie)(?: (?:response|answer|one))?\.?")


@dataclass(frozen=True, slots=True, repr=False)
class Pairwise(PromptOptions, Panel):
    """Compares responses two by two; the score is the share of comparisons won, a tie being half a win.

    Pairwise("Which one is correct and brief?", against="group")

    A panel. Each comparison is two calls, one for each order: a win must survive the swap, or it is a tie.
    Where one of the two fails, there was no comparison; where more than half are missing, there is no score.

    Calls: 2 a sample against its reference; n * (n - 1) for a group of n (56 for 8); n * opponents where
    each meets only so many others. Identical responses tie without a call, and enter the group once.
    """

    criteria: str
    against: Literal["reference", "group"] = field(default="reference", kw_only=True)
    """What a response is compared with: its sample's reference, or the other responses of its group."""
    opponents: int | None = field(default=None, kw_only=True)
    """How many others of its group each response meets: an even number, or None for all of them.

    The responses stand in a ring, in an order derived from what they say; each meets its neighbours.
    """
    max_tokens: int = field(default=ROOM, kw_only=True)
    """Tokens the reply may have."""

    _match: _Match = field(init=False, repr=False, compare=False)

    scale: ClassVar[tuple[float, float]] = (0.0, 1.0)
    """From no comparison won to all of them."""

    def __post_init__(self) -> None:
        check_fields(self)
        criteria = checked_text(
            "criteria", self.criteria, 'write what makes a response better, like "Which one is correct?"'
        )
        if self.opponents is not None:
            if self.against != "group":
                raise ConfigError(
                    'is for against="group"; a reference is the only opponent', setting="opponents"
                )
            if not isinstance(self.opponents, int) or self.opponents < 2 or self.opponents % 2:
                raise ConfigError(
                    "makes no ring; use an even number, or leave it out to compare all with all",
                    setting="opponents",
                    value=self.opponents,
                )
        self._set_prompt(
            "pairwise",
            {"criteria": criteria, "form": '{"reason": "...", "winner": "first" | "second" | "tie"}'},
            schema=object_schema(
                {"reason": {"type": "string"}, "winner": {"type": "string", "enum": list(POINTS)}}
            ),
            reading=(parse.VERSION,),
            max_tokens=self.max_tokens,
        )
        set_fields(self, _match=_Match(self._prompt))

    @property
    def version(self) -> str:
        """Changes with everything that could change a verdict."""
        return f"{self._prompt.version}/{self.against}/{self.opponents or 'all'}"

    @property
    def compares(self) -> bool:
        """Whether the opponents are the other responses of the group."""
        return self.against == "group"

    def split(self, samples: Sequence[Sample]) -> Iterator[Question]:
        """Two questions for each comparison, one right behind the other."""
        return self._with_references(samples) if self.against == "reference" else self._in_groups(samples)

    def combine(self, index: int, sample: Sample, verdicts: Sequence[Verdict]) -> Verdict:  # noqa: ARG002
        """The mean of the sample's comparisons."""
        answer = self.answer(sample)
        if not has_content(answer):
            return nothing_to_judge(0.0)
        if not verdicts:
            reason = "a tie: there is no other answer to compare it with"
            return Verdict(0.5, Status.OK, reason, source=Source.RULE)
        pictures = self._prompt.images_of(sample) if self.against == "reference" else ()
        own = self._id(sample, answer, pictures)
        pairs = list(zip(verdicts[::2], verdicts[1::2], strict=True))
        points = [
            (one.parts[own], other.parts[own]) for one, other in pairs if one.is_valid and other.is_valid
        ]
        if 2 * len(points) < len(pairs):
            first = next(verdict for verdict in verdicts if not verdict.is_valid)
            lost = len(pairs) - len(points)
            error = f"{lost} of {len(pairs)} comparisons gave no verdict: {first.error}"
            return Verdict(None, first.status, error=error, failure=first.failure)
        results = [one if one == other else 0.5 for one, other in points]
        won, lost = results.count(1.0), results.count(0.0)
        return Verdict(
            score=fmean(results),
            status=Status.OK,
            reason=f"won {won}, tied {len(results) - won - lost}, lost {lost} of {len(results)} comparisons",
            parts={
                "comparisons": float(len(results)),
                "inconsistent": fmean(one != other for one, other in points),
            },
        )

    def _with_references(self, samples: Sequence[Sample]) -> Iterator[Question]:
        for index, sample in enumerate(samples):
            if sample.reference is None or not has_content(sample.reference):
                raise ConfigError(
                    'is missing; give one, or compare the samples of a group: against="group"',
                    setting="reference",
                ).at(f"sample {index}")
        for index, sample in enumerate(samples):
            answer, reference = self.answer(sample), sample.reference or ""
            if not has_content(answer):
                continue
            pictures, of_reference = self._prompt.images_of(sample), reference_images(sample)
            own = _Side(answer, self._id(sample, answer, pictures), pictures)
            other = _Side(reference, self._id(sample, reference, of_reference), of_reference)
            if own.id != other.id:  # shown alike, they tie
                hidden = frozenset({answer} if self.hides(sample, answer) else ())
                task = Sample(sample.prompt, "", tools=sample.tools, extra={HIDDEN: hidden})
                yield from self._both_orders(task, own, other, (index,))

    def _in_groups(self, samples: Sequence[Sample]) -> Iterator[Question]:
        for group in answer_groups(samples, self, salt=self._prompt.version):
            for one, other in self._pairs(list(group.answers)):
                serves = tuple(sorted(group.answers[one] + group.answers[other]))
                extra = {**group.shared.extra, HIDDEN: group.hidden.intersection((one, other))}
                task = replace(group.shared, group=None, extra=extra)
                first, second = (_Side(answer, group.ids[answer]) for answer in (one, other))
                yield from self._both_orders(task, first, second, serves)

    def _pairs(self, answers: list[str]) -> Iterator[tuple[str, str]]:
        if self.opponents is None or self.opponents >= len(answers) - 1:
            yield from combinations(answers, 2)
            return
        for place, answer in enumerate(answers):
            for step in range(1, self.opponents // 2 + 1):
                yield answer, answers[(place + step) % len(answers)]

    def _both_orders(
        self, task: Sample, one: _Side, other: _Side, serves: tuple[int, ...]
    ) -> Iterator[Question]:
        for first, second in ((one, other), (other, one)):
            extra = {**task.extra, OTHER: second.answer, IDS: (first.id, second.id)}
            if pictures := (*first.pictures, *second.pictures):
                extra[PICTURES] = pictures
            yield Question(self._match, replace(task, response=first.answer, extra=extra), serves)

    def _id(self, sample: Sample, answer: str, pictures: tuple[str, ...]) -> str:
        """Under which the points of an answer, with its pictures, are found."""
        salt = "\n".join((self._prompt.version, *pictures))
        return alias(sample.prompt, answer, salt=salt, max_chars=self.max_chars)


class _Side(NamedTuple):
    """One of two answers that are compared."""

    answer: str
    id: str
    pictures: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Match(Judge):
    """The plain judge behind a pairwise judge: two responses in this order, and the points of each by id."""

    prompt: Prompt

    scale: ClassVar[tuple[float, float]] = (0.0, 1.0)

    @property
    def version(self) -> str:
        return self.prompt.version

    def render(self, sample: Sample) -> ChatRequest | Verdict:
        pair = {"first": sample.response, "second": sample.extra[OTHER]}
        hidden = [place for place, answer in pair.items() if answer in sample.extra[HIDDEN]]
        return self.prompt.about(sample, pair, hidden=hidden, images=sample.extra.get(PICTURES, ()))

    def could_give(self, verdict: Verdict, sample: Sample) -> bool:
        points = verdict.score
        is_known = points is not None and points in POINTS.values()
        return is_known and verdict.parts == self._parts(sample, points or 0.0)

    def parse(self, reply: Reply, sample: Sample) -> Verdict:
        first, second = sample.response, sample.extra[OTHER]
        found = parse.single_object(reply, key="winner", judged=f"{first}\n{second}")
        said = str(found["winner"])
        winner = _WINNER.fullmatch(said.strip().casefold())
        if winner is None:
            raise UnreadableVerdict(f"the winner is {said[:20]!r}, not first, second or tie")
        points = POINTS[winner[1]]
        return Verdict.of(reply, points, parse.words(found, "reason"), self._parts(sample, points))

    def _parts(self, sample: Sample, points: float) -> dict[str, float]:
        one, other = sample.extra[IDS]
        return {one: points, other: 1.0 - points}
