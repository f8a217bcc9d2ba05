"""Whether a framework computes the advantages that docs/frameworks.md names, where it is installed."""

from __future__ import annotations

import importlib
import math
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def check_own_advantages(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With one row lost and with four: the framework's own code gives what its formula does."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    benchmark: Any = importlib.import_module("advantages")
    frameworks = [one for one in benchmark.FRAMEWORKS if one.own is getattr(benchmark, name)]
    assert frameworks
    for framework in frameworks:
        for lost in ({4}, {0, 2, 4, 6}):
            rows = [None if row in lost else value for row, value in enumerate(benchmark.REWARDS)]
            given = framework.fill(rows)
            found = framework.own(given)
            assert not any(map(math.isnan, found))
            assert found == pytest.approx(framework.formula(given), abs=1e-4)
