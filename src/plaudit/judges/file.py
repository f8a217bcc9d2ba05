"""Judges from files: TOML or YAML, with messages that name the line and the remedy.

    kind = "rubric"
    criteria = "Is the answer correct and brief?"
    scale = [0, 10]
    anchors = { "0" = "wrong", "10" = "correct, not a word too many" }

The keys are the arguments of the judge in Python. A table with a `kind` of its own is a judge within a judge.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec

from plaudit.errors import ConfigError
from plaudit.judges.base import Judge, Panel
from plaudit.judges.locator import Key, line_of, toml_lines, yaml_lines
from plaudit.judges.registry import BadOption, build


@dataclass(frozen=True, slots=True)
class JudgeFile:
    """What a file says of a judge, not yet made into one."""

    path: str
    kind: str
    options: Mapping[str, Any]
    lines: Mapping[Key, int]

    def judge(self, **changes: Any) -> Judge | Panel:
        """The judge, with some options taken from elsewhere. Raises ConfigError that names the line."""
        try:
            return build(self.kind, {**self.options, **changes})
        except BadOption as error:
            if error.key[:1] and error.key[0] in changes:
                raise
            raise error.at(f"{self.path}:{line_of(self.lines, error.key)}") from None


def load_judge(path: str | os.PathLike[str]) -> Judge | Panel:
    """The judge that a file describes. Raises ConfigError with the file, the line and what to do."""
    return read_judge(path).judge()


def read_judge(path: str | os.PathLike[str]) -> JudgeFile:
    """What a file says of a judge; the format goes by its name: .toml, .yaml or .yml."""
    place = Path(path).expanduser()
    try:
        text = place.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot be read: {error}", setting="judge", value=str(path)) from None
    is_yaml = place.suffix.lower() in (".yaml", ".yml")
    table, lines = _yaml(str(path), text) if is_yaml else _toml(str(path), text)
    if not isinstance(table, dict) or not all(isinstance(name, str) for name in table):
        raise ConfigError("this is no table of settings; begin with a line like kind: rubric").at(f"{path}:1")
    kind = table.pop("kind", "rubric")
    if kind is True and is_yaml:
        kind = "yes"  # which YAML takes for true
    return JudgeFile(str(path), kind, table, lines)


def _toml(path: str, text: str) -> tuple[Any, dict[Key, int]]:
    try:
        return tomllib.loads(text), toml_lines(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(
            f"cannot be read as TOML: {error}; text stands in quotation marks", setting="judge", value=path
        ) from None


def _yaml(path: str, text: str) -> tuple[Any, dict[Key, int]]:
    if find_spec("yaml") is None:
        raise ConfigError(
            "is YAML, which needs PyYAML; pip install plaudit[yaml], or write it as TOML",
            setting="judge",
            value=path,
        )
    try:
        return msgspec.yaml.decode(text), yaml_lines(text)
    except (msgspec.DecodeError, ValueError) as error:
        raise ConfigError(f"cannot be read as YAML: {error}", setting="judge", value=path) from None
