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
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import msgspec

from plaudit.errors import ConfigError
from plaudit.files import decoded, read_text
from plaudit.judges.content import has_words
from plaudit.judges.locator import line_of, toml_lines
from plaudit.mutation.rewrite_check import USUAL, RewriteCheck
from plaudit.value_check import reworded

REMEDY = "each [[operators]] table has name, instruction and, if wanted, max_growth, slack, may_state"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,39}")
_STEP = re.compile(r"\.\w+|\[\d+\]")
"""On the way to a value, as msgspec writes it: `.operators[0].name`."""


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
    return (KEEP, *_OperatorFile("operators.toml", place.read_text(encoding="utf-8")).made)


def load_operators(path: str | os.PathLike[str]) -> tuple[Operator, ...]:
    """The built-in operators and those of a TOML or JSON file. ConfigError names the line or the field."""
    return _OperatorFile(str(path), read_text(path, setting="operators")).with_builtin()


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


class _OperatorFile:
    """What a file says, and where it says it."""

    def __init__(self, path: str, text: str) -> None:
        self._path = path
        self._lines = {} if path.lower().endswith(".json") else toml_lines(text)
        try:
            table = msgspec.convert(decoded(text, path, setting="operators"), _Table)
        except msgspec.ValidationError as error:
            said, where = reworded(error)
            key = [int(part[1:-1]) if "[" in part else part[1:] for part in _STEP.findall(where)]
            raise self._complaint(key, f"{said}; {REMEDY}") from None
        if not table.operators and not table.builtin:
            raise self._complaint((), "it contains no operator; add an [[operators]] table")
        self._builtin = table.builtin
        self.made: list[Operator] = []
        for number, entry in enumerate(table.operators):
            try:
                self.made.append(entry.operator())
            except ConfigError as error:
                raise self._complaint(("operators", number), str(error)) from None

    def with_builtin(self) -> tuple[Operator, ...]:
        known = {operator.name: operator for operator in builtin_operators()}
        names = known if self._builtin is None else self._builtin
        for number, name in enumerate(names):
            if name not in known:
                trouble = f"there is no built-in operator {name!r}; there are {', '.join(known)}"
                raise self._complaint(("builtin", number), trouble)
        try:
            return check_operators((*(known[name] for name in names), *self.made))
        except ConfigError as error:
            raise ConfigError(
                f"{self._path}: {error} (`builtin` in the file lists the built-in ones to include)"
            ) from None

    def _complaint(self, key: Sequence[str | int], trouble: str) -> ConfigError:
        if self._lines:
            return ConfigError(f"{self._path}:{line_of(self._lines, tuple(key))}: {trouble}")
        field = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in key).lstrip(".")
        return ConfigError(f"{self._path}: {field + ': ' if field else ''}{trouble}")
