"""One reply of a judge as models write them, with the right reading of it."""

from __future__ import annotations

from dataclasses import dataclass

TASK = "What is the boiling point of water at sea level, in Celsius?"
RESPONSE = "Water boils at 100 °C at sea level."


@dataclass(frozen=True)
class ReplyCase:
    """A reply, and the score that it states; None where it states none, or none that is the judge's own."""

    style: str
    """The family of models that writes like this."""
    kind: str
    """What is peculiar about the reply."""
    text: str
    score: float | None
    judge: str = "rubric"
    """`rubric` (0 to 10), `reference`, `pairwise`, `monitor`, `checklist` or `group`."""
    response: str = RESPONSE
    finish: str = "stop"
