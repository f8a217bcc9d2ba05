"""Observers by their import path, for front ends that can only pass text: `package.module:name`."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Sequence
from typing import cast

from plaudit.errors import ConfigError
from plaudit.events import Observer


def load_observers(paths: Sequence[str]) -> list[Observer]:
    """The observers that paths like `package.module:name` name; of a class, one made without arguments.

    ConfigError where one cannot be imported, or is not callable.
    """
    return [_load(path) for path in paths]


def _load(path: str) -> Observer:
    module, _, name = path.partition(":")
    if not module or not name:
        raise _bad(path, "is not an observer; write package.module:name")
    try:
        found = functools.reduce(getattr, name.split("."), importlib.import_module(module))
    except (ImportError, AttributeError) as error:
        how = "write package.module:name, with the module's folder in PYTHONPATH where the engine runs"
        raise _bad(path, f"cannot be imported ({error}); {how}") from error
    made = found() if isinstance(found, type) else found
    if not callable(made):
        takes = "an observer is a function that takes an event, or a class that makes one"
        raise _bad(path, f"cannot be called; {takes}")
    return cast(Observer, made)


def _bad(path: str, why: str) -> ConfigError:
    return ConfigError(why, setting="observers", value=path)
