"""Operators: the ways a query may be rewritten, as data. The built-in ones, and users' own from a file.

A file adds its operators to the built-in ones, or to those that its key `builtin` names.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files

import msgspec

from plaudit.errors import ConfigError
from plaudit.files import decoded, read_text
from plaudit.judges.content import has_words
from plaudit.judges.locator import line_at, toml_lines
from plaudit.mutation.rewrite_check import USUAL, RewriteCheck
from plaudit.value_check import reworded

REMEDY = "each [[operators]] table has name, instruction and, if wanted, max_growth, slack, may_state"
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


@functools.cache
def builtin_operators() -> tuple[Operator, ...]:
    """keep, clarify, simplify, add_context, decompose and ask_for_format, in this order."""
    place = files("plaudit.mutation") / "prompts" / "operators.toml"
    table = msgspec.toml.decode(place.read_text(encoding="utf-8"), type=_Table)
    return (KEEP, *(entry.operator() for entry in table.operators))


def load_operators(path: str | os.PathLike[str]) -> tuple[Operator, ...]:
    """The built-in operators and those of a TOML or JSON file. ConfigError names the line or the field."""
    path, text = str(path), read_text(path, setting="operators")
    complaint = functools.partial(_complaint, path, text)
    try:
        table = msgspec.convert(decoded(text, path, setting="operators"), _Table)
    except msgspec.ValidationError as error:
        said, where = reworded(error)
        raise complaint(where.removeprefix("."), f"{said}; {REMEDY}") from None
    if not table.operators and not table.builtin:
        raise complaint("", "it contains no operator; add an [[operators]] table")
    known = {operator.name: operator for operator in builtin_operators()}
    for number, name in enumerate(table.builtin or ()):
        if name not in known:
            trouble = f"there is no built-in operator {name!r}; there are {', '.join(known)}"
            raise complaint(f"builtin[{number}]", trouble)
    found = [known[name] for name in (known if table.builtin is None else table.builtin)]
    for number, entry in enumerate(table.operators):
        try:
            found.append(entry.operator())
        except ConfigError as error:
            raise complaint(f"operators[{number}]", str(error)) from None
    try:
        return check_operators(found)
    except ConfigError as error:
        raise ConfigError(
            f"{path}: {error} (`builtin` in the file lists the built-in ones to include)"
        ) from None


def check_operators(operators: Sequence[Operator]) -> tuple[Operator, ...]:
    """The operators as a tuple; ConfigError where there are none, or two of one name."""
    if not operators:
        raise ConfigError("are empty; use builtin_operators(), or your own file", setting="operators")
    check_kinds(operators)
    seen: set[str] = set()
    for operator in operators:
        if operator.name in seen:
            raise ConfigError(f"has two named {operator.name!r}; rename one of them", setting="operators")
        seen.add(operator.name)
    return tuple(operators)


def check_kinds(operators: Sequence[Operator]) -> None:
    """Raise ConfigError where one is no operator, but its name perhaps."""
    for number, one in enumerate(operators):
        if not isinstance(one, Operator):
            raise ConfigError(
                "is not an Operator; take one of builtin_operators(), or make your own",
                setting=f"operators[{number}]",
                value=one,
            )


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
    operators: list[_Entry] = []
    builtin: list[str] | None = None


def _complaint(path: str, text: str, place: str, trouble: str) -> ConfigError:
    """What is wrong with a file, and where: on which line of TOML, in which field of JSON."""
    if lines := {} if path.lower().endswith(".json") else toml_lines(text):
        return ConfigError(f"{path}:{line_at(lines, place)}: {trouble}")
    return ConfigError(f"{path}: {place + ': ' if place else ''}{trouble}")
