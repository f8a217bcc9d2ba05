"""The table of GPU waits: every way is measured, on every server, and nothing is asked for twice."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.trainers

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def gpu_wait(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module("gpu_wait")


def test_each_way_gets_a_row_with_its_wait(
    gpu_wait: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = "--size tiny --device cpu --responses 8 --group 4 --shortest 2 --longest 8 --call-seconds 0.02"
    keys = ["one", "batch", "abc", "d"]
    words = [*options.split(), "--slots", "2", "8", "--repeats", "1", "--ways", *keys, "--out", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["gpu_wait.py", *words])
    assert gpu_wait.main() == 0
    rows = json.loads((tmp_path / "gpu_wait.json").read_text())["rows"]
    ways = [way.name for way in gpu_wait.WAYS if way.key in keys]
    assert [row["way"] for row in rows] == [*ways, *ways[1:]]
    assert all(row["calls_per_response"] <= 1 for row in rows)
    assert all(0 <= row["waits"][0] < row["totals"][0] for row in rows)
    assert rows[0]["waits"][0] > rows[1]["waits"][0] > 0
    page = (tmp_path / "gpu_wait.md").read_text()
    assert all(f"| {way} |" in page for way in ways)


def test_goals_are_shares_of_the_step_and_no_wait_at_all(gpu_wait: Any) -> None:
    rows = [
        gpu_wait.Row("a+b+c", 10, (0.1, 0.2), (10.0, 10.0), 1.0),
        gpu_wait.Row("a+b+c", 64, (0.5, 0.3), (10.0, 10.0), 1.0),
        gpu_wait.Row("d: one step off-policy", 10, (0.0, 0.0001), (10.0, 10.0), 1.0),
    ]
    assert gpu_wait.goals(rows) == [
        "Goal with 10 slots: a+b+c under 2%: 1.50%, met.",
        "Goal with 64 slots: a+b+c under 2%: 4.00%, NOT MET.",
        "Goal with 10 slots: d none: 0.0001 s at most, met.",
    ]
