"""The reference judge: is the response's answer equivalent to the one known to be right, or not?"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from plaudit.errors import ConfigError
from plaudit.judges import parse
from plaudit.judges.content import has_content
from plaudit.judges.prompt import PromptJudge, checked_text, object_schema
from plaudit.types import ROOM, ChatRequest, Reply, Sample, Verdict
from plaudit.value_check import check_fields

CRITERIA = (
    "Equivalent means the same answer, whatever its words, its notation or its order: 1/2 and 0.5, or 5 km "
    "and 5000 m. Units are part of an answer: the same number in another unit is a different answer, and so "
    "is a number without its unit, unless the task says which unit is meant. A different value, a missing "
    "part or an answer to another question is not equivalent; a rounded value is, where the task or the "
    "reference rounds."
)


@dataclass(frozen=True, slots=True, repr=False)
class Reference(PromptJudge):
    """Scores 1 if the response agrees with the sample's reference, otherwise 0."""

    criteria: str = CRITERIA
    """What counts as equivalent."""
    max_tokens: int = field(default=ROOM, kw_only=True)
    """Tokens the reply may have, its reasoning included; of one that is cut off, four times as many."""

    scale: ClassVar[tuple[float, float]] = (0.0, 1.0)
    """Not equivalent, equivalent."""

    def __post_init__(self) -> None:
        check_fields(self)
        words = {"criteria": checked_text("criteria", self.criteria, "say what counts as equivalent")}
        self._set_prompt(
            "reference",
            words,
            schema=object_schema({"reason": {"type": "string"}, "equivalent": {"type": "boolean"}}),
            reading=(parse.VERSION,),
            max_tokens=self.max_tokens,
        )

    def check(self, sample: Sample) -> None:
        """Raises ConfigError where there is nothing to compare with, or nothing that can be shown."""
        reference: object = sample.reference
        if not isinstance(reference, str) or not has_content(reference):
            raise ConfigError(
                "is not a right answer to compare with; give every row one, or use a judge that needs none, "
                "like rubric",
                setting="reference",
                value=reference,
            )
        PromptJudge.check(self, sample)

    def render(self, sample: Sample) -> ChatRequest | Verdict:
        """The request that compares; 0, without a call, where the response says nothing."""
        self.check(sample)
        return PromptJudge.render(self, sample)

    def parse(self, reply: Reply, sample: Sample) -> Verdict:
        """1 or 0 and the reason. Raises UnreadableVerdict or Declined where there is no clear answer."""
        found = parse.single_object(reply, key="equivalent", judged=sample.text)
        is_equivalent = parse.truth(found, "equivalent")
        return Verdict.of(reply, float(is_equivalent), parse.words(found, "reason"))
