"""SECURITY.md: every defence names the tests that hold it, and these exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
CODE = [*(ROOT / "tests").rglob("*.py"), *(ROOT / "src" / "plaudit" / "testing").rglob("*.py")]
DEFINED = {
    name
    for path in CODE
    for name in re.findall(r"^(?:async )?def (\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
}


def test_every_test_named_there_exists() -> None:
    named = set(re.findall(r"`((?:test_)?\w+(?:_\w+){3,})`", PAGE))
    assert len(named) > 40
    assert not named - DEFINED


def test_every_line_of_a_table_names_a_test() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("|") and not line.startswith("|---")]
    lines = [row for row in rows if not row.rstrip().endswith("| Test |")]
    assert lines
    for line in lines:
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        assert len(cells) == 3, line
        assert re.fullmatch(r"`\w+`(, `\w+`)*", cells[2]), line
