"""Every example runs to its end, offline, and says something."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
NEEDS_MORE = {"demo.py", "grpo.py"}
"""A model of 93 MB, or torch."""


@pytest.mark.parametrize(
    "path",
    [path for path in sorted(EXAMPLES.glob("*.py")) if path.name not in NEEDS_MORE],
    ids=lambda p: p.name,
)
def test_the_example_runs(path: Path) -> None:
    ended = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout
