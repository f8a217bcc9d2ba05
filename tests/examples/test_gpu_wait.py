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


def test_each_way_gets_a_row_with_its_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    gpu_wait: Any = importlib.import_module("gpu_wait")
    options = "--size tiny --device cpu --responses 8 --group 4 --shortest 2 --longest 8 --call-seconds 0.02"
    words = [*options.split(), "--slots", "2", "8", "--repeats", "1", "--out", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["gpu_wait.py", *words])
    gpu_wait.main()
    rows = json.loads((tmp_path / "gpu_wait.json").read_text())["rows"]
    ways = [way.name for way in gpu_wait.WAYS]
    assert [row["way"] for row in rows] == [*ways, *ways[1:]]
    assert all(row["calls_per_response"] <= 1 for row in rows)
    assert all(
        0 <= wait < total for row in rows for wait, total in zip(row["waits"], row["totals"], strict=True)
    )
    slow, batched = rows[0]["waits"][0], rows[2]["waits"][0]
    assert slow > batched > 0
    page = (tmp_path / "gpu_wait.md").read_text()
    assert all(f"| {way} |" in page for way in ways)
    assert page.count("Goal with") == 4
