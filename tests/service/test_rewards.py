"""The shapes in which trainers post samples, read as the adapters for these trainers read them."""

from __future__ import annotations

from plaudit.service.rewards import nemo_gym_sample


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
