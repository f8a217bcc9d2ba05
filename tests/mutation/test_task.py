"""The calls behind a step: what they bring, and what becomes of those that fail."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from simulated_mutation import Faults, SimulatedMutation

from plaudit.mutation.completion import forget_reports
from plaudit.mutation.episode import StepResult
from plaudit.mutation.operators import KEEP, Operator, builtin_operators
from plaudit.mutation.questions import builtin_questions
from plaudit.mutation.rewrite_check import RewriteCheck

ITEM = next(item for item in builtin_questions() if item.kind == "arithmetic")
OPERATORS = {operator.name: operator for operator in builtin_operators()}


@pytest.fixture(autouse=True)
def anew() -> None:
    forget_reports()


@pytest.fixture
def practice() -> Iterator[SimulatedMutation]:
    with SimulatedMutation() as world:
        yield world


def follow(practice: SimulatedMutation, *operators: Operator) -> StepResult:
    async def go() -> StepResult:
        attempt = await practice.task.start(ITEM)
        for operator in operators:
            assert attempt.after is not None
            attempt = await practice.task.follow(ITEM, attempt.after, operator)
        return attempt

    return asyncio.run(go())


def quality(attempt: StepResult) -> float:
    assert attempt.after is not None and attempt.after.quality is not None
    return attempt.after.quality


def test_the_right_operator_makes_the_answer_better_and_a_wrong_one_worse(
    practice: SimulatedMutation,
) -> None:
    before = quality(follow(practice))
    assert quality(follow(practice, OPERATORS["decompose"])) == pytest.approx(before + 0.5)
    assert quality(follow(practice, OPERATORS["simplify"])) == pytest.approx(before - 0.1)


def test_to_keep_a_query_costs_no_call(practice: SimulatedMutation) -> None:
    attempt = follow(practice, KEEP)
    assert attempt.characters == 0
    assert attempt.after is not None and attempt.after.query == ITEM.question


def test_what_rewriter_and_target_read_and_wrote_is_counted(practice: SimulatedMutation) -> None:
    attempt = follow(practice, OPERATORS["decompose"])
    assert attempt.after is not None
    rewrite, answer = attempt.after.query, "An answer of quality 0.8."
    assert attempt.characters == len(ITEM.question) + 2 * len(rewrite) + len(answer)


def test_the_start_is_asked_about_once(practice: SimulatedMutation) -> None:
    async def go() -> None:
        first = await practice.task.start(ITEM)
        practice.faults.is_down = True
        assert (await practice.task.start(ITEM)).after is first.after

    asyncio.run(go())


@pytest.mark.parametrize("stage", ["rewrite", "answer", "grade"])
def test_a_call_that_fails_ends_the_chain_and_is_named(stage: str) -> None:
    with SimulatedMutation() as practice:
        world = follow(practice)
        assert world.after is not None
        practice.break_down(stage)
        attempt = asyncio.run(practice.task.follow(ITEM, world.after, OPERATORS["decompose"]))
    assert attempt.after is None
    assert attempt.failed_at == {"rewrite": "mutate", "answer": "answer", "grade": "judge"}[stage]
    assert "refuses" in attempt.error


def test_a_rewrite_that_is_none_is_no_outage(practice: SimulatedMutation) -> None:
    strict = Operator("decompose", OPERATORS["decompose"].instruction, RewriteCheck(max_growth=0.0, slack=0))
    attempt = follow(practice, strict)
    assert attempt.after is None
    assert attempt.failed_at == "check"
    assert "characters" in attempt.error


def test_a_start_that_failed_is_not_remembered() -> None:
    faults = Faults(refused=1.0)
    with SimulatedMutation(faults=faults) as practice:
        assert asyncio.run(practice.task.start(ITEM)).after is None
        faults.refused = 0.0
        assert asyncio.run(practice.task.start(ITEM)).after is not None
