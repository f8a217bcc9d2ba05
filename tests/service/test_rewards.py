"""The shapes in which trainers post samples, read as the adapters for these trainers read them."""

from __future__ import annotations

import pytest

from plaudit import Cause, Rubric, Sample, Status, Verdict
from plaudit.service.rewards import Asked, NoReward, nemo_gym_sample, rewards_of


def test_a_posted_rollout_keeps_its_tool_calls_and_their_results() -> None:
    output = [
        {"type": "reasoning", "summary": []},
        {"type": "function_call", "name": "search", "arguments": "{}", "call_id": "c"},
        {"type": "function_call_output", "call_id": "c", "output": "It scatters."},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Blue."}]},
    ]
    asked = {"input": [{"role": "user", "content": "Why is the sky blue?"}]}
    sample = nemo_gym_sample({"responses_create_params": asked, "response": {"output": output}})
    assert [turn["role"] for turn in sample.response if not isinstance(turn, str)] == [
        "assistant",
        "tool",
        "assistant",
    ]
    assert "search" in sample.text
    assert "It scatters." in sample.text


def test_a_posted_answer_is_its_text() -> None:
    message = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Blue."}]}
    posted = {"responses_create_params": {"input": "Why?"}, "response": {"output": [message]}}
    assert nemo_gym_sample(posted).response == "Blue."


LOST = Verdict.failed(Cause.TIMED_OUT, "no answer")


def asked_about(*groups: str) -> Asked:
    return Asked([Sample("p", "r", group=group) for group in groups], Rubric("Is it right?"))


def test_the_mean_of_its_group_stands_in_for_a_missing_verdict() -> None:
    verdicts = [Verdict(10.0, Status.OK), Verdict(4.0, Status.OK), LOST, Verdict(1.0, Status.OK)]
    assert rewards_of(asked_about("a", "a", "a", "b"), verdicts, "group-mean") == [1.0, 0.4, 0.7, 0.1]


def test_a_group_without_any_verdict_has_no_mean() -> None:
    with pytest.raises(NoReward, match="1 of 2 samples have no verdict; the first: no answer"):
        rewards_of(asked_about("a", "b"), [Verdict(10.0, Status.OK), LOST], "group-mean")
