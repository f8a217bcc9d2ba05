"""The advantages that frameworks compute themselves are those of the formulas on docs/frameworks.md."""

from __future__ import annotations

import importlib
import math
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.trainers

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("advantages")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["verl", "trl"])
def test_the_frameworks_own_code_gives_what_its_formula_does(benchmark: Any, name: str) -> None:
    frameworks = [one for one in benchmark.FRAMEWORKS if one.own is getattr(benchmark, name)]
    assert frameworks
    for framework in frameworks:
        rows = [None if row == 4 else value for row, value in enumerate(benchmark.REWARDS)]
        given = framework.fill(rows)
        found = framework.own(given)
        assert not any(map(math.isnan, found))
        assert found == pytest.approx(framework.formula(given), abs=1e-4)
