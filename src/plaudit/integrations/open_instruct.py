"""open-instruct: a verifier for rows whose `dataset` is `plaudit`.

    # train.py, in place of open_instruct/grpo_fast.py
    import runpy
    import plaudit.integrations.open_instruct
    runpy.run_module("open_instruct.grpo_fast", run_name="__main__")

    # no row says plaudit? send another verifier's rows here: --remap_verifier general-quality_ref=plaudit

open-instruct finds verifiers by subclass, makes them in the main process and awaits them in its vLLM actors.
It takes numbers only, and an exception ends the run. So a missing verdict becomes the mean of the query's
other answers, for which it waits, with `reasoning` saying so.
"""

from __future__ import annotations

from typing import Any, ClassVar

from open_instruct.ground_truth_utils import VerificationResult, VerifierFunction

from plaudit.integrations.scored import Scored, one_by_one, sample_of
from plaudit.judges.base import Judge, Panel
from plaudit.scoring import Score
from plaudit.value_check import check_value


class _Judged:
    """What every verifier here does. Its engine is opened in the process that scores."""

    scored: ClassVar[Scored] = Scored()
    title: ClassVar[str] = "plaudit"

    def __init__(self, verifier_config: Any = None) -> None:
        super().__init__(self.title, verifier_config=verifier_config, weight=1.0)  # type: ignore[call-arg]

    def __call__(
        self,
        tokenized_prediction: list[int],  # noqa: ARG002 - passed by name
        prediction: str,
        label: Any,
        query: str | None = None,
        **_: Any,
    ) -> Any:
        (score,) = self.scored.rewards([sample_of(query, prediction, label)])
        return _result(score)

    async def async_call(
        self,
        tokenized_prediction: list[int],  # noqa: ARG002 - passed by name
        prediction: str,
        label: Any,
        query: str | None = None,
        **_: Any,
    ) -> Any:
        (score,) = await self.scored.arewards([sample_of(query, prediction, label)])
        return _result(score)


class JudgedVerifier(_Judged, VerifierFunction):  # type: ignore[misc, unused-ignore]
    """The verifier `plaudit`, with the judge that the settings name."""


def verifier(title: str, judge: Judge | Panel | None = None, **options: Any) -> type[Any]:
    """A verifier for rows whose `dataset` is `title`, with this judge; `options` are those of plaudit.Engine.

    open-instruct looks at direct subclasses only, so a subclass of JudgedVerifier would not be found.
    """
    check_value("title", title, str)
    made = {"scored": Scored.checked(one_by_one(judge, "open-instruct"), **options), "title": title}
    return type("JudgedVerifier", (_Judged, VerifierFunction), made)


def _result(score: Score) -> Any:
    reasoning = None if score.valid else f"no verdict ({score.status}); the score is a stand-in"
    return VerificationResult(score=float(score), reasoning=reasoning)
