"""Prompt files and how they are filled: `{{name}}`, in one pass.

One pass, so that a value containing `{{rubric}}` stays what it is, and braces in a value never matter.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

_SLOT = re.compile(r"\{\{(\w+)\}\}")


@cache
def prompt_file(name: str, package: str = "plaudit.judges") -> str:
    """The text of prompts/NAME.txt in a package."""
    return (files(package) / "prompts" / f"{name}.txt").read_text(encoding="utf-8").strip()


def fill(template: str, values: Mapping[str, str]) -> str:
    """The template with every slot filled once; a slot without a value is a KeyError."""
    return _SLOT.sub(lambda slot: values[slot[1]], template)
