"""What a simulated judge knows of right and wrong."""

from __future__ import annotations

import pytest

from plaudit import Reference, Rubric, Sample, Yes
from plaudit.judges.base import Judge
from plaudit.simulator.answer import answer
from plaudit.simulator.ask import ask_of
from plaudit.simulator.presets import PRESETS
from plaudit.simulator.quality import BEST, WORST, quality
from plaudit.types import ChatRequest

SCENARIO = PRESETS["instant"]


@pytest.mark.parametrize(
    ("task", "response", "reference", "expected"),
    [
        ("The capital of France?", "It is Paris.", "Paris", BEST),
        ("The capital of France?", "It is Lyon.", "Paris", WORST),
        ("How many legs?", "It has eight legs.", "8", BEST),
        ("Population?", "About 1,000,000", "1000000", BEST),
        ("Who wrote it?", "Marie", "Marie Curie", (BEST + WORST) / 2),
        ("What is 7 times 8?", "That makes 56.", "", BEST),
        ("What is 7 times 8?", "54, I think.", "", WORST),
        ("3 - 5 = ?", "-2", "", BEST),
        ("10 / 4?", "2.5", "", BEST),
        ("1 / 0?", "infinity", "", None),
        ("What is 1 + 1 and 2 + 2?", "2 and 4", "", None),
        ("Write a poem.", "Roses are red.", "", None),
        ("Write a poem.", "I don’t know.", "", WORST),
        ("Write a poem.", "Write a poem.", "", WORST),
        ("Write a poem.", "  ", "", 0.0),
        ("To be?", "It is the question", "is it", BEST),
    ],
)
def test_quality_goes_by_the_right_answer(
    task: str, response: str, reference: str, expected: float | None
) -> None:
    assert quality(task, response, reference) == (None if expected is None else pytest.approx(expected))


def test_length_makes_no_difference() -> None:
    long = "Let me think about this carefully, step by step. " * 50 + "Paris"
    assert quality("Capital?", long, "Paris") == quality("Capital?", "Paris", "Paris")


def score(judge: Judge, response: str, reference: str | None) -> float:
    sample = Sample("What is the capital of France?", response, reference)
    request = judge.render(sample)
    assert isinstance(request, ChatRequest)
    found = judge.parse(answer(SCENARIO, ask_of(request, model="m"), tokens=10), sample).score
    assert found is not None
    return found


@pytest.mark.parametrize("judge", [Rubric("Is it right?"), Yes("Is it right?"), Reference()])
def test_a_right_answer_gets_more_than_a_wrong_one(judge: Judge) -> None:
    for number in range(20):
        right, wrong = (f"Answer {number}: {city}." for city in ("Paris", "Lyon"))
        assert score(judge, right, "Paris") > score(judge, wrong, "Paris")


def test_without_a_right_answer_scores_are_chance_and_use_the_whole_scale() -> None:
    scores = [score(Rubric("Is it good?"), f"Poem {number}", None) for number in range(300)]
    assert {min(scores), max(scores)} == {0.0, 10.0}
    assert 4.5 < sum(scores) / len(scores) < 5.5
