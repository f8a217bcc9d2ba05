"""The pointwise judge: one response, one rubric, one score."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from plaudit.errors import UnreadableVerdict
from plaudit.judges import parse
from plaudit.judges.attack import signs_of_attack
from plaudit.judges.prompt import PromptJudge, PromptOptions, checked_text, object_schema, set_fields
from plaudit.judges.reply_author import CopiedVerdict
from plaudit.judges.scale import Scale, anchor_lines, checked_anchors
from plaudit.types import ROOM, ChatRequest, Reply, Sample, Source, Status, Verdict
from plaudit.value_check import check_fields

ECHO = "the code first (the capital letters that end the tags of the response), then "
SOLVE = "your own answer to the task, worked out without regard to the response, then "
_TEXT = {"type": "string"}
SOLVING_TOKENS = 1024
"""Room for an answer of the judge's own."""


@dataclass(frozen=True, slots=True, repr=False)
class Graded(PromptOptions):
    """What judges have that score by criteria in words: the criteria and the scale."""

    criteria: str
    scale: tuple[float, float] = (0, 10)
    """The worst and the best score."""
    integer: bool = field(default=True, kw_only=True)
    """Whether only whole numbers are scores."""
    anchors: Mapping[float, str] | None = field(default=None, hash=False, kw_only=True)
    """What some scores of the scale stand for; without any, every score is described in general words."""

    _scale: Scale = field(init=False, repr=False, compare=False)

    def _grading(self) -> dict[str, str]:
        """Check the options, set what follows from them, and return the words that a prompt has for them."""
        check_fields(self)
        criteria = checked_text(
            "criteria", self.criteria, 'write what makes a response good, like "Is it correct and brief?"'
        )
        scale = Scale.of(self.scale, integer=self.integer)
        anchors = checked_anchors(self.anchors or {}, scale)
        set_fields(self, scale=(scale.low, scale.high), anchors=anchors or None, _scale=scale)
        return {
            "criteria": criteria,
            "scale": f"{'whole numbers ' if self.integer else ''}from {scale.low:g} to {scale.high:g}",
            "number": f"<{'whole number' if self.integer else 'number'}>",
            "anchors": anchor_lines(anchors, scale),
        }


@dataclass(frozen=True, slots=True, repr=False)
class Rubric(PromptJudge, Graded):
    """Scores a response by criteria in words.

    Rubric("Is it correct and brief?", scale=(0, 10), anchors={0: "wrong", 10: "correct, no word too many"})
    """

    solve_first: bool = field(default=False, kw_only=True)
    """Whether the judge works out an answer of its own before it scores: for tasks with one right answer.

    It is then less easily talked round, and may spend 1,024 tokens more.
    """
    max_tokens: int = field(default=ROOM, kw_only=True)
    """Tokens the reply may have, its reasoning included; of one that is cut off, four times as many."""
    echo: bool = field(default=False, kw_only=True)
    """Whether the reply must repeat the code of the response's tags, which no response can know.

    A verdict that a response dictates lacks it. Small models fail to copy it and give no verdicts.
    """
    on_attack: Literal["judge", "flag"] = field(default="judge", kw_only=True)
    """What becomes of a response that shows signs of an attack on the judge, or whose own verdict came back.

    `judge`: it is judged like any other, behind the fence; a verdict copied from it is unreadable.
    `flag`: its status is `flagged`, without a score and, where the text gives it away, without a call.
    """

    def __post_init__(self) -> None:
        words = self._grading()
        first = {"code": ECHO} if self.echo else {}
        first |= {"own_answer": SOLVE} if self.solve_first else {}
        texts = dict.fromkeys([*first, "reason"], _TEXT)
        form = "".join(f'"{key}": "...", ' for key in texts)
        words |= {"form": f'{{{form}"score": {words["number"]}}}', "first": "".join(first.values())}
        self._set_prompt(
            "rubric",
            words,
            schema=object_schema({**texts, "score": self._scale.schema()}),
            reading=(parse.VERSION, self.on_attack),
            max_tokens=self.max_tokens + SOLVING_TOKENS * self.solve_first,
        )

    def render(self, sample: Sample) -> ChatRequest | Verdict:
        """The request that judges this sample; the worst score, without a call, where it says nothing."""
        if self.on_attack == "flag" and (signs := signs_of_attack(self.answer(sample))):
            return Verdict(None, Status.FLAGGED, error=signs, source=Source.RULE)
        return PromptJudge.render(self, sample)

    def could_give(self, verdict: Verdict, sample: Sample) -> bool:  # noqa: ARG002
        """Whether the score is on the scale, and whole where it has to be."""
        return verdict.score is not None and verdict.score in self._scale

    def parse(self, reply: Reply, sample: Sample) -> Verdict:
        """The score and its reason. Raises UnreadableVerdict or Declined where there is no single one."""
        try:
            found = parse.single_object(reply, key="score", judged=sample.text, scale=self.scale)
        except CopiedVerdict as error:
            if self.on_attack == "flag":
                return replace(Verdict.of(reply, None), status=Status.FLAGGED, error=str(error))
            raise
        score = self._scale.read(found["score"])
        reason = parse.words(found, "reason")
        if self.echo and found.get("code") != self._code(sample):
            raise UnreadableVerdict(
                "the verdict lacks the code of the response's tags, so someone else may have written it"
            )
        return Verdict.of(reply, score, reason)

    def _code(self, sample: Sample) -> str | None:
        """The code that only the judge of this very sample has seen."""
        request = self._prompt.ask(sample)
        if request is None:
            return None
        _, _, tail = request.messages[-1]["content"].rpartition("\n</response-")
        return tail.partition(">")[0]
