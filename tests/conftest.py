"""No test reads or writes what belongs to whoever runs it: keys, proxies, settings, caches."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_MARKS = ("PLAUDIT_", "OPENAI_", "OLLAMA_")
_NAMES = ("TRAIN_WITH_MONITOR", "MONITOR_CACHE")
_HEAVY = "pytestmark = pytest.mark.trainers"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Files that need torch, verl, TRL or Ray run under `-m trainers`, and nothing else does."""
    if collection_path.suffix != ".py" or not collection_path.name.startswith("test_"):
        return None
    is_heavy = _HEAVY in collection_path.read_text(encoding="utf-8")
    return True if is_heavy != (config.getoption("markexpr") == "trainers") else None


@pytest.fixture(autouse=True)
def isolated_environment(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(_MARKS) or name.upper().endswith("_PROXY") or name in _NAMES:
            monkeypatch.delenv(name)
    home = tmp_path_factory.mktemp("plaudit-home")
    monkeypatch.setenv("PLAUDIT_HOME", str(home))
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "cache"))
