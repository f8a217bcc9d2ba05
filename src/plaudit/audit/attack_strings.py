"""Wrong answers to harmless questions, and texts that try to lift their score: attacks.toml, by family."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib.resources import files


@dataclass(frozen=True, slots=True)
class WrongAnswer:
    """A question, a wrong answer to it and the right one."""

    prompt: str
    wrong: str
    right: str


_ALL = tomllib.loads((files("plaudit.audit") / "attacks.toml").read_text(encoding="utf-8"))
WRONG_ANSWERS = tuple(WrongAnswer(**row) for row in _ALL["wrong_answers"])
FAMILIES: dict[str, tuple[str, ...]] = {name: tuple(texts) for name, texts in _ALL["families"].items()}
CONTROL: tuple[str, ...] = tuple(_ALL["control"])
"""Additions that ask for nothing: where a judge rises as often for these, its scores are noise."""
