"""Rows are read alike, whatever their prompts, responses, references and columns are kept in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from plaudit.errors import ConfigError
from plaudit.rows import NO_TASK, plain, read_prompt, read_reference, read_response, read_sample


@dataclass
class Turn:
    role: str
    content: object


def test_a_prompt_is_text_or_a_conversation_of_mappings_or_objects() -> None:
    picture = [{"type": "image_url"}, {"type": "text", "text": "What is this?"}]
    assert read_prompt("Why?") == "Why?"
    assert read_prompt([Turn("system", None), {"role": "user", "content": picture}]) == (
        {"role": "system", "content": ""},
        {"role": "user", "content": "[image_url]What is this?"},
    )


@pytest.mark.parametrize("nothing", [None, "", "  \n", [], np.array([])])
def test_a_row_without_a_prompt_says_that_the_task_was_not_recorded(nothing: Any) -> None:
    assert read_prompt(nothing) == NO_TASK


def test_content_parts_are_joined_as_chat_templates_join_them() -> None:
    parts = ["2", {"type": "text", "text": "+", "image": None}, {"type": "text", "text": None}, Turn("", "")]
    parts[-1] = {"text": "2?"}
    assert read_prompt([{"role": "user", "content": parts}])[0] == {"role": "user", "content": "2+2?"}


@pytest.mark.parametrize(
    "wrong",
    [
        7,
        {"role": "user", "content": "not in a list"},
        ["no message"],
        [{"content": "no role"}],
        [{"role": "user"}],
        [{"role": "user", "content": 5}],
        [{"role": "user", "content": [5]}],
        [{"role": "user", "content": {}}],
    ],
)
def test_what_is_neither_text_nor_a_conversation_is_named(wrong: Any) -> None:
    with pytest.raises(ConfigError, match="'raw_prompt'"):
        read_prompt(wrong, "raw_prompt")


@pytest.mark.parametrize(
    ("response", "text"),
    [
        (None, ""),
        ("", ""),
        ([], ""),
        ([{"role": "assistant", "content": None}], ""),
        (
            [{"role": "assistant", "content": [{"type": "text", "text": "See "}, {"type": "image"}]}],
            "See [image]",
        ),
        ([{"role": "assistant", "content": "56", "thinking": "7 x 8", "tool_calls": []}], "56"),
    ],
)
def test_a_response_is_text_or_turns(response: Any, text: str) -> None:
    assert read_response(response) == text


def test_a_response_with_tools_is_shown_whole() -> None:
    calls = [{"type": "function", "function": {"name": "add", "arguments": {"a": 1}}}]
    text = read_response([
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "name": "add", "content": "3"},
        {"role": "assistant", "content": "It is 3."},
    ])  # fmt: skip
    assert '"name": "add"' in text
    assert text.index("[tool]\n3") < text.index("[assistant]\nIt is 3.")


@pytest.mark.parametrize(
    ("truth", "text"),
    [
        (None, None),
        (" ", None),
        ("42", "42"),
        (42, "42"),
        (np.float64(0.5), "0.5"),
        (np.array(["56", "fünf"]), '["56", "fünf"]'),
        ({"a": [1]}, '{"a": [1]}'),
    ],
)
def test_a_reference_is_text_or_json(truth: Any, text: str | None) -> None:
    assert read_reference(truth) == text


def test_the_other_columns_are_kept_without_numpy() -> None:
    rubric = np.array([{"criterion": "cites", "points": np.array([1, 2])}], dtype=object)
    sample = read_sample("Why?", "Because.", group=np.int64(3), extra={"rubric": rubric, "note": None})
    assert sample.group == "3"
    assert sample.extra == {"rubric": [{"criterion": "cites", "points": [1, 2]}], "note": None}
    assert plain(np.int64(3)) == 3
