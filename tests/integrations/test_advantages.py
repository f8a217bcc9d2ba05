"""What a missing verdict does to the advantages of its group, as docs/frameworks.md says."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module("advantages")


def rows_of_the_page() -> dict[str, list[str]]:
    text = (ROOT / "docs" / "frameworks.md").read_text(encoding="utf-8")
    table = text.split("| framework | rows arrive |", 1)[1].split("\n\n", 1)[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]
    return {row[0]: row for row in rows}


def test_the_page_has_every_framework_of_the_benchmark(benchmark: Any) -> None:
    assert set(rows_of_the_page()) == {framework.name for framework in benchmark.FRAMEWORKS}


def test_the_page_says_what_is_measured_whenever_the_lost_rows_fail(
    benchmark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(benchmark, "APART", 0.001)
    page = rows_of_the_page()
    for row in benchmark.lines(only_formulas=True):
        assert page[row[0]][:7] == row[:7]


@pytest.mark.parametrize("lost", [1, 4])
def test_where_a_framework_can_leave_a_row_out_it_moves_no_other(benchmark: Any, lost: int) -> None:
    masking = [one for one in benchmark.FRAMEWORKS if one.fill is benchmark.left_out]
    assert {one.name for one in masking} >= {"verl, V1 trainers", "TRL", "ART", "verifiers v1, prime-rl"}
    for framework in masking:
        found = benchmark.measure(framework, framework.fill, lost, framework.formula)
        assert found.failed == 0.0
        assert found.shift == pytest.approx(0.0, abs=1e-9)
