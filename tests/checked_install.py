"""In place of `pip install` and the like on a page: whether there are such packages and extras."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text(encoding="utf-8"))[
    "project"
]
wanted = [word for word in sys.argv[1:] if word != "install"]
assert sys.argv[1] == "install" and wanted, sys.argv
for word in wanted:
    found = re.fullmatch(r"(\.|[a-z-]+)(?:\[([a-z,]+)\])?", word)
    assert found, f"{word} is no requirement"
    if found[1] in (".", "plaudit"):
        extras = set((found[2] or "").split(",")) - {""}
        assert extras <= set(project["optional-dependencies"]), f"{word} names extras that are not there"
    else:
        assert any(found[1] in one for group in project["optional-dependencies"].values() for one in group), (
            word
        )
