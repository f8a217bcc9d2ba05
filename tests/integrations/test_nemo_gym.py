"""The adapter for NeMo-Gym: `verify` of a resources server, and a failure that is NeMo-Gym's own."""

from __future__ import annotations

import asyncio
import importlib
from typing import Any

import pytest
from choosy import JUDGE, Choosy
from refusing import refused_before_generating
from stand_in import documented

pytestmark = pytest.mark.trainers


class JudgeError(Exception):
    """What NeMo-Gym takes a row out for."""


def adapter() -> Any:
    from pydantic import BaseModel

    class BaseVerifyRequest(BaseModel):  # type: ignore[misc]
        responses_create_params: Any
        response: Any

    class BaseVerifyResponse(BaseVerifyRequest):
        reward: float

    documented(
        "nemo_gym.base_resources_server",
        BaseVerifyRequest=BaseVerifyRequest,
        BaseVerifyResponse=BaseVerifyResponse,
        SimpleResourcesServer=object,
    )
    documented("nemo_gym.judge", JudgeError=JudgeError)
    return importlib.import_module("plaudit.integrations.nemo_gym")


def verified(judge: Choosy, answer: str, **columns: Any) -> Any:
    """What NeMo-Gym does with the rollout of an agent, but for HTTP."""
    found = adapter()
    text = {"type": "output_text", "text": answer, "annotations": []}
    message = {
        "id": "m", "type": "message", "role": "assistant", "status": "completed", "content": [text],
    }  # fmt: skip
    call = {"type": "function_call", "name": "search", "arguments": "{}", "call_id": "c", "id": "f"}
    response = {
        "id": "r", "created_at": 0.0, "model": "policy", "object": "response", "output": [call, message],
        "parallel_tool_calls": False, "tools": [], "tool_choice": "auto",
    }  # fmt: skip
    asked = {"input": [{"role": "user", "content": "Why is the sky blue?"}]}
    body = found.JudgedVerifyRequest.model_validate(
        {"responses_create_params": asked, "response": response, **columns}
    )
    made = found.server(JUDGE, **judge.options)
    return asyncio.run(
        made.verify(made.model_construct() if hasattr(made, "model_construct") else made(), body)
    )


def test_a_rollout_is_judged_whole_by_the_rows_reference() -> None:
    judge = Choosy()
    result = verified(judge, "worth 7", expected_answer="It scatters.", level="school")
    assert result.reward == 0.7
    assert result.model_extra == {"expected_answer": "It scatters.", "level": "school"}
    shown = ("Why is the sky blue?", "It scatters.", "assistant calls search, call 1>", "worth 7")
    assert all(text in judge.asked[0] for text in shown)


def test_a_missing_verdict_is_a_failure_of_the_judge_and_no_reward() -> None:
    with pytest.raises(adapter().JudgeError):
        verified(Choosy(), "lost")


def test_a_key_that_is_refused_ends_the_server_before_the_first_generation() -> None:
    found = adapter()
    with refused_before_generating() as options:
        made = found.server(JUDGE, **options)
        made.setup_webserver(made.model_construct() if hasattr(made, "model_construct") else made())
