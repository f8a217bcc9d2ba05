"""From --judge, --rubric and --scale to a judge.

--judge names a kind of judge or a file that describes one; --rubric and --scale come before the file.
"""

from __future__ import annotations

import os
from difflib import get_close_matches
from typing import Any

from plaudit.config import expanded, names_file
from plaudit.errors import ConfigError, spelling
from plaudit.files import read_text
from plaudit.judges.base import Judge, Panel
from plaudit.judges.content import has_words
from plaudit.judges.file import read_judge
from plaudit.judges.registry import build, kinds, required_by
from plaudit.settings import DEFAULT, Settings

CRITERIA = "Does the response do what the task asks? Being correct counts most, then complete, then clear."
"""What is judged by where no criteria are given."""
EMBEDDED_MIN_MASS = 0.05
"""What is asked of the small embedded model, which is for trying things out: it hardly ever reaches more."""
TEXT_SUFFIXES = (".txt", ".md", ".toml", ".rst")


def judge_of(settings: Settings, *, is_embedded: bool = False) -> Judge | Panel:
    """The judge that the settings describe.

    The embedded model is too small for rubrics: by default it judges by likelihood, and with criteria of the
    user's own it is asked for yes or no. Errors name a setting as it was written: flag, variable or key.
    """
    with spelling(settings.spelled):
        changes: dict[str, Any] = {}
        if settings.rubric:
            changes["criteria"] = text_or_file(settings.rubric, "rubric")
        if settings.scale:
            changes["scale"] = [int(end) if end.is_integer() else end for end in map(float, settings.scale)]
        if settings.judge in kinds():
            is_free = is_embedded and settings.origin("judge") == DEFAULT
            kind = ("yes" if changes else "likelihood") if is_free else settings.judge
            embedded = {"min_mass": EMBEDDED_MIN_MASS} if is_free and kind == "yes" else {}
            options = {**_defaults(kind), **embedded, **changes}
            if missing := [name for name in required_by(kind) if name not in options]:
                why = (
                    f'needs {" and ".join(missing)}, which a judge file gives; write one with kind = "{kind}"'
                )
                how = f"and name it here instead, like {kind}.toml"
                raise ConfigError(f"{why}, {how}", setting="judge", value=kind)
            return build(kind, options)
        if not names_file(settings.judge):
            near = get_close_matches(settings.judge.lower(), kinds(), n=1)
            hint = f"did you mean {near[0]}?" if near else f"judges are {', '.join(kinds())}"
            raise ConfigError(f"is neither a judge nor a file; {hint}", setting="judge", value=settings.judge)
        described = read_judge(settings.judge)
        is_empty = not (described.options or described.lines)  # most likely no judge file
        if not is_empty and "criteria" not in described.options:
            changes = {**_defaults(described.kind), **changes}
        return described.judge(**changes)


def _defaults(kind: str) -> dict[str, Any]:
    return {"criteria": CRITERIA} if kind in ("rubric", "group", "expected", "pairwise") else {}


def text_or_file(value: str, setting: str) -> str:
    """The text itself, or what the file of that name holds."""
    is_file = names_file(value)
    if os.path.isdir(expanded(value)):  # noqa: PTH112 - Path.is_dir raises for long texts
        raise ConfigError(
            "is a folder; name a file in it, or write the text itself", setting=setting, value=value
        )
    if not is_file and value.endswith(TEXT_SUFFIXES) and " " not in value:
        raise ConfigError("does not exist; check the path", setting=setting, value=value)
    text = read_text(value, setting=setting) if is_file else value
    if not has_words(text):
        what = "is an empty file; write into it" if is_file else "contains no words; write"
        raise ConfigError(f"{what} what makes a response good", setting=setting, value=value)
    return text
