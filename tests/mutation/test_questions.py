"""The packaged questions and a user's own: their shape, and what is said of a file that cannot be."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import msgspec
import pytest
from complaints import about

import plaudit
from plaudit.errors import ConfigError
from plaudit.mutation import Item, RewriteCheck, builtin_questions, load_questions

ROOT = Path(plaudit.__file__).parent.parent.parent
PACKAGED = Path(plaudit.__file__).parent / "mutation" / "data" / "questions.jsonl"


def plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))


def test_there_are_two_hundred_short_questions_of_four_kinds() -> None:
    questions = builtin_questions()
    assert len(questions) == 200
    assert Counter(item.kind for item in questions) == {
        "fact": 60,
        "arithmetic": 50,
        "definition": 40,
        "reasoning": 50,
    }
    assert all(10 <= len(item.question) <= 200 for item in questions)


def test_every_question_has_a_reference_and_a_name_of_its_own() -> None:
    questions = builtin_questions()
    assert all(item.reference and len(item.reference) <= 120 for item in questions)
    assert len({item.id for item in questions}) == 200
    assert len({plain(item.question) for item in questions}) == 200


def test_a_line_is_one_object_of_four_fields() -> None:
    lines = PACKAGED.read_text(encoding="utf-8").splitlines()
    assert len(lines) == 200
    assert {tuple(msgspec.json.decode(line)) for line in lines} == {("id", "kind", "question", "reference")}


@pytest.mark.skipif(not (ROOT / "data").is_dir(), reason="an installed package has no checkout around it")
def test_the_checkouts_data_folder_shows_the_same_file() -> None:
    assert (ROOT / "data" / "questions.jsonl").read_bytes() == PACKAGED.read_bytes()


def test_every_question_passes_for_a_question() -> None:
    faults = {item.id: RewriteCheck().fault(item.question, item.question) for item in builtin_questions()}
    assert {name: fault for name, fault in faults.items() if fault} == {}


def test_sums_in_the_packaged_questions_are_right() -> None:
    sums = re.compile(r"What is (\(?\d[\d +*()-]*)\?")
    checked = [
        (item.question, float(eval(found[1])), float(item.reference or "nan"))
        for item in builtin_questions()
        if (found := sums.fullmatch(item.question))
    ]
    assert len(checked) >= 4
    assert all(right == given for _, right, given in checked)


def test_a_file_of_ones_own_needs_questions_only(tmp_path: Path) -> None:
    path = tmp_path / "own.jsonl"
    path.write_text('{"question": "Why?"}\n\n{"question": "How?", "reference": "so", "source": "me"}\n')
    assert load_questions(path) == (Item("Why?"), Item("How?", "so"))


@pytest.mark.parametrize(
    ("text", "setting", "place"),
    [
        ("", "questions", "own.jsonl"),
        ("\n \n", "questions", "own.jsonl"),
        ('{"question": "Why?"}\n{"prompt": "How?"}\n', "", "own.jsonl:2:"),
        ('{"question": " "}\n', "", "own.jsonl:1:"),
        ('{"question": 3}\n', "", "own.jsonl:1:"),
        ("Why?\n", "", "own.jsonl:1:"),
    ],
)
def test_a_file_that_cannot_be_is_told_by_line_and_remedy(
    tmp_path: Path, text: str, setting: str, place: str
) -> None:
    path = tmp_path / "own.jsonl"
    path.write_text(text)
    with pytest.raises(ConfigError, check=about(setting, place, '{"question": ')):
        load_questions(path)


def test_a_missing_question_file_is_named() -> None:
    with pytest.raises(ConfigError, check=about("questions")):
        load_questions("no-such-file.jsonl")
