"""What the README names is there. Its code is run with that of the other pages: test_docs.py."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_file_it_names_is_there() -> None:
    linked = re.findall(r"\]\(([^)#]+)\)", README)
    assert linked
    assert [name for name in linked if not (ROOT / name).exists()] == []


def test_every_target_it_names_can_be_made() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    named = set(re.findall(r"`?make ([a-z]+)`?", README)) - {"and"}
    assert {name for name in named if not re.search(rf"^{name}:", makefile, re.MULTILINE)} == set()
