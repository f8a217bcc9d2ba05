"""On which line a key of a settings file stands."""

from __future__ import annotations

import pytest

from plaudit.judges.locator import line_at, toml_lines, yaml_lines

TOML = '''\
kind = "jury"   # comment
scale = [
  0,
  10,
]
criteria = """
fake = 1
[[members]]
"""
"quoted key" = 2

[[members]]
kind = "rubric"
anchors.0 = "wrong"

[[members]]
  kind = "yes"

  [members.deep]
  key = "value"

[other]
key = 'value'
'''

YAML = """\
kind: checklist
criteria:
  - name: correct
    text: |
      weight: not a key
    weight: 3
  - {name: brief,
     weight: 1}
"""


@pytest.mark.parametrize(
    ("setting", "line"),
    [
        ("kind", 1),
        ("scale", 2),
        ("scale[1]", 2),
        ("criteria", 6),
        ("quoted key", 10),
        ("members", 12),
        ("members[0]", 12),
        ("members[0].kind", 13),
        ("members[0].anchors.0", 14),
        ("members[1]", 16),
        ("members[1].kind", 17),
        ("members[1].deep.key", 20),
        ("members[1].nowhere", 16),
        ("other.key", 23),
        ("fake", 1),
        ("", 1),
    ],
)
def test_keys_of_toml_are_found_on_their_lines(setting: str, line: int) -> None:
    assert line_at(toml_lines(TOML), setting) == line


@pytest.mark.parametrize(
    ("setting", "line"),
    [
        ("kind", 1),
        ("criteria", 2),
        ("criteria[0]", 3),
        ("criteria[0].weight", 6),
        ("criteria[1]", 7),
        ("criteria[1].weight", 8),
        ("criteria[1].text", 7),
    ],
)
def test_keys_of_yaml_are_found_on_their_lines(setting: str, line: int) -> None:
    assert line_at(yaml_lines(YAML), setting) == line


def test_windows_line_ends_change_nothing() -> None:
    assert toml_lines(TOML.replace("\n", "\r\n")) == toml_lines(TOML)


def test_a_key_that_stands_twice_in_yaml_is_named() -> None:
    with pytest.raises(ValueError, match="line 3: 'scale' is there twice"):
        yaml_lines("scale: [0, 1]\nkind: yes\nscale: [0, 2]\n")


def test_a_yaml_file_that_contains_itself_comes_to_an_end() -> None:
    assert yaml_lines("a: &a\n  b: *a\n")["a", "b"] == 2


def test_yaml_that_only_the_faster_loader_takes_has_no_lines() -> None:
    assert line_at(yaml_lines("criteria:\tIs it right?\n"), "criteria") == 1
