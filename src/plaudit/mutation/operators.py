"""Operators: the ways a query may be rewritten, as data. The built-in ones, and users' own from a file.

    [[operators]]
    name = "formal"
    instruction = "Put it into formal language, as a textbook would."
    max_growth = 2.0

A file adds its operators to the built-in ones, or to those that its key `builtin` names.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import msgspec

from plaudit.errors import ConfigError
from plaudit.files import decoded, read_text
from plaudit.judges.content import has_words
from plaudit.judges.locator import Key, line_of, toml_lines
from plaudit.mutation.rewrite_check import USUAL, RewriteCheck
from plaudit.value_check import reworded

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,39}")


@dataclass(frozen=True, slots=True)
class Operator:
    """One way of rewriting a query: its name, its instruction to the rewriter, the check on its output."""

    name: str
    instruction: str | None
    """A sentence or a few, about "the question". None leaves the query as it is, without a call."""
    check: RewriteCheck = USUAL

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            raise ConfigError(
                "is not a valid name; use up to 40 letters, digits, - and _, "
                'and begin with a letter, like "ask_for_format"',
                setting="name",
                value=self.name,
            )
        if self.instruction is not None and not has_words(self.instruction):
            raise ConfigError(
                f"of the operator {self.name!r} is empty; say how the question is to be rewritten, "
                'like "Put it into simpler words."',
                setting="instruction",
            )

    @property
    def is_keep(self) -> bool:
        return self.instruction is None


KEEP = Operator("keep", None)


@cache
def builtin_operators() -> tuple[Operator, ...]:
    """keep, clarify, simplify, add_context, decompose and ask_for_format, in this order."""
    place = files("plaudit.mutation") / "prompts" / "operators.toml"
    return (KEEP, *_own("operators.toml", place.read_text(encoding="utf-8")).made)


def load_operators(path: str | os.PathLike[str]) -> tuple[Operator, ...]:
    """The built-in operators and those of a TOML or JSON file. ConfigError names the line or the field."""
    return _own(str(path), read_text(path, setting="operators")).with_builtin()


def check_operators(operators: Sequence[Operator]) -> tuple[Operator, ...]:
    """The operators as a tuple; ConfigError where there are none, or two of one name."""
    if not operators:
        raise ConfigError("are empty; use builtin_operators(), or your own file", setting="operators")
    seen: set[str] = set()
    for operator in operators:
        if operator.name in seen:
            raise ConfigError(f"has two named {operator.name!r}; rename one of them", setting="operators")
        seen.add(operator.name)
    return tuple(operators)


class _Entry(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    instruction: str = ""
    max_growth: float = USUAL.max_growth
    slack: int = USUAL.slack
    may_state: bool = USUAL.may_state

    def operator(self) -> Operator:
        return Operator(
            self.name,
            " ".join(self.instruction.split()),
            RewriteCheck(max_growth=self.max_growth, slack=self.slack, may_state=self.may_state),
        )


class _Table(msgspec.Struct, forbid_unknown_fields=True):
    operators: list[_Entry]
    builtin: list[str] | None = None


@dataclass(frozen=True, slots=True)
class _Own:
    """What a file says, and where it says it."""

    path: str
    made: tuple[Operator, ...]
    builtin: Sequence[str] | None
    lines: Mapping[Key, int]

    def with_builtin(self) -> tuple[Operator, ...]:
        known = {operator.name: operator for operator in builtin_operators()}
        names = known if self.builtin is None else self.builtin
        for number, name in enumerate(names):
            if name not in known:
                trouble = f"there is no built-in operator {name!r}; there are {', '.join(known)}"
                raise _complaint(self.path, self.lines, ("builtin", number), trouble)
        try:
            return check_operators((*(known[name] for name in names), *self.made))
        except ConfigError as error:
            raise ConfigError(
                f"{self.path}: {error} (`builtin` in the file lists the built-in ones to include)"
            ) from None


def _own(path: str, text: str) -> _Own:
    lines = {} if path.lower().endswith(".json") else toml_lines(text)
    try:
        found = msgspec.convert(decoded(text, path, setting="operators"), _Table)
    except msgspec.ValidationError as error:
        raise _unfit(path, lines, error) from None
    if not found.operators and not found.builtin:
        raise _complaint(path, lines, (), "it contains no operator; add an [[operators]] table")
    made = []
    for number, entry in enumerate(found.operators):
        try:
            made.append(entry.operator())
        except ConfigError as error:
            raise _complaint(path, lines, ("operators", number), str(error)) from None
    return _Own(path, tuple(made), found.builtin, lines)


def _unfit(path: str, lines: Mapping[Key, int], error: msgspec.ValidationError) -> ConfigError:
    """What is wrong with a value, with its place in front."""
    said, where = reworded(error)
    key: Key = tuple(
        int(part[1:-1]) if part.startswith("[") else part.lstrip(".")
        for part in re.findall(r"\.\w+|\[\d+\]", where)
    )
    remedy = "each [[operators]] table has name, instruction and, if wanted, max_growth, slack, may_state"
    return _complaint(path, lines, key, f"{said}; {remedy}")


def _complaint(path: str, lines: Mapping[Key, int], key: Key, trouble: str) -> ConfigError:
    if lines:
        return ConfigError(f"{path}:{line_of(lines, key)}: {trouble}")
    field = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in key).lstrip(".")
    return ConfigError(f"{path}: {field + ': ' if field else ''}{trouble}")
