"""The judges of verifiers, unchanged but for their URL."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import verifiers.v1 as vf
from judge_model import KEY, judged, saying
from verifiers.v1.judges import ReferenceJudge, ReferenceJudgeConfig

pytestmark = pytest.mark.trainers


class Question(vf.TaskData):  # type: ignore[misc]
    answer: str = "It scatters."


def _trace(data: Any, reply: str) -> Any:
    return vf.Trace[Question, vf.State, vf.AgentConfig](
        task=vf.TraceTask(type="Asked", data=data),
        agent=vf.AgentInfo(config=vf.AgentConfig()),
        root_reply=reply,
    )


def test_verifiers_own_judges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGE_KEY", KEY)
    data = Question(prompt="Why is the sky blue?")

    async def test(url: str) -> None:
        where: dict[str, Any] = {"model": "m", "base_url": f"{url}/v1", "api_key_var": "JUDGE_KEY"}
        judge = ReferenceJudge(ReferenceJudgeConfig(**where))
        asked = [judge.score(data, _trace(data, f"Answer {number}.")) for number in range(12)]
        assert await asyncio.gather(*asked) == [1.0] * 12

    judged(test, saying("yes"))
