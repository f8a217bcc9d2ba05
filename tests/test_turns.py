"""Turns in the forms of other APIs: judges see the same calls and results in all of them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from plaudit import Monitor, Rubric, Sample
from plaudit.rows import read_prompt, read_response
from plaudit.types import ChatRequest

CALL = {"id": "a", "name": "run", "arguments": {"n": 1}}
PLAIN: list[Any] = [
    {"role": "assistant", "content": "Let me see.", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "a", "content": "2 failed"},
    {"role": "assistant", "content": "Done."},
]  # fmt: skip
ANTHROPIC: list[Any] = [
    {
        "role": "assistant",
        "content": [
            {"type": "text", "text": "Let me see."},
            {"type": "tool_use", "id": "t1", "name": "run", "input": {"n": 1}},
        ],
    },
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "2 failed"}]},
    {"role": "assistant", "content": [{"type": "text", "text": "Done."}]},
]
RESPONSES: list[Any] = [
    {"type": "reasoning", "summary": []},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Let me see."}]},
    {"type": "function_call", "call_id": "c", "name": "run", "arguments": '{"n": 1}'},
    {"type": "function_call_output", "call_id": "c", "output": "2 failed"},
    {"role": "assistant", "content": "Done."},
]
FUNCTIONS: list[Any] = [
    {
        "role": "assistant",
        "content": "Let me see.",
        "function_call": {"name": "run", "arguments": '{"n": 1}'},
    },
    {"role": "function", "name": "run", "content": "2 failed"},
    {"role": "assistant", "content": "Done.", "function_call": None},
]
OBJECTS = [
    SimpleNamespace(
        role=turn["role"],
        content=[SimpleNamespace(**block) for block in turn["content"]],
    )
    for turn in ANTHROPIC
]
FORMS = {"anthropic": ANTHROPIC, "responses": RESPONSES, "functions": FUNCTIONS}


def asked(response: Any, judge: Any = None) -> ChatRequest:
    request = (judge or Rubric("Is it right?")).render(Sample("Make the tests pass.", response))
    assert isinstance(request, ChatRequest)
    return request


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_calls_and_results_of_any_api_are_shown_alike(form: list[Any]) -> None:
    assert asked(form) == asked(PLAIN)
    assert asked(read_response(form)) == asked(PLAIN), "also as a row"


def test_turns_may_be_objects() -> None:
    assert asked(read_response(OBJECTS)) == asked(PLAIN)


def test_shared_conversations_have_speakers_too() -> None:
    shared = [
        {"from": "gpt", "value": "Hm."},
        {"from": "human", "value": "Yes?"},
        {"from": "gpt", "value": "4"},
    ]
    named = [
        {"role": "assistant", "content": "Hm."},
        {"role": "user", "content": "Yes?"},
        {"role": "assistant", "content": "4"},
    ]
    assert asked(shared) == asked(named)


@pytest.mark.parametrize(
    "turn",
    [
        {"role": "assistant", "content": "Done.", "reasoning_content": "I will edit the tests."},
        {"role": "assistant", "content": "Done.", "reasoning": "I will edit the tests."},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "I will edit the tests."},
                {"type": "text", "text": "Done."},
            ],
        },
    ],
)
def test_reasoning_in_a_field_of_its_own_is_hidden_from_judges_and_shown_to_monitors(turn: Any) -> None:
    tagged = "<think>I will edit the tests.</think>Done."
    assert asked([turn]) == asked(tagged)
    assert "I will edit" not in asked([turn]).messages[-1]["content"]
    assert "I will edit" in asked([turn], Monitor("It edits the tests.")).messages[-1]["content"]


def test_the_text_of_a_response_is_that_of_its_blocks() -> None:
    assert '"run"' in Sample("q", ANTHROPIC).text
    assert "2 failed" in Sample("q", ANTHROPIC).text
    assert "[{" not in Sample("q", ANTHROPIC).text.partition("[tool calls]")[0]


def test_reasoning_of_earlier_turns_is_no_part_of_the_task() -> None:
    plain: list[Any] = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]
    thought: list[Any] = [plain[0], {**plain[1], "reasoning_content": "Hm."}]
    requests = [
        Rubric("Is it right?").render(Sample(task, "b")) for task in (plain, thought, read_prompt(thought))
    ]
    assert requests[0] == requests[1] == requests[2]
