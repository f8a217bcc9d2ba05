"""Labelled pairs from files of three shapes, and what is said of lines that are none."""

from __future__ import annotations

import json

import pytest
from complaints import about

from plaudit.audit import Pair, read_pairs, samples_of
from plaudit.errors import ConfigError

REWARDBENCH = {"id": 7, "subset": "math", "prompt": "2 + 2?", "chosen": "4", "rejected": "5"}
JUDGEBENCH = {"pair_id": "a", "question": "2 + 2?", "response_A": "5", "response_B": "4", "label": "B>A"}
LLMBAR = {"input": "2 + 2?", "output_1": "4", "output_2": "5", "label": 1}


def lines(*rows: object) -> bytes:
    return "\n".join(json.dumps(row) for row in rows).encode()


def test_the_fields_tell_which_benchmark_a_line_is_from() -> None:
    assert read_pairs(lines(REWARDBENCH, JUDGEBENCH, LLMBAR), "f") == [
        Pair("7", "2 + 2?", "4", "5", "math"),
        Pair("a", "2 + 2?", "4", "5"),
        Pair("3", "2 + 2?", "4", "5"),
    ]


def test_either_label_is_read() -> None:
    flipped = [{**JUDGEBENCH, "label": "A>B"}, {**LLMBAR, "label": 2}, {**LLMBAR, "label": "2"}]
    assert [pair.better for pair in read_pairs(lines(*flipped), "f")] == ["5", "5", "5"]


def test_one_json_array_is_read_as_well() -> None:
    assert len(read_pairs(json.dumps([LLMBAR, LLMBAR]).encode(), "f")) == 2


def test_lists_of_responses_make_every_pair_of_them() -> None:
    found = read_pairs(lines({**REWARDBENCH, "chosen": ["4", "four"], "rejected": ["5", "6", "7"]}), "f")
    assert len(found) == 6
    assert {pair.better for pair in found} == {"4", "four"}
    assert len({pair.id for pair in found}) == 6


def test_a_pair_is_two_samples_of_one_group() -> None:
    better, worse, other, _ = samples_of(read_pairs(lines(REWARDBENCH, LLMBAR), "f"))
    assert (better.response, worse.response) == ("4", "5")
    assert better.group == worse.group != other.group


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", ("prompt/chosen/rejected",)),
        (b"{", ("line 1",)),
        (b"[{", ("array",)),
        (b"3", ("line 1", "int")),
        (lines(LLMBAR, {"prompt": "a", "response": "b"}), ("line 2", "'prompt', 'response'")),
        (lines({**LLMBAR, "label": 3}), ("label=3",)),
        (lines({**JUDGEBENCH, "label": "A=B"}), ("label='A=B'",)),
        (lines({**REWARDBENCH, "chosen": []}), ("chosen",)),
        (lines({**LLMBAR, "output_1": 4}), ("output_1", "int")),
    ],
)
def test_a_bad_line_is_named_with_what_is_wrong(data: bytes, words: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError, check=about("", *words)):
        read_pairs(data, "f")
