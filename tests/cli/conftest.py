"""A simulated judge to ask, and a clean home for the commands under test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from simulated_judge import FAST, Simulator, simulated

from plaudit.simulator import Scenario


@pytest.fixture
def simulator() -> Iterator[Simulator]:
    """A judge that answers at once."""
    with simulated(Scenario(latency=FAST)) as running:
        yield running


@pytest.fixture(autouse=True)
def clean_environment(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No variable, file or cache of the user's: a home of its own, which is also the working directory."""
    for name in (
        "OPENAI_API_KEY",
        "OPENAI_BASE_URL",
        "TRAIN_WITH_MONITOR",
        "MONITOR_CACHE",
        "PLAUDIT_API_KEY",
    ):
        monkeypatch.delenv(name, raising=False)
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PLAUDIT_HOME", str(home / "plaudit"))
    monkeypatch.chdir(home)
    return home
