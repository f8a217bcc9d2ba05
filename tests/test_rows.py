"""Rows are read alike, whatever their prompts, responses, references and columns are kept in."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from complaints import about

from plaudit.errors import ConfigError
from plaudit.rows import (
    NO_TASK,
    Fields,
    MissingField,
    RowReader,
    as_samples,
    find_fields,
    images_of,
    plain,
    read_prompt,
    read_reference,
    read_response,
    read_sample,
    response_of,
)
from plaudit.types import Sample


@dataclass
class Turn:
    role: str
    content: object


def test_a_prompt_is_text_or_a_conversation_of_mappings_or_objects() -> None:
    picture = [{"type": "image_url"}, {"type": "text", "text": "What is this?"}]
    assert read_prompt("Why?") == "Why?"
    assert read_prompt([Turn("system", None), {"role": "user", "content": picture}]) == (
        {"role": "system", "content": ""},
        {"role": "user", "content": "[image]What is this?"},
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
        b"bytes",
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
    with pytest.raises(ConfigError, check=about("", "'raw_prompt'")):
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
    response = read_response([
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "name": "add", "content": "3"},
        {"role": "assistant", "content": "It is 3."},
    ])  # fmt: skip
    made = [{"id": "", "type": "function", "function": {"name": "add", "arguments": {"a": 1}}}]
    assert response == (
        {"role": "assistant", "content": "", "tool_calls": made},
        {"role": "tool", "content": "3", "name": "add"},
        {"role": "assistant", "content": "It is 3."},
    )


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


def test_arrays_of_content_parts_are_read_like_lists_of_them() -> None:
    picture = {"type": "image_url", "image_url": {"url": PIXEL}}
    call = {"type": "tool_use", "id": "c", "name": "look", "input": {"places": [1, 2]}}
    prompt = [{"role": "user", "content": [{"type": "text", "text": "What is this?"}, picture]}]
    response = [{"role": "assistant", "content": [{"type": "text", "text": "Wait."}, call]}]
    assert in_arrays(prompt)[0]["content"].shape == (2,)
    assert images_of(read_prompt(prompt)) == (PIXEL,)
    assert read_prompt(in_arrays(prompt)) == read_prompt(prompt)
    assert read_response(in_arrays(response)) == read_response(response)
    assert read_sample("p", "r", in_arrays([picture])) == read_sample("p", "r", [picture])


def in_arrays(value: Any) -> Any:
    """As pandas reads Parquet: every list within is an array."""
    if isinstance(value, dict):
        return {name: in_arrays(item) for name, item in value.items()}
    if not isinstance(value, list):
        return value
    array = np.empty(len(value), dtype=object)
    array[:] = [in_arrays(item) for item in value]
    return array


def test_the_other_columns_are_kept_without_numpy() -> None:
    rubric = np.array([{"criterion": "cites", "points": np.array([1, 2])}], dtype=object)
    sample = read_sample("Why?", "Because.", group=np.int64(3), extra={"rubric": rubric, "note": None})
    assert sample.group == "3"
    assert sample.extra == {"rubric": [{"criterion": "cites", "points": [1, 2]}], "note": None}
    assert plain(np.int64(3)) == 3


@pytest.mark.parametrize(
    ("row", "prompt", "response", "reference"),
    [
        ({"prompt": "p", "completion": "r"}, "p", "r", None),
        ({"question": "p", "answer": "r"}, "p", "r", None),
        ({"question": "p", "response": "r", "answer": "a"}, "p", "r", "a"),
        ({"problem": "p", "generation": "r", "solution": "s"}, "p", "r", "s"),
        ({"instruction": "p", "input": "", "output": "r"}, "p", "r", None),
        ({"instruction": "p", "input": "more", "output": "r"}, "p\n\nmore", "r", None),
        ({"prompt": "p", "response": "r", "answer": "kept as it is"}, "p", "r", None),
        ({"question": "p", "model_output": "r"}, "p", "r", None),
        ({"question": "p", "prediction": "r", "answer": "a"}, "p", "r", "a"),
        ({"problem": "p", "generation": "r", "answer": "a"}, "p", "r", "a"),
    ],
)
def test_columns_of_common_data_sets_are_recognised(
    row: dict[str, str], prompt: str, response: str, reference: str | None
) -> None:
    sample = RowReader()(row)
    assert (sample.prompt, sample.response, sample.reference) == (prompt, response, reference)


def test_the_column_that_is_missing_is_named_where_the_other_is_recognised() -> None:
    with pytest.raises(ConfigError, check=about("", "'response'", "question, notes")):
        RowReader()({"question": "p", "notes": "n"})


@pytest.mark.parametrize(
    "turns",
    [
        [{"role": "user", "content": "2+2?"}, {"role": "assistant", "content": "4"}],
        [{"from": "human", "value": "2+2?"}, {"from": "gpt", "value": "4"}],
    ],
)
@pytest.mark.parametrize("name", ["messages", "conversations"])
def test_a_conversation_ends_with_the_response(name: str, turns: list[dict[str, str]]) -> None:
    reader = RowReader()
    sample = reader({name: turns, "id": 7})
    assert sample.prompt == ({"role": "user", "content": "2+2?"},)
    assert sample.response == "4"
    assert sample.extra == {"id": 7}
    with pytest.raises(ConfigError, check=about("", name)):
        reader({name: turns[:1]})


def test_messages_beside_a_response_are_the_prompt() -> None:
    sample = RowReader()({"messages": [{"role": "user", "content": "2+2?"}], "response": "4"})
    assert sample.prompt == ({"role": "user", "content": "2+2?"},)
    assert sample.response == "4"


def test_named_columns_come_before_recognised_ones() -> None:
    row = {"prompt": "p", "response": "r", "task": "t", "text": "x", "gold": "g", "uid": 3}
    given = {"prompt": "task", "response": "text", "reference": "gold", "group": "uid"}
    sample = RowReader(given)(row)
    assert (sample.prompt, sample.response, sample.reference, sample.group) == ("t", "x", "g", "3")
    assert sample.extra == {"prompt": "p", "response": "r"}


def test_names_with_capitals_are_recognised() -> None:
    sample = RowReader()({"Question": "p", "Answer ": "r"})
    assert (sample.prompt, sample.response) == ("p", "r")


def test_a_name_with_dots_is_a_field_within_a_column() -> None:
    reader = RowReader({"prompt": "data.q", "response": "data.out.text", "group": "meta.id"})
    sample = reader({"data": {"q": "p", "out": {"text": "r"}}, "meta": {"id": 7}})
    assert (sample.prompt, sample.response, sample.group) == ("p", "r", "7")
    with pytest.raises(MissingField, match=r"no 'data\.out\.text'"):
        reader({"data": {"q": "p", "out": "r"}})


def test_a_column_whose_own_name_has_dots_comes_first() -> None:
    sample = RowReader({"prompt": "a.b", "response": "r"})({"a.b": "p", "a": {"b": "x"}, "r": "r"})
    assert sample.prompt == "p"


def test_the_first_row_decides_for_all() -> None:
    reader = RowReader()
    reader({"question": "p", "answer": "r"})
    assert reader.fields == Fields("question", "answer")
    with pytest.raises(ConfigError, check=about("", "'question'", "prompt, response")):
        reader({"prompt": "p", "response": "r"})


def test_what_was_recognised_is_said_unless_the_names_are_the_usual_ones() -> None:
    assert str(Fields()) == ""
    assert str(find_fields(["question", "answer"])) == "prompt from 'question', response from 'answer'"
    assert "last turn of 'messages'" in str(find_fields(["messages"]))
    assert "'instruction' and 'input'" in str(find_fields(["instruction", "input", "output"]))


class Frame:
    """A table as pandas has it: iterating gives the names of the columns."""

    columns = ("question", "answer")

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def to_dict(self, orient: str) -> list[dict[str, str]]:
        assert orient == "records"
        return [{"question": "1+1?", "answer": "2"}]


def test_samples_may_be_rows_one_row_or_a_table() -> None:
    wanted = [Sample("1+1?", "2")]
    table: Any = Frame()
    assert as_samples(wanted) == as_samples(wanted[0]) == wanted
    assert as_samples({"prompt": "1+1?", "response": "2"}) == wanted
    assert as_samples(iter([{"question": "1+1?", "answer": "2"}])) == wanted
    assert as_samples(table) == wanted


@pytest.mark.parametrize(
    ("rows", "setting"),
    [
        ("a text", "samples"),
        (7, "samples"),
        ([("1+1?", "2")], "samples[0]"),
        ([Sample("p", "r"), {"task": "t"}], "samples[1]"),
    ],
)
def test_what_is_no_sample_is_named_with_what_to_write(rows: Any, setting: str) -> None:
    with pytest.raises(ConfigError) as caught:
        as_samples(rows)
    assert caught.value.setting == setting


# -- prompt and response in one text ------------------------------------------------------------------------

PROMPT = "<|im_start|>user\nWhy is the sky blue? " + "Think. " * 40 + "<|im_end|>\n<|im_start|>assistant\n"


def test_the_response_is_what_follows_the_prompt() -> None:
    assert response_of(PROMPT + "It scatters.<|im_end|>", PROMPT) == "It scatters.<|im_end|>"
    assert response_of("<s>" + PROMPT + "It scatters.", PROMPT) == "It scatters."


def test_a_response_that_repeats_the_prompt_stays_whole() -> None:
    assert response_of(PROMPT + "You ask: " + PROMPT, PROMPT) == "You ask: " + PROMPT


def test_a_prompt_that_lost_its_head_is_recognised() -> None:
    assert response_of(PROMPT[50:] + "It scatters.", PROMPT) == "It scatters."


def test_a_text_without_its_prompt_is_taken_whole() -> None:
    assert response_of("Something else", PROMPT) == "Something else"
    assert response_of("Something else", "") == "Something else"
    assert response_of("", PROMPT) == ""


def test_cells_that_pandas_left_empty_are_neither_a_reference_nor_a_group_nor_a_value() -> None:
    empty = float("nan")
    row = {"prompt": "p", "response": "r", "reference": empty, "group": np.float64("nan"), "level": empty}
    assert as_samples([row]) == [Sample("p", "r", extra={"level": None})]
    assert read_reference(empty) is None


def test_a_rubric_with_a_number_that_is_none_keeps_it_and_so_is_refused() -> None:
    (sample,) = as_samples([{"prompt": "p", "response": "r", "rubric": [{"points": float("nan")}]}])
    assert math.isnan(sample.extra["rubric"][0]["points"])


def test_a_cell_that_pandas_left_empty_is_called_missing() -> None:
    rows: list[dict[str, Any]] = [{"prompt": "p", "response": "r"}]
    rows.append({"prompt": "p", "response": float("nan")})
    with pytest.raises(ConfigError, check=about("samples[1]", "'response'", "NaN")) as refused:
        as_samples(rows)
    assert refused.value.setting == "samples[1]"


PIXEL = "data:image/png;base64,iVBORw0KGgo="
MARKED: list[Any] = [
    {"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "And "}, {"type": "image"}]},
    {"role": "user", "content": [{"type": "image"}]},
]


@pytest.mark.parametrize("name", ["images", "image"])
def test_pictures_in_a_column_go_to_the_places_that_the_prompt_marks(name: str) -> None:
    pictures = [PIXEL, "https://a/1.png", "https://a/2.png"]
    sample = read_sample(MARKED, "r", extra={name: pictures})
    assert images_of(sample.prompt) == tuple(pictures)
    assert [turn["content"] for turn in sample.prompt] == ["[image]And [image]", "[image]"]  # type: ignore[index]


@pytest.mark.parametrize(
    ("row", "column"),
    [
        ({"reference": [{"type": "image_url", "image_url": {"url": "1.png"}}]}, "reference has a picture"),
        ({"images": ["1.png", "2.png", "3.png"]}, "images has a picture"),
        ({"prompt": np.array([])}, "'prompt' is an empty list"),
    ],
)
def test_the_column_that_cannot_be_judged_is_named(row: dict[str, Any], column: str) -> None:
    with pytest.raises(ConfigError, check=about("samples[0]", column)):
        as_samples({"prompt": MARKED, "response": "r", **row})


def test_pictures_that_no_place_is_for_are_named_and_other_columns_of_that_name_left_alone() -> None:
    with pytest.raises(ConfigError, check=about("prompt", "3", "1")):
        read_sample(MARKED, "r", extra={"images": [PIXEL]})
    assert read_sample("q", "r", extra={"image": "1.png"}).prompt == "q"
    assert (
        read_sample([{"role": "user", "content": "q"}], "r", extra={"image": "1.png"}).extra["image"]
        == "1.png"
    )


CALL = {"id": "1", "function": {"name": "search", "arguments": "{}"}}


@pytest.mark.parametrize("nothing", [None, [], "", {}])
def test_a_turn_without_tool_calls_may_say_so_in_any_way(nothing: object) -> None:
    turn = {"role": "assistant", "content": "a", "tool_calls": nothing}
    assert read_response([turn]) == "a"


def test_a_single_tool_call_need_not_stand_in_a_list() -> None:
    turns = read_response([{"role": "assistant", "content": "a", "tool_calls": CALL}])
    assert not isinstance(turns, str)
    (turn,) = turns
    assert [call["function"]["name"] for call in turn["tool_calls"]] == ["search"]


@pytest.mark.parametrize("wrong", [7, True, "search", [7], {"role": "tool"}])
@pytest.mark.parametrize("more", [{}, {"function_call": {"name": "f", "arguments": ""}}])
def test_what_is_no_tool_call_is_named(wrong: object, more: dict[str, object]) -> None:
    turn = {"role": "assistant", "content": "a", "tool_calls": wrong, **more}
    with pytest.raises(ConfigError, check=about("", "tool call without a name")):
        read_response([turn])


def test_a_number_of_any_size_is_no_content() -> None:
    with pytest.raises(ConfigError, check=about("", "a number as its content")):
        read_response([{"role": "assistant", "content": 10**400}])
