"""The adapter for open-instruct, against its documented VerifierFunction (it is on no package index)."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import pytest
from choosy import JUDGE, Choosy
from stand_in import documented


@dataclass
class VerificationResult:
    score: float
    cost: float = 0.0
    reasoning: str | None = None


class VerifierFunction(ABC):
    def __init__(self, name: str, weight: float = 1.0, verifier_config: Any = None) -> None:
        self.name, self.weight, self.verifier_config = name, weight, verifier_config

    @abstractmethod
    def __call__(self, tokenized_prediction: list[int], prediction: str, label: Any) -> VerificationResult:
        """Score a prediction."""


documented(
    "open_instruct.ground_truth_utils",
    VerificationResult=VerificationResult,
    VerifierFunction=VerifierFunction,
)

from open_instruct.ground_truth_utils import VerifierFunction as Base  # noqa: E402

from plaudit.integrations.open_instruct import JudgedVerifier, verifier  # noqa: E402


def call(made: Any, prediction: str, query: str = "Why?") -> Any:
    return asyncio.run(
        made.async_call(
            tokenized_prediction=[1], prediction=prediction, label="4", query=query, rollout_state={}
        )
    )


def test_it_is_found_by_subclass_and_made_from_a_configuration() -> None:
    brief = verifier("brief", JUDGE, **Choosy().options)
    assert {JudgedVerifier, brief} <= set(Base.__subclasses__())
    assert [made(None).name for made in (JudgedVerifier, brief)] == ["plaudit", "brief"]


def test_it_scores_awaited_and_called() -> None:
    judge = Choosy()
    made = verifier("brief", JUDGE, **judge.options)(None)
    assert call(made, "worth 7").score == 0.7
    assert made([1], "worth 3", "4", "Why?").score == 0.3
    assert call(made, "worth 7").reasoning is None
    assert len(judge.asked) == 2


def test_a_missing_verdict_is_the_mean_of_the_query_so_far_and_says_so() -> None:
    made = verifier("brief", JUDGE, **Choosy().options)(None)
    for worth in (2, 4):
        call(made, f"worth {worth}")
    call(made, "worth 9", query="How?")
    result = call(made, "lost")
    assert result.score == pytest.approx(0.3)
    assert "no verdict (failed)" in result.reasoning
