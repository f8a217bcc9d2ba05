"""Judges that others wrote, unchanged but for their URL: those of autoevals and inspect_ai."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import autoevals
import inspect_ai
import pytest
from inspect_ai.dataset import Sample
from inspect_ai.scorer import model_graded_fact, model_graded_qa
from judge_model import KEY, judged, saying

pytestmark = [pytest.mark.clients, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

SKY = "Why is the sky blue?"


@pytest.mark.parametrize(
    ("scorer", "given", "choice", "score"),
    [
        (autoevals.Factuality, {"output": "Rayleigh.", "expected": "It scatters.", "input": SKY}, "C", 1.0),
        (autoevals.Factuality, {"output": "Rayleigh.", "expected": "It scatters.", "input": SKY}, "D", 0.0),
        (autoevals.ClosedQA, {"output": "Rayleigh.", "input": SKY, "criteria": "Is it right?"}, "Y", 1.0),
        (
            autoevals.Battle,
            {"instructions": SKY, "output": "Rayleigh.", "expected": "Magic."},
            "Yes",
            1.0,
        ),
    ],
)
@pytest.mark.parametrize("is_async", [False, True])
def test_autoevals(
    scorer: Any,
    given: dict[str, str],
    choice: str,
    score: float,
    is_async: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def test(url: str) -> None:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{url}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        judge = scorer(model="m")
        found = await judge.eval_async(**given) if is_async else await asyncio.to_thread(judge.eval, **given)
        assert found.error is None and found.score == score

    judged(test, saying(reasons="because", choice=choice))


def test_inspect_ais_model_graded_scorers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    async def test(url: str) -> None:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{url}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        task = inspect_ai.Task(
            dataset=[Sample(input=f"{number} + 1?", target=f"{number + 1}") for number in range(12)],
            scorer=[model_graded_qa(), model_graded_fact()],
        )
        (log,) = await inspect_ai.eval_async(task, model="openai/m", log_dir=str(tmp_path))
        assert log.status == "success" and log.samples is not None
        grades = [score.value for one in log.samples for score in (one.scores or {}).values()]
        assert grades == ["C"] * 24

    judged(test, saying("It is the same.\n\nGRADE: C"))
