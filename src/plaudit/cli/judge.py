"""From --judge, --rubric and --scale to a judge.

A judge file is TOML; every key but `criteria` may be left out, and --rubric and --scale come before it:

    kind = "rubric"                      # or "yes"
    criteria = "Is the answer correct and brief?"
    scale = [0, 10]
    anchors = { "0" = "wrong", "10" = "correct, not a word too many" }
"""

from __future__ import annotations

import difflib
import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Any

import msgspec

from plaudit.errors import ConfigError
from plaudit.judges.base import Judge
from plaudit.judges.rubric import Rubric
from plaudit.judges.yes import Yes
from plaudit.settings import DEFAULT, Settings

CRITERIA = "Does the response do what the task asks? Being correct counts most, then complete, then clear."
"""What a rubric judges by where nobody says."""
KINDS: dict[str, type[Rubric] | type[Yes]] = {"rubric": Rubric, "yes": Yes}
TEXT_SUFFIXES = (".txt", ".md", ".toml", ".rst")


def judge_of(settings: Settings, *, is_embedded: bool = False) -> Judge:
    """The judge that the settings describe; an embedded model is asked for yes or no by default."""
    if settings.judge in KINDS:
        is_free = is_embedded and settings.origin("judge") == DEFAULT
        kind, options = ("yes" if is_free else settings.judge), dict[str, Any]()
    else:
        kind, options = _read(settings.judge)
    if settings.rubric:
        options["criteria"] = text_or_file(settings.rubric, "--rubric")
    if settings.scale:
        options["scale"] = settings.scale
    if kind == "rubric":
        options.setdefault("criteria", CRITERIA)
    return _build(kind, options)


def text_or_file(value: str, option: str) -> str:
    """The text itself, or what the file of that name holds."""
    path = Path(value).expanduser()
    if len(value) < 1024 and path.is_file():
        try:
            return path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{option} {value} cannot be read: {error}") from error
    if value.endswith(TEXT_SUFFIXES) and " " not in value:
        raise ConfigError(f"{option} {value}: there is no such file")
    return value


def _build(kind: str, options: dict[str, Any]) -> Judge:
    build = KINDS[kind]
    known = [item.name for item in fields(build) if item.init]
    for name in options:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(known)}"
            raise ConfigError(f"the judge {kind!r} has no {name!r}; {hint}")
    if "scale" in options:
        options["scale"] = _pair(options["scale"])
        if kind == "rubric":
            options.setdefault("integer", all(float(end).is_integer() for end in options["scale"]))
    if "anchors" in options:
        options["anchors"] = _numbered(options["anchors"])
    try:
        return build(**options)
    except TypeError as error:
        raise ConfigError(f"the judge {kind!r} cannot be made: {error}") from error


def _read(value: str) -> tuple[str, dict[str, Any]]:
    path = Path(value).expanduser()
    if not path.is_file():
        raise ConfigError(f"there is no judge and no file {value!r}; judges are {', '.join(KINDS)}")
    try:
        options = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"the judge file {value} cannot be read: {error}") from error
    kind = options.pop("kind", "rubric")
    if kind not in KINDS:
        raise ConfigError(f"{value}: there is no kind of judge {kind!r}; there are {', '.join(KINDS)}")
    return kind, options


def _pair(scale: Any) -> tuple[float, float]:
    try:
        return msgspec.convert(scale, tuple[float, float])
    except msgspec.ValidationError:
        raise ConfigError(f"scale = {scale!r} should be two numbers, like [0, 10]") from None


def _numbered(anchors: Any) -> dict[float, str]:
    """TOML's keys are text; scores are numbers."""
    try:
        return {float(score): text for score, text in anchors.items()}
    except (AttributeError, ValueError) as error:
        raise ConfigError(f'anchors = {anchors!r} should be like {{ "0" = "wrong" }}') from error
