"""A row of a verl batch is read as it is, and what is missing is named."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from complaints import about
from verl_rows import Item, Words, item

from plaudit.errors import ConfigError
from plaudit.integrations.verl.batch_row import read_row


def test_a_row_is_read_with_its_task_response_truth_and_group() -> None:
    row = read_row(item(), Words())
    assert row.sample.prompt == ({"role": "user", "content": "What is 7 times 8?"},)
    assert row.sample.response == "t5 t6 t7"
    assert row.sample.reference == row.ground_truth == "56"
    assert row.sample.group == "u1"
    assert (row.length, row.data_source, row.is_validation) == (3, "openai/gsm8k", False)
    assert read_row(item(extra_info={"index": 4}), Words()).is_validation is None
    assert not row.missing


def test_padding_is_no_part_of_the_response() -> None:
    for padding in (0, 1, 9):
        row = read_row(item((4, 4), padding=padding), Words())
        assert (row.sample.response, row.length) == ("t4 t4", 2)


@pytest.mark.parametrize("padding", [0, 4])
def test_an_empty_response_is_empty(padding: int) -> None:
    row = read_row(item((), padding=padding), Words())
    assert (row.sample.response, row.length) == ("", 0)


@pytest.mark.parametrize(
    ("column", "value", "key", "remedy"),
    [
        ("uid", None, "uid", 'non_tensor_batch["uid"]'),
        ("raw_prompt", None, "raw_prompt", "data.return_raw_chat=True"),
        ("raw_prompt", np.array([], dtype=object), "raw_prompt", "data.return_raw_chat=True"),
        ("reward_model", None, "ground_truth", "reward.plaudit.rule=off"),
        ("reward_model", {"style": "rule"}, "ground_truth", "reward.plaudit.rule=off"),
        ("data_source", None, "data_source", "reward.plaudit.rule=off"),
    ],
)
def test_what_is_missing_is_named_with_its_key_the_row_and_the_remedy(
    column: str, value: Any, key: str, remedy: str
) -> None:
    message = read_row(item(**{column: value}), Words(), number=17).missing[key]
    assert key in message
    assert "row 17" in message
    assert "index 4" in message
    assert remedy in message


def test_without_raw_prompt_the_task_is_decoded_from_its_tokens() -> None:
    assert read_row(item(raw_prompt=None), Words()).sample.prompt == "t1 t2 t3"


def test_a_prompt_with_pictures_names_them() -> None:
    content = [{"type": "image"}, {"type": "text", "text": "What is this?"}]
    row = read_row(item(raw_prompt=np.array([{"role": "user", "content": content}], dtype=object)), Words())
    assert row.sample.prompt == ({"role": "user", "content": "[image]What is this?"},)


def test_a_truth_that_is_no_text_is_shown_to_the_judge_as_json() -> None:
    row = read_row(item(reward_model={"ground_truth": np.array(["56", "fifty-six"])}), Words())
    assert row.ground_truth == ["56", "fifty-six"]
    assert row.sample.reference == '["56", "fifty-six"]'


def test_the_row_itself_is_left_as_it_was() -> None:
    given = item(tool_extra_fields={"tool": 1}, __num_turns__=3)
    before = copy.deepcopy(given.non_tensor_batch["extra_info"])
    row = read_row(given, Words())
    assert row.extra_info["num_turns"] == 3
    assert row.extra_info["tool"] == 1
    assert given.non_tensor_batch["extra_info"] == before


@pytest.mark.parametrize("split", ["test", "Validation", "val"])
def test_a_row_of_a_held_out_split_is_validation(split: str) -> None:
    assert read_row(item(extra_info={"split": split}), Words()).is_validation
    assert read_row(item(), Words(), is_validation=True).is_validation
    assert read_row(item(extra_info={"split": split}), Words(), is_validation=False).is_validation is False


@pytest.mark.parametrize("key", ["responses", "attention_mask"])
def test_a_row_without_a_response_says_which_tensor_is_missing(key: str) -> None:
    given = item()
    del given.batch[key]
    with pytest.raises(ConfigError, check=about(key, "uid 'u1'", "rollout")):
        read_row(given, Words())
    with pytest.raises(ConfigError, check=about("responses")):
        read_row(Item(None, given.non_tensor_batch), Words())  # type: ignore[arg-type]


def test_tokens_that_cannot_be_decoded_say_whose_they_should_be() -> None:
    for tokenizer in (Words(), None):  # verl has none where the model's path has none
        with pytest.raises(ConfigError, check=about("responses", "actor_rollout_ref.model.path")):
            read_row(item((-1, 2)), tokenizer)


def test_of_several_sequences_the_lengths_that_verl_says_hold() -> None:
    """With a trajectory in several sequences, verl pads prompts, responses and masks each as a whole."""
    given = item((5, 6), padding=6, response_len=2, prompt_len=3)
    given.batch["prompts"] = np.array([1, 2, 3, 0, 0])
    given.batch["attention_mask"] = np.array([1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0])
    row = read_row(given, Words())
    assert (row.sample.response, row.length) == ("t5 t6", 2)
    del given.non_tensor_batch["raw_prompt"]
    assert read_row(given, Words()).sample.prompt == "t1 t2 t3"


def test_a_row_of_an_agent_loop_with_sessions_can_be_left_out() -> None:
    assert read_row(item(session_id=3, tool_extra_fields={}), Words()).can_be_left_out
    assert not read_row(item(), Words()).can_be_left_out


def test_what_tools_said_in_an_agent_loop_are_turns_of_their_own() -> None:
    looped = item((5, 6, 70, 71, 8))
    looped.batch["response_mask"] = np.array([1, 1, 0, 0, 1, 0, 0])
    row = read_row(looped, Words())
    assert row.sample.response == (
        {"role": "assistant", "content": "t5 t6"},
        {"role": "tool", "content": "t70 t71"},
        {"role": "assistant", "content": "t8"},
    )
    assert row.solution == "t5 t6 t70 t71 t8", "as verl's rules get it"
    assert row.length == 5


def test_of_a_trajectory_in_several_sequences_all_turns_are_judged() -> None:
    first, last = item((5, 6)), item((7,))
    for one, mask in ((first, [1, 0, 0, 0]), (last, [1, 0, 0])):
        one.batch["response_mask"] = np.array(mask)
    row = read_row(last, Words(), earlier=[first])
    assert [turn["content"] for turn in row.sample.response] == ["t5", "t6", "t7"]  # type: ignore[index]
    assert row.solution == "t7"


def test_a_response_without_tools_is_text() -> None:
    plain = item((5, 6))
    plain.batch["response_mask"] = np.array([1, 1, 0, 0])
    assert read_row(plain, Words()).sample.response == "t5 t6"


def test_pictures_that_verl_keeps_apart_are_shown() -> None:
    turn = {"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "What is it?"}]}
    picture = "data:image/png;base64,iVBORw0KGgo="
    row = read_row(item(raw_prompt=[turn], multi_modal_data={"image": [picture]}), Words())
    assert row.sample.prompt[0]["images"] == (picture,)  # type: ignore[index]
