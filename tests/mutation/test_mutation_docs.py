"""What docs/mutation.md shows in Python is run as it stands, on a simulated server, for a shorter time."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.trainers

from loopback import loopback  # noqa: E402

PAGE = Path(__file__).parent.parent.parent / "docs" / "mutation.md"


def test_the_python_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    short = "num_env_steps=32, num_processes=4, num_steps=8"
    with loopback() as server:
        code = code.replace("http://localhost:11434", server.url).replace("num_env_steps=20_000", short)
        found: dict[str, object] = {}
        exec(code.replace("llama3.2", "simulated"), found)
    assert (tmp_path / "mutator" / "report.html").exists()
    assert found["rewards"] is not None
