"""On which line of a settings file each key stands, so that a message can name it.

Tolerant: the file has already been read by a real parser, and a key that is not found has the line of the
table around it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import import_module
from typing import Any

Key = tuple[str | int, ...]
"""The way to a value: ("criteria", 1, "weight")."""

_NAME = r"""(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')"""
_DOTTED = rf"{_NAME}(?:[ \t]*\.[ \t]*{_NAME})*"
_TABLE = re.compile(rf"[ \t]*(\[\[?)[ \t]*({_DOTTED})[ \t]*\]\]?[ \t]*(?:#.*)?$")
_SETTING = re.compile(rf"[ \t]*({_DOTTED})[ \t]*=")


def line_at(lines: Mapping[Key, int], setting: str) -> int:
    """The line of a setting as an error names it, or of the nearest thing around it: names may have dots."""
    places = {
        "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in key): line
        for key, line in lines.items()
    }
    place = f".{setting}"
    while place and place not in places:
        place = place[: max(place.rfind("."), place.rfind("["))]
    return places.get(place, 1)


def toml_lines(text: str) -> dict[Key, int]:
    """The line of every table and every key of a TOML file."""
    lines: dict[Key, int] = {}
    lengths: dict[Key, int] = {}
    table: Key = ()
    quote = ""
    for number, line in enumerate(text.split("\n"), start=1):
        if quote:
            if quote in line:
                quote = ""
            continue
        if found := _TABLE.match(line.rstrip("\r")):
            table = _table(_names(found[2]), lengths, is_array=found[1] == "[[")
            lines.setdefault(tuple(part for part in table if isinstance(part, str)), number)
            lines.setdefault(table, number)
        elif found := _SETTING.match(line):
            lines.setdefault((*table, *_names(found[1])), number)
        for mark in ('"""', "'''"):
            if line.count(mark) % 2:
                quote = mark
    return lines


def yaml_lines(text: str) -> dict[Key, int]:
    """The line of every key and every item of a YAML file. Raises ValueError where a key stands twice."""
    yaml: Any = import_module("yaml")
    lines: dict[Key, int] = {}
    try:
        waiting: list[tuple[Key, Any]] = [((), yaml.compose(text, Loader=yaml.SafeLoader))]
    except yaml.YAMLError:  # what this loader does not take, the faster one may, which has read the file
        return lines
    seen = set[int]()
    while waiting:
        key, node = waiting.pop()
        if id(node) in seen:  # an alias, perhaps of something around it
            continue
        seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            for name, value in node.value:
                if (*key, name.value) in lines:
                    raise ValueError(f"line {name.start_mark.line + 1}: {name.value!r} is there twice")
                lines[*key, name.value] = name.start_mark.line + 1
                waiting.append(((*key, name.value), value))
        elif isinstance(node, yaml.SequenceNode):
            for index, item in enumerate(node.value):
                lines[*key, index] = item.start_mark.line + 1
                waiting.append(((*key, index), item))
    return lines


def _table(names: list[str], lengths: dict[Key, int], *, is_array: bool) -> Key:
    """The table that a header opens: within arrays, it belongs to the last item."""
    table: Key = ()
    for place, name in enumerate(names):
        table = (*table, name)
        if is_array and place == len(names) - 1:
            lengths[table] = lengths.get(table, 0) + 1
        if table in lengths:
            table = (*table, lengths[table] - 1)
    return table


def _names(dotted: str) -> list[str]:
    return [name.strip("\"'") for name in re.findall(_NAME, dotted)]
