"""The shape of the source tree: who may import whom, how long a file may be, what the front door shows."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import plaudit
from plaudit import judges

SRC = Path(plaudit.__file__).parent
ROOT = SRC.parent.parent

LAYERS = [
    {
        "types",
        "errors",
        "events",
        "config",
        "settings",
        "settings_file",
        "files",
        "install_command",
        "child_env",
        "reasoning",
        "rows",
        "turns",
        "value_check",
    },
    {"judges", "rewards", "policy"},
    {"scheduling", "caches", "journal", "transports", "observers", "report", "simulator", "local"},
    {"engine", "openai_manager", "pending", "_loop_thread", "_session"},
    {"setup"},
    {"scoring", "page"},
    {"audit", "compute_score", "integrations", "mutation", "service"},
    {"cli", "testing"},
    {"__main__", "__init__"},
]
MAY_MEET = LAYERS[0] | LAYERS[3]
"""Modules of these layers may import their neighbours: each such layer is one thing in several files."""
RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}
OPTIONAL = {"xllamacpp", "pyreqwest", "torch", "verl", "trl", "ray", "gymnasium", "numpy", "math_verify"}
MAY_USE_OPTIONAL = {
    "journal",
    "local",
    "page",
    "integrations",
    "mutation",
    "transports",
    "rewards",
}
PURE_FORBIDDEN = {"asyncio", "time", "random", "threading", "socket", "aiohttp", "os", "datetime"}
MAX_LINES = 600

FILES = sorted(SRC.rglob("*.py"))


def unit_of(path: Path) -> str:
    return path.relative_to(SRC).parts[0].removesuffix(".py")


def imports_of(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: write imports in full"
            yield node.module or ""
            if node.module == "plaudit":
                yield from (f"plaudit.{alias.name}" for alias in node.names)


def plaudit_units(path: Path) -> Iterator[tuple[str, str]]:
    """The modules and packages of ours that a file imports: as written, and the unit it belongs to."""
    for name in imports_of(path):
        parts = name.split(".")
        if parts[0] == "plaudit" and len(parts) > 1 and parts[1] in RANK:  # others: names of the front door
            yield name, parts[1]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SRC)))
def test_a_layer_imports_only_from_those_below_it(path: Path) -> None:
    unit = unit_of(path)
    assert unit in RANK, f"{unit} has no place in the layers"
    for name, other in plaudit_units(path):
        is_seam = name.split(".")[2:3] == ["base"]  # a protocol that a neighbour implements
        is_allowed = other == unit or {unit, other} <= MAY_MEET or is_seam
        assert RANK[other] < RANK[unit] or (is_allowed and RANK[other] == RANK[unit]), (
            f"{path.relative_to(SRC)} imports {name}: a layer imports only from those below it"
        )


def test_the_architecture_shows_these_layers() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    table = page.partition("| layer |")[2].partition("\n\n")[0].splitlines()[2:]
    shown = [set(re.findall(r"`([a-z_]+)`", row.split("|")[1])) for row in table]
    assert shown[::-1] == LAYERS[:-1]


def printed_by(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def loaded_by(code: str) -> list[str]:
    """The modules of a fresh interpreter after it has run some code."""
    return printed_by(f"{code}\nimport sys\nprint(*sys.modules)").split()


@pytest.mark.parametrize("module", ["plaudit", "plaudit.integrations.verl", "plaudit.integrations.trl"])
def test_a_worker_loads_nothing_of_the_command_line(module: str) -> None:
    loaded = set(loaded_by(f"import {module}"))
    assert not loaded & {"typer", "click", "rich", "plaudit.cli", "plaudit.simulator"}


@pytest.mark.parametrize("path", sorted((SRC / "policy").rglob("*.py")), ids=lambda path: path.name)
def test_core_has_no_clock_no_chance_and_no_io(path: Path) -> None:
    used = {name.split(".")[0] for name in imports_of(path)}
    assert not used & PURE_FORBIDDEN


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SRC)))
def test_optional_packages_stay_in_the_leaves(path: Path) -> None:
    used = {name.split(".")[0] for name in imports_of(path)}
    assert not used & OPTIONAL or unit_of(path) in MAY_USE_OPTIONAL


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SRC)))
def test_a_file_is_one_concept_and_says_so(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count("\n") <= MAX_LINES, "split it: one concept per file"
    assert ast.get_docstring(ast.parse(text)), "the first line of a module says what it is"
    assert path.stem not in {"utils", "helpers", "common", "manager"}


def test_the_front_door_imports_what_it_shows() -> None:
    tree = ast.parse((SRC / "__init__.py").read_text(encoding="utf-8"))
    typed = {
        alias.name: node.module
        for block in tree.body
        if isinstance(block, ast.If)  # under TYPE_CHECKING: what editors and type checkers see
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    eager = {
        "acompute_score",
        "compute_score",
    }  # a module of this name would hide a function that comes later
    assert {name: module for name, module in plaudit._HOME.items() if name not in eager} == typed
    assert sorted(plaudit.__all__) == sorted({*typed, *eager})
    assert all(getattr(plaudit, name) is not None for name in plaudit.__all__)
    assert set(plaudit.__all__) <= set(dir(plaudit))
    with pytest.raises(AttributeError, match="nothing_of_ours"):
        _ = plaudit.nothing_of_ours


PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "examples").glob("*.py")),
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_and_examples_show_public_names_only(page: Path) -> None:
    """Public is what the front door shows, and what a package lists in `__all__`; integrations are pages."""
    text = page.read_text(encoding="utf-8")
    for module, names in re.findall(r"^\s*from (plaudit[\w.]*) import \(?([\w, \n]+)", text, re.MULTILINE):
        if module.startswith("plaudit.integrations"):
            continue
        shown = importlib.import_module(module)
        wanted = {name.split()[0] for name in names.replace("\n", " ").split(",") if name.strip()}
        missing = wanted - set(getattr(shown, "__all__", ()))
        assert not missing, f"{module} does not export {', '.join(sorted(missing))}"


def test_importing_plaudit_loads_almost_nothing() -> None:
    loaded = set(loaded_by("import plaudit"))
    assert not loaded & {"aiohttp", "asyncio", "msgspec", "numpy", "sqlite3", "uvloop", "plaudit.engine"}


def test_the_function_compute_score_is_not_hidden_by_its_module() -> None:
    look = "import plaudit.compute_score\nfrom plaudit import compute_score\nprint(callable(compute_score))"
    assert "True" in printed_by(look)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SRC)))
def test_callers_go_by_what_a_judge_says_and_not_by_its_class(path: Path) -> None:
    if unit_of(path) == "judges":
        return
    concrete = {name for name in judges.__all__ if isinstance(getattr(judges, name), type)}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance":
            asked = {inner.id for inner in ast.walk(node.args[1]) if isinstance(inner, ast.Name)}
            assert not asked & concrete, f"{path.name}:{node.lineno}: {ast.unparse(node)}"
