"""Judges from files: TOML or YAML, with messages that name the line and the remedy.

    kind = "rubric"
    criteria = "Is the answer correct and brief?"
    scale = [0, 10]
    anchors = { "0" = "wrong", "10" = "correct, not a word too many" }

The keys are the arguments of the judge in Python. A table with a `kind` of its own is a judge within a judge.
Files of other tools (`foreign.py`, JSON too) are read as well; `read_judge(path).toml()` writes them as ours.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from plaudit.errors import ConfigError
from plaudit.files import decoded, read_text
from plaudit.judges.base import Judge, Panel
from plaudit.judges.foreign import translate
from plaudit.judges.locator import Key, line_at, toml_lines, yaml_lines
from plaudit.judges.registry import build

log = logging.getLogger("plaudit")


@dataclass(frozen=True, slots=True)
class JudgeFile:
    """What a file says of a judge, not yet made into one."""

    path: str
    kind: str
    options: Mapping[str, Any]
    lines: Mapping[Key, int]
    notes: tuple[str, ...] = ()
    """What the file of another tool says and a judge file has no place for."""

    def toml(self) -> str:
        """The judge as a file of ours, with what was left out as comments."""
        notes = "".join(f"# {' '.join(note.split())}\n" for note in self.notes)
        tables = {name: value for name, value in self.options.items() if _is_tables(value)}
        plain = {name: value for name, value in self.options.items() if name not in tables}
        lines = [f"{name} = {_toml_value(value)}\n" for name, value in {"kind": self.kind, **plain}.items()]
        for name, rows in tables.items():
            for row in rows:
                lines.append(f"\n[[{name}]]\n")
                lines += [f"{key} = {_toml_value(value)}\n" for key, value in row.items()]
        return notes + "".join(lines)

    def judge(self, **changes: Any) -> Judge | Panel:
        """The judge, with some options taken from elsewhere. Raises ConfigError that names the line."""
        try:
            return build(self.kind, {**self.options, **changes})
        except ConfigError as error:
            if re.split(r"[.\[]", error.setting, maxsplit=1)[0] in changes:
                raise
            raise error.at(f"{self.path}:{line_at(self.lines, error.setting)}") from None


def load_judge(path: str | os.PathLike[str]) -> Judge | Panel:
    """The judge that a file describes. Raises ConfigError with the file, the line and what to do."""
    return read_judge(path).judge()


def read_judge(path: str | os.PathLike[str]) -> JudgeFile:
    """What a file says of a judge; the format goes by its name: .toml, .yaml, .yml or .json."""
    text = read_text(path, setting="judge")
    table = decoded(text, path, setting="judge")
    suffix = Path(path).suffix.lower()
    is_yaml = suffix in (".yaml", ".yml")
    try:
        lines = yaml_lines(text) if is_yaml else {} if suffix == ".json" else toml_lines(text)
    except (ValueError, RecursionError) as error:  # a key that is there twice, or lists in lists in lists
        raise ConfigError(f"cannot be read: {error}", setting="judge", value=str(path)) from None
    try:
        foreign = translate(table)
    except ConfigError as error:
        raise error.at(str(path)) from None
    if foreign is not None:
        for note in foreign.notes:
            log.warning("%s: %s", path, note)
        return JudgeFile(str(path), foreign.kind, foreign.options, lines, foreign.notes)
    if not isinstance(table, dict) or not all(isinstance(name, str) for name in table):
        raise ConfigError("this is not a table of settings; start with a line like kind: rubric").at(
            f"{path}:1"
        )
    kind = table.pop("kind", "rubric")
    if kind is True and is_yaml:
        kind = "yes"  # which YAML takes for true
    return JudgeFile(str(path), kind, table, lines)


def _is_tables(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(row, dict) for row in value)


def _toml_value(value: object) -> str:
    """A value as TOML writes it; a text of several lines stays one."""
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{_toml_value(str(k))} = {_toml_value(v)}' for k, v in value.items())} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml_value, value))}]"
    if (
        isinstance(value, str)
        and "\n" in value
        and "'''" not in value
        and value.replace("\n", "").isprintable()
    ):
        return f"'''\n{value}'''"
    text = msgspec.json.encode(value).decode()  # numbers, booleans and short texts are written alike
    return text.replace("\x7f", "\\u007f")
