"""The group judge: all responses to one prompt in one call, a score for each."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from statistics import fmean
from typing import ClassVar

import msgspec

from plaudit.errors import ConfigError, UnreadableVerdict
from plaudit.judges import parse
from plaudit.judges.base import Judge, Panel, Question
from plaudit.judges.fence import MAX_CHARS, Content
from plaudit.judges.grouping import HIDDEN, ID_LENGTH, IDS, AnswerGroup, alias, answer_groups
from plaudit.judges.prompt import Prompt, nothing_to_judge, object_schema, set_fields
from plaudit.judges.reply_author import Author, CopiedVerdict
from plaudit.judges.reply_rows import named_rows
from plaudit.judges.rubric import Graded, Rubric
from plaudit.judges.scale import Scale
from plaudit.types import ChatRequest, Reply, Sample, Status, Verdict

MAX_RESPONSES = 64
"""In one call: of more, the reply would be too long to be read."""
RESPONSES = "responses"
"""Where a question's sample carries the responses to be judged together."""


@dataclass(frozen=True, slots=True, repr=False)
class Group(Graded, Panel):
    """Scores all samples with the same `group` side by side: the prompt is sent once for all of them.

    Group("Is it correct and brief?", scale=(0, 10))

    A panel: submit whole groups. The judge sees the responses under hidden ids, in an order derived from what
    they say; identical ones are judged once. A reply that misses, repeats or invents an id gives no verdict
    on any of them.
    """

    max_chars_per_call: int = field(default=MAX_CHARS, kw_only=True)
    """Characters of task, reference and responses in one call; a larger group is judged in several."""
    shuffle: bool = field(default=True, kw_only=True)
    """Whether the order is derived. Otherwise it is the samples' own, and another order another request."""
    max_tokens: int = field(default=512, kw_only=True)
    """Tokens the reply may have for each response."""

    _call: _GroupCall = field(init=False, repr=False, compare=False)

    compares: ClassVar[bool] = True
    """A group is judged side by side."""

    def __post_init__(self) -> None:
        words = self._grading()
        form = f'{{"verdicts": [{{"id": "...", "reason": "...", "score": {words["number"]}}}, ...]}}'
        words |= {"letters": str(ID_LENGTH), "form": form}
        text = {"type": "string"}
        entry = object_schema({"id": text, "reason": text, "score": self._scale.schema()})
        self._set_prompt(
            "group",
            words,
            schema=object_schema({"verdicts": {"type": "array", "items": entry}}),
            reading=(parse.VERSION,),
            max_tokens=self.max_tokens,
        )
        set_fields(self, _call=_GroupCall(self._prompt, self._scale))

    @property
    def version(self) -> str:
        """Changes with everything that could change a verdict."""
        return f"{self._call.version}/{self.max_chars_per_call}/{self.shuffle:d}"

    def alone(self) -> Rubric:
        """The judge of a response that has no others in its group: the same criteria and scale."""
        return Rubric(
            self.criteria,
            self.scale,
            integer=self.integer,
            anchors=self.anchors,
            show_thinking=self.show_thinking,
            sampling=self.sampling,
            view=self.view,
        )

    def split(self, samples: Sequence[Sample]) -> Iterator[Question]:
        """One question for each group, or several where it is too long for one."""
        call = self._call
        for group in answer_groups(samples, self, salt=call.version, shuffle=self.shuffle):
            for answers in self._runs(group):
                ids = tuple(group.ids[answer] for answer in answers)
                if len(set(ids)) < len(ids):
                    raise ConfigError(
                        f"two responses of group {group.name!r} have the same id; reword the criteria"
                    )
                extra = {RESPONSES: answers, IDS: ids, HIDDEN: group.hidden.intersection(answers)}
                shown = replace(group.shared, extra={**group.shared.extra, **extra})
                serves = sorted(index for answer in answers for index in group.answers[answer])
                yield Question(call, shown, tuple(serves))

    def combine(self, index: int, sample: Sample, verdicts: Sequence[Verdict]) -> Verdict:  # noqa: ARG002
        """The sample's own part of its group's verdict."""
        if not verdicts:
            return nothing_to_judge(float(self.scale[0]))
        (verdict,) = verdicts
        if not verdict.is_valid:
            return Verdict(None, verdict.status, error=verdict.error, failure=verdict.failure)
        answer = self.answer(sample)
        own = alias(sample.prompt, answer, salt=self._call.version, max_chars=self.max_chars)
        return Verdict(verdict.parts[own], Status.OK, _reasons.decode(verdict.reason)[own])

    def _runs(self, group: AnswerGroup) -> list[tuple[str, ...]]:
        """The answers in as few calls as they fit in, about equally many in each."""
        answers = list(group.answers)
        shared = self._length(group.shared.prompt) + self._length(group.shared.reference or "")
        ends = [0]
        for answer in answers:
            ends.append(ends[-1] + self._length(answer))
        for calls in range(1, len(answers) + 1):
            cuts = [len(answers) * call // calls for call in range(calls + 1)]
            runs = list(pairwise(cuts))
            if all(self._fits(stop - start, shared + ends[stop] - ends[start]) for start, stop in runs):
                return [tuple(answers[start:stop]) for start, stop in runs]
        return []

    def _fits(self, responses: int, chars: int) -> bool:
        return responses == 1 or (responses <= MAX_RESPONSES and chars <= self.max_chars_per_call)

    def _length(self, content: Content) -> int:
        text = content if isinstance(content, str) else "".join(str(message) for message in content)
        return min(len(text), self.max_chars)


_reasons = msgspec.json.Decoder(dict[str, str])


@dataclass(frozen=True, slots=True)
class _GroupCall(Judge):
    """The plain judge behind a group judge: several responses in, their scores by id out."""

    prompt: Prompt
    points: Scale

    @property
    def version(self) -> str:
        return self.prompt.version

    @property
    def scale(self) -> tuple[float, float]:
        return (self.points.low, self.points.high)

    def render(self, sample: Sample) -> ChatRequest | Verdict:
        answers = self._answers(sample)
        hidden = [f"response-{name}" for name, answer in answers.items() if answer in sample.extra[HIDDEN]]
        labelled = {f"response-{name}": answer for name, answer in answers.items()}
        return self.prompt.about(sample, labelled, verdicts=len(answers), hidden=hidden)

    def could_give(self, verdict: Verdict, sample: Sample) -> bool:
        is_complete = verdict.parts.keys() == self._answers(sample).keys()
        return is_complete and all(score in self.points for score in verdict.parts.values())

    def parse(self, reply: Reply, sample: Sample) -> Verdict:
        answers = self._answers(sample)
        scores: dict[str, float] = {}
        reasons: dict[str, str] = {}
        rows = named_rows(
            reply, answers, find=lambda said: _named(said, answers), key="verdicts", scale=self.scale
        )
        for name in answers.keys() & rows.keys():
            found = parse.row_of(rows[name], "score")
            reasons[name] = parse.words(found, "reason")
            scores[name] = self.points.read(found["score"])
            own = {"reason": reasons[name], "score": found["score"]}
            if Author(answers[name], "score").wrote(own, json.dumps(own, ensure_ascii=False)):
                raise CopiedVerdict
        if missing := answers.keys() - scores.keys():
            raise UnreadableVerdict(f"the reply has no score for {len(missing)} of {len(answers)} responses")
        return Verdict.of(reply, fmean(scores.values()), msgspec.json.encode(reasons).decode(), scores)

    def _answers(self, sample: Sample) -> Mapping[str, str]:
        """What the judge sees, in order: from id to answer."""
        return dict(zip(sample.extra[IDS], sample.extra[RESPONSES], strict=True))


def _named(said: object, answers: Mapping[str, str]) -> str | None:
    """The id that a reply means: itself, or within the tag that it stands in, like `response-ABCDEFGH`."""
    if str(said) in answers:
        return str(said)
    names = set(_WORDS.findall(str(said))) & answers.keys() if len(str(said)) <= MAX_ID else set()
    return names.pop() if len(names) == 1 else None


_WORDS = re.compile(r"[A-Z]+|\d+")
MAX_ID = 60
"""Characters of a text that may name a response."""
