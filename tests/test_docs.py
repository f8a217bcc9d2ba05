"""The pages that belong to no part: what they show is run as it stands, and every link leads somewhere."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest
from loopback import loopback

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "docs").glob("*.md"))
RUN = {
    "quickstart.md": (),
    "data.md": (),
    "from-your-own-loop.md": (),
    "cookbook.md": (),
    "pandas.md": ("pandas", "matplotlib.font_manager"),
}
"""Pages whose code runs, and the packages that it needs beside plaudit."""
SHOWN_URL = "http://localhost:8000/v1"


@pytest.mark.parametrize("name", RUN)
def test_the_code_of_a_page_runs_from_its_first_line_to_its_last(name: str, tmp_path: Path) -> None:
    for package in RUN[name]:
        pytest.importorskip(package)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / name).read_text(encoding="utf-8"), re.DOTALL)
    assert blocks
    with loopback() as judge:
        code = "\n".join(blocks).replace(SHOWN_URL, judge.url).replace('model="judge"', 'model="simulated"')
        script = tmp_path / "page.py"
        script.write_text(code, encoding="utf-8")
        done = subprocess.run(
            [sys.executable, str(script)], cwd=tmp_path, text=True, capture_output=True, timeout=60
        )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_to_a_file_leads_to_one(page: Path) -> None:
    linked = re.findall(r"\]\((?!\w+:)([^)#\s]+)", page.read_text(encoding="utf-8"))
    assert [name for name in linked if not (page.parent / name).exists()] == []


def test_every_page_is_in_the_sites_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert [page.name for page in PAGES if f"- {page.name}" not in navigation] == []


def test_every_source_file_that_the_architecture_names_is_there() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    known = [str(path.relative_to(ROOT)) for path in ROOT.glob("[bst]*/**/*.py")]
    named = sorted(set(re.findall(r"`([a-z_/]+\.py)`", text)))
    assert named
    assert [
        name for name in named if not any(path.endswith(f"/{name}") or path == name for path in known)
    ] == []


def test_every_step_of_the_walks_is_a_function_or_class_that_is_there() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    steps = re.findall(
        r"`([a-z_/]+\.py)` ((?:`(?!\w+\.py)[\w.]+`(?:, )?)+)", text.partition("## Two walks")[2]
    )
    named = [(file, name) for file, names in steps for name in re.findall(r"[\w.]+", names)]
    assert len(named) > 20
    assert [
        f"{file} {name}" for file, name in named if name not in _defined(ROOT / "src/plaudit" / file)
    ] == []


def _defined(path: Path) -> set[str]:
    """The functions and classes of a file, methods as Class.method."""
    found = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            methods = (
                child for child in node.body if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
            )
            found |= {f"{node.name}.{child.name}" for child in methods}
    return found
