"""What docs/frameworks.md names is there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import plaudit

SRC = Path(plaudit.__file__).parent / "integrations"
PAGE = SRC.parents[2] / "docs" / "frameworks.md"
FRAMEWORKS = {"openrlhf", "slime", "verifiers", "swift", "areal", "skyrl", "open_instruct"}
FRAMEWORKS |= {"art", "nemo_gym", "openenv", "atropos", "tinker_cookbook"}


def names_in(module: str) -> set[str]:
    """What the module defines at its top, without importing the framework that it is for."""
    names: set[str] = set()
    for node in ast.parse((SRC / f"{module}.py").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
    return names


def test_every_path_on_the_page_leads_to_something() -> None:
    text = PAGE.read_text(encoding="utf-8")
    paths = re.findall(r"plaudit\.integrations\.(\w+)[.:](\w+)", text)
    paths += re.findall(r"from plaudit\.integrations\.(\w+) import (\w+)", text)
    assert {module for module, _ in paths} >= FRAMEWORKS - {"swift", "open_instruct"}
    assert all(name in names_in(module) for module, name in paths)


def test_every_adapter_has_its_section_and_fits_on_a_page() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for module in FRAMEWORKS:
        assert f"plaudit.integrations.{module}" in text
        assert len((SRC / f"{module}.py").read_text(encoding="utf-8").splitlines()) <= 100
