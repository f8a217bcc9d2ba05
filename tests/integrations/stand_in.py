"""Stands in for a framework that cannot be installed here: what its documentation shows of it, and no more.

Where the real package is importable, it is used instead, and the same tests run against it.
"""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType
from typing import Any


def documented(module: str, **names: Any) -> None:
    """Make `module` importable with these names, unless the framework itself is there."""
    parts = module.split(".")
    known = sys.modules.get(parts[0])
    if (importlib.util.find_spec(parts[0]) if known is None else known.__spec__) is not None:
        return
    for depth in range(1, len(parts) + 1):
        name = ".".join(parts[:depth])
        if name not in sys.modules:
            made = ModuleType(name)
            made.__path__ = []
            sys.modules[name] = made
    for name, value in names.items():
        setattr(sys.modules[module], name, value)
