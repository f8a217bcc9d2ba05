"""Operators as data: the built-in ones, a user's file, and what is said of a file that cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest
from complaints import about

from plaudit.errors import ConfigError
from plaudit.mutation import KEEP, Operator, builtin_operators, check_operators, load_operators

BUILTIN = ["keep", "clarify", "simplify", "add_context", "decompose", "ask_for_format"]
OWN = """
[[operators]]
name = "formal"
instruction = "Put it into formal language."
max_growth = 2
"""


def written(folder: Path, text: str, name: str = "own.toml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def names(operators: tuple[Operator, ...]) -> list[str]:
    return [operator.name for operator in operators]


def test_the_built_in_operators_are_six_and_only_keep_needs_no_call() -> None:
    operators = builtin_operators()
    assert names(operators) == BUILTIN
    assert [operator.is_keep for operator in operators] == [True] + [False] * 5
    assert operators[0] == KEEP


def test_a_file_adds_to_the_built_in_operators(tmp_path: Path) -> None:
    operators = load_operators(written(tmp_path, OWN))
    assert names(operators) == [*BUILTIN, "formal"]
    assert operators[-1].instruction == "Put it into formal language."
    assert operators[-1].check.max_growth == 2.0


def test_a_file_may_choose_among_the_built_in_operators(tmp_path: Path) -> None:
    operators = load_operators(written(tmp_path, 'builtin = ["keep", "simplify"]\n' + OWN))
    assert names(operators) == ["keep", "simplify", "formal"]


def test_a_file_may_do_no_more_than_choose(tmp_path: Path) -> None:
    assert names(load_operators(written(tmp_path, 'builtin = ["keep", "simplify"]\n'))) == [
        "keep",
        "simplify",
    ]


def test_a_file_may_be_json(tmp_path: Path) -> None:
    text = '{"builtin": [], "operators": [{"name": "formal", "instruction": "Be formal."}]}'
    assert load_operators(written(tmp_path, text, "own.json")) == (Operator("formal", "Be formal."),)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[[operators]]\nname = "a"\n', ("own.toml:1:", "instruction", "'a'")),
        ('[[operators]]\nname = "a"\ninstruction = " - "\n', ("own.toml:1:", "instruction", "'a'")),
        ('\n[[operators]]\ninstruction = "Do."\n', ("own.toml:2:", "'name'")),
        ('[[operators]]\nname = 7\ninstruction = "Do."\n', ("own.toml:2:", "name, instruction")),
        ('[[operators]]\nname = "a b"\ninstruction = "Do."\n', ("own.toml:1:", "name='a b'")),
        ('[[operators]]\nname = "a"\nprompt = "Do."\n', ("own.toml:1:", "'prompt'", "instruction")),
        (OWN + "slack = -1\n", ("own.toml:2:", "slack=-1")),
        (OWN.replace("= 2", "= nan"), ("own.toml:2:", "max_growth=nan")),
        (OWN + OWN, ("own.toml:", "'formal'")),
        (OWN.replace("formal", "clarify", 1), ("own.toml:", "'clarify'", "`builtin`")),
        ('builtin = ["keep", "polish"]\n' + OWN, ("own.toml:1:", "'polish'", "simplify")),
        ("operators = []\n", ("own.toml:1:", "[[operators]]")),
        ('builtin = ["polish"]\n', ("own.toml:1:", "'polish'", "simplify")),
        ("", ("own.toml:", "[[operators]]")),
    ],
)
def test_a_file_that_cannot_be_is_told_by_line_and_remedy(
    tmp_path: Path, text: str, words: tuple[str, ...]
) -> None:
    with pytest.raises(ConfigError, check=about("", *words)):
        load_operators(written(tmp_path, text))


def test_a_file_that_is_no_toml_is_told_by_the_setting(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, check=about("operators", "line 2")):
        load_operators(written(tmp_path, "[[operators]]\nname = formal\n"))


def test_json_without_lines_is_told_by_field(tmp_path: Path) -> None:
    path = written(tmp_path, '{"operators": [{"name": "a", "instruction": 3}]}', "own.json")
    with pytest.raises(ConfigError, check=about("", "own.json", "operators[0].instruction")):
        load_operators(path)
    with pytest.raises(ConfigError, check=about("operators")):
        load_operators(written(tmp_path, "{", "own.json"))


def test_a_missing_file_is_named() -> None:
    with pytest.raises(ConfigError, check=about("operators")):
        load_operators("no-such-file.toml")


def test_an_operator_without_instruction_is_refused_in_python_too() -> None:
    with pytest.raises(ConfigError, check=about("instruction", "formal")):
        Operator("formal", "")


def test_the_name_of_an_operator_is_none() -> None:
    with pytest.raises(ConfigError, check=about("operators[1]", "'clarify'", "builtin_operators()")):
        check_operators([KEEP, "clarify"])  # type: ignore[list-item]


def test_no_operator_at_all_is_refused() -> None:
    with pytest.raises(ConfigError, check=about("operators")):
        check_operators([])
