"""A training's state on disk, written in one step: policy, optimiser, environments and history.

Nothing in it is code: parameters are loaded as tensors only, and the rest is JSON.
"""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import msgspec
import torch

from plaudit.errors import ConfigError
from plaudit.files import write_whole
from plaudit.mutation.history import History

NAME = "checkpoint.zip"
VERSION = 1


class State(msgspec.Struct):
    """All but the parameters."""

    settings: dict[str, Any]
    """What must be the same for the training to go on."""
    steps: int
    updates: int
    episode_starts: list[bool]
    environments: list[dict[str, Any]]
    history: History
    version: int = VERSION


def save(folder: Path, state: State, parameters: dict[str, Any]) -> None:
    """Write the checkpoint; whoever kills the process finds the old one or the new one, and never half."""
    tensors = io.BytesIO()
    torch.save(parameters, tensors)
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as archive:
        archive.writestr("state.json", msgspec.json.encode(state))
        archive.writestr("parameters.pt", tensors.getvalue())
    write_whole(folder / NAME, whole.getvalue())


def load(folder: Path) -> tuple[State, dict[str, Any]]:
    """The checkpoint of a folder. ConfigError where there is none to go on from."""
    path = folder / NAME
    try:
        with zipfile.ZipFile(path) as archive:
            state = msgspec.json.decode(archive.read("state.json"), type=State)
            tensors = io.BytesIO(archive.read("parameters.pt"))
    except FileNotFoundError:
        raise ConfigError(f"there is no training to go on with in {folder}; leave out --resume") from None
    except (zipfile.BadZipFile, KeyError, msgspec.DecodeError, OSError) as error:
        raise ConfigError(
            f"{path} is no checkpoint that can be read: {error}; begin anew elsewhere"
        ) from None
    if state.version != VERSION:
        raise ConfigError(f"{path} was written by another version of plaudit; begin anew in another folder")
    parameters: dict[str, Any] = torch.load(tensors, weights_only=True, map_location="cpu")
    return state, parameters


def check_same(saved: dict[str, Any], now: dict[str, Any], folder: Path) -> None:
    """ConfigError where a setting differs from that of the training in the folder."""
    for name, value in now.items():
        if saved.get(name) != value:
            raise ConfigError(
                f"the training in {folder} has {name}={_short(saved.get(name))}, and this one "
                f"{_short(value)}; a training goes on with the settings it began with, or begins anew in "
                "another folder"
            )


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
