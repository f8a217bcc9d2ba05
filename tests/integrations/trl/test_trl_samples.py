"""What TRL hands over becomes samples: plain or conversational, in groups, with references and columns."""

from __future__ import annotations

from typing import Any

import pytest
from complaints import about

from plaudit import ChatRequest, Rubric
from plaudit.errors import ConfigError
from plaudit.integrations.trl.samples import groups_of, samples_of

QUESTION = [{"role": "user", "content": "Why?"}]


def said(text: Any) -> list[dict[str, Any]]:
    return [{"role": "assistant", "content": text}]


def test_plain_and_conversational_batches_give_the_same_responses() -> None:
    plain = samples_of(["Why?", "Why?"], ["Because.", "Dunno."], {})
    chat = samples_of([QUESTION, QUESTION], [said("Because."), said("Dunno.")], {})
    assert [sample.response for sample in plain] == [sample.response for sample in chat]
    assert plain[0].prompt == "Why?"
    assert chat[0].prompt == tuple(QUESTION)


def test_completions_of_one_prompt_side_by_side_are_a_group() -> None:
    assert groups_of(["a", "a", "b", "b", "a"]) == ["0", "0", "1", "1", "2"]
    assert groups_of([QUESTION, list(QUESTION), said("x")]) == ["0", "0", "1"]


def test_the_same_prompt_twice_in_a_row_makes_two_groups_where_their_size_is_known() -> None:
    assert groups_of(["a"] * 4, num_generations=2) == ["0", "0", "1", "1"]
    assert groups_of(["a"] * 4) == ["0"] * 4


def test_the_reference_column_and_the_others_reach_the_samples() -> None:
    columns = {"solution": ["4", None, 6, ["a"]], "level": [1, 2, 3, 4], "trainer_state": object()}
    samples = samples_of(["q"] * 4, ["r"] * 4, columns, reference="solution")
    assert [sample.reference for sample in samples] == ["4", None, "6", '["a"]']
    assert samples[2].extra == {"level": 3}


def test_a_reference_column_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(ConfigError, check=about("reference", "answer")):
        samples_of(["q"], ["r"], {"solution": ["4"], "level": [1]}, reference="answer")


def test_a_reference_column_with_too_few_answers_is_named_with_both_counts() -> None:
    with pytest.raises(ConfigError, check=about("answer", "1 entries for 2 prompts")):
        samples_of(["q", "p"], ["r", "r"], {"answer": ["4"]}, reference="answer")


def test_a_completion_too_few_is_named() -> None:
    with pytest.raises(ConfigError, check=about("completions")):
        samples_of(["q", "q"], ["r"], {})


def test_a_conversational_completion_with_tools_is_a_trajectory() -> None:
    prompt = [{"role": "user", "content": "What is 2 + 2?"}]
    call = {"type": "function", "function": {"name": "add", "arguments": {"a": 2, "b": 2}}}
    completion = [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "name": "add", "content": "4"},
        {"role": "assistant", "content": "It is 4."},
    ]
    tools = [{"type": "function", "function": {"name": "add"}}]
    (sample,) = samples_of([prompt], [completion], {"tools": [tools]})
    assert [turn["role"] for turn in sample.response] == ["assistant", "tool", "assistant"]  # type: ignore[index]
    assert sample.tools == tools
    request = Rubric("Is it right?").render(sample)
    assert isinstance(request, ChatRequest)
    assert "tool add, result of call 1>\n4\n" in request.messages[-1]["content"]


def test_pictures_in_a_column_of_the_data_set_are_shown() -> None:
    prompt = [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "What is it?"}]}]
    picture = "data:image/png;base64,iVBORw0KGgo="
    (sample,) = samples_of([prompt], [[{"role": "assistant", "content": "A cat."}]], {"images": [[picture]]})
    request = Rubric("Is it right?").render(sample)
    assert isinstance(request, ChatRequest)
    assert request.images == (picture,)
