"""The shape of the source tree: who may import whom, how long a file may be, what the front door shows."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import plaudit

SRC = Path(plaudit.__file__).parent
ROOT = SRC.parent.parent

LAYERS = [
    {"types", "errors", "events", "config", "settings", "settings_file", "files", "child_env"},
    {"judges", "rewards", "policy"},
    {"scheduling", "caches", "transports", "observers", "simulator", "local"},
    {"engine", "blocking", "openai_manager", "pending", "session", "submits"},
    {"audit", "cli", "compute_score", "integrations", "mutation", "scoring", "service", "testing"}
    | {"__main__", "__init__"},
]
RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}
OPTIONAL = {"xllamacpp", "pyreqwest", "torch", "verl", "trl", "ray", "gymnasium", "numpy", "math_verify"}
MAY_USE_OPTIONAL = {"local", "integrations", "mutation", "transports", "rewards", "testing"}
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


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SRC)))
def test_a_layer_imports_only_from_those_below_it(path: Path) -> None:
    unit = unit_of(path)
    assert unit in RANK, f"{unit} has no place in the layers"
    for name in imports_of(path):
        parts = name.split(".")
        if parts[0] != "plaudit" or len(parts) == 1:
            continue
        other = parts[1]
        if other == unit or other not in RANK:
            continue  # its own package, or a name re-exported by the front door
        if RANK[unit] == 0 or RANK[unit] == len(LAYERS) - 1:
            assert RANK[other] <= RANK[unit], f"{path.name} imports {name}"
            continue
        is_seam = parts[2:3] == ["base"]  # a protocol that a neighbour implements
        assert RANK[other] < RANK[unit] or {unit, other} <= LAYERS[3] or is_seam, (
            f"{path.relative_to(SRC)} imports {name}: a layer imports only from those below it"
        )


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


def test_the_front_door_shows_what_it_imports() -> None:
    tree = ast.parse((SRC / "__init__.py").read_text(encoding="utf-8"))
    imported = {
        alias.asname or alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert imported == set(getattr(plaudit, "__all__", []))
    allowed = (ast.Import, ast.ImportFrom, ast.Assign, ast.Expr)
    assert all(isinstance(node, allowed) for node in tree.body)
