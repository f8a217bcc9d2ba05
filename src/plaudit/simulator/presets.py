"""Scenarios by name: the servers a judge's client meets, ready to be simulated."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from pathlib import Path

import msgspec

from plaudit.errors import ConfigError
from plaudit.files import decoded, read_text
from plaudit.simulator.scenario import Scenario
from plaudit.value_check import reworded

_TABLES = tomllib.loads((files("plaudit.simulator") / "presets.toml").read_text(encoding="utf-8"))
DESCRIPTIONS: dict[str, str] = {name: table.pop("about") for name, table in _TABLES.items()}
"""What each preset does, in a sentence."""
PRESETS: dict[str, Scenario] = msgspec.convert(_TABLES, dict[str, Scenario])


def load_scenario(source: str | Path) -> Scenario:
    """The preset of this name, or the scenario in this .toml or .json file."""
    path = Path(source)
    if path.suffix not in (".toml", ".json"):
        return _preset(source)
    data = decoded(read_text(path, setting="scenario"), path, setting="scenario")
    try:
        return scenario_from(data)
    except ConfigError as error:
        raise error.at(str(path)) from None


def scenario_from(data: object) -> Scenario:
    """A scenario from what a TOML or JSON file holds; its `preset`, if any, says where to start from."""
    if not isinstance(data, dict):
        raise ConfigError(f"a scenario is a table of settings, not a {type(data).__name__}")
    settings = dict(data)
    preset = settings.pop("preset", None)
    if preset is not None:
        settings = msgspec.to_builtins(_preset(preset)) | settings
    try:
        return msgspec.convert(settings, Scenario)
    except msgspec.ValidationError as error:
        said, place = reworded(error)
        place = place.strip(".")
        if isinstance(own := error.__cause__, ConfigError):
            setting = f"{place}.{own.setting}".removeprefix(".")
            raise ConfigError(own.message, setting=setting, value=own.value) from None
        raise ConfigError(f"does not do: {said}", setting=place or "scenario") from None


def _preset(name: object) -> Scenario:
    if isinstance(name, str) and name in PRESETS:
        return PRESETS[name]
    names = ", ".join(PRESETS)
    raise ConfigError(
        f"is not a scenario; use a .toml or .json file, or one of {names}",
        setting="scenario",
        value=str(name),
    )
