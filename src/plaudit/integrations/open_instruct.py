"""open-instruct: a verifier for rows whose `dataset` is `plaudit`.

open-instruct finds verifiers by subclass, makes them in the main process and awaits them in its vLLM actors.
It takes numbers only, and an exception ends the run. So a missing verdict becomes the mean of the query's
other answers, for which it waits, with `reasoning` saying so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from open_instruct.ground_truth_utils import VerificationResult, VerifierFunction

from plaudit.integrations.scored import Scored, one_by_one, sample_of
from plaudit.judges.base import Judge, Panel
from plaudit.scoring import Score
from plaudit.types import Sample
from plaudit.value_check import check_value


class _Judged:
    """What every verifier here does. Its engine is opened in the process that scores."""

    scored: ClassVar[Scored] = Scored()
    title: ClassVar[str] = "plaudit"

    def __init__(self, verifier_config: Any = None) -> None:
        super().__init__(self.title, verifier_config=verifier_config, weight=1.0)  # type: ignore[call-arg]

    def __call__(self, *row: Any, **columns: Any) -> Any:
        return _result(self.scored.rewards([_sample(*row, **columns)]))

    async def async_call(self, *row: Any, **columns: Any) -> Any:
        return _result(await self.scored.arewards([_sample(*row, **columns)]))


class JudgedVerifier(_Judged, VerifierFunction):  # type: ignore[misc, unused-ignore]
    """The verifier `plaudit`, with the judge that the settings name."""


def verifier(title: str, judge: Judge | Panel | None = None, **options: Any) -> type[Any]:
    """A verifier for rows whose `dataset` is `title`, with this judge; `options` are those of plaudit.Engine.

    open-instruct looks at direct subclasses only, so a subclass of JudgedVerifier would not be found.
    """
    check_value("title", title, str)
    made = {"scored": Scored.checked(one_by_one(judge, "open-instruct"), **options), "title": title}
    return type("JudgedVerifier", (_Judged, VerifierFunction), made)


def _sample(
    tokenized_prediction: Any,  # noqa: ARG001 - as open-instruct calls a verifier
    prediction: str,
    label: Any,
    query: str | None = None,
    **_: Any,
) -> Sample:
    return sample_of(query, prediction, label)


def _result(scores: Sequence[Score]) -> Any:
    (score,) = scores
    reasoning = None if score.valid else f"no verdict ({score.status}); the score is a stand-in"
    return VerificationResult(score=float(score), reasoning=reasoning)
