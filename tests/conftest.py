"""No test reads or writes what belongs to whoever runs it: keys, proxies, settings, caches."""

from __future__ import annotations

import os

import pytest

_MARKS = ("PLAUDIT_", "OPENAI_", "OLLAMA_")
_NAMES = ("TRAIN_WITH_MONITOR", "MONITOR_CACHE")


@pytest.fixture(autouse=True)
def isolated_environment(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(_MARKS) or name.upper().endswith("_PROXY") or name in _NAMES:
            monkeypatch.delenv(name)
    home = tmp_path_factory.mktemp("plaudit-home")
    monkeypatch.setenv("PLAUDIT_HOME", str(home))
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "cache"))
