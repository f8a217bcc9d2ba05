"""The README and the pages of docs/: every block of code is run, and every link leads somewhere."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import msgspec
import pytest
from pages import PAGES, ROOT, Block, added, blocks, name_of, programs, run

from plaudit import settings
from plaudit.cli import app
from plaudit.judges.file import load_judge
from plaudit.mutation import load_operators

NOT_RUN = {"installation.md": "needs Docker", "mutation.md": "needs the embedded model, and takes minutes"}
"""Blocks that no test runs, with the reason that their page gives above them. The fewer the better."""


@pytest.mark.parametrize("program", programs("light"), ids=name_of)
def test_the_code_of_a_page_runs_from_its_first_line_to_its_last(
    program: list[Block], tmp_path: Path
) -> None:
    run(program, tmp_path)


def test_only_these_blocks_are_not_run() -> None:
    assert {
        block.page: block.mark.removeprefix("not run: ") for block in blocks() if not block.group
    } == NOT_RUN
    assert sum(not block.group for block in blocks()) == len(NOT_RUN)


def test_every_block_says_what_it_is_and_nothing_that_looks_like_code_is_text() -> None:
    known = {"bash", "python", "diff", "toml", "yaml", "text"}
    assert [block.place for block in blocks() if block.language not in known] == []
    code = re.compile(r"(plaudit|make|pip|python3?|export|docker|curl|import|from) ")
    assert [one.place for one in blocks() if one.language == "text" and code.match(one.code)] == []
    assert [one.place for one in blocks() if one.group not in ("", "light", "trainers")] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_block_is_only_indented_since_that_says_not_what_it_is(page: Path) -> None:
    outside = re.sub(r"^ *```.*?^ *```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    lines = re.findall(r"\n\n(    .+)", outside)
    assert [line for line in lines if not line.strip().startswith(("options:", "members_order:"))] == []


@pytest.mark.parametrize(
    "block", [one for one in blocks() if one.language in ("toml", "yaml")], ids=lambda one: one.place
)
def test_every_file_on_a_page_is_what_the_page_says(
    block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"file.{block.language}"
    path.write_text(block.code, encoding="utf-8")
    if block.page == "judges.md":
        assert load_judge(path).version
    elif block.page == "command-line.md":
        (tmp_path / "rubric.md").write_text("Is it right?", encoding="utf-8")
        monkeypatch.setenv("PLAUDIT_CONFIG", str(path))
        assert settings.load({}).model == "qwen3-32b"
    elif block.page == "mutation-operators.md":
        assert [one.name for one in load_operators(path)] == ["keep", "clarify", "formal"]
    elif block.page == "verl.md":
        assert msgspec.yaml.decode(block.code)["reward"]["plaudit"]  # more in test_hydra_commands.py
    else:
        assert block.page == "frameworks.md"
        decode = tomllib.loads if block.language == "toml" else msgspec.yaml.decode
        assert decode(block.code)
        assert_paths_lead_somewhere(block.code)


@pytest.mark.parametrize(
    "block", [one for one in blocks() if one.language == "diff"], ids=lambda one: one.place
)
def test_what_a_diff_adds_is_there(block: Block) -> None:
    after = added(block.code)
    assert after.strip()
    assert_paths_lead_somewhere(after)


def assert_paths_lead_somewhere(text: str) -> None:
    """Every `plaudit.some.module.name` of the text is a module of ours with that name in it."""
    for path in re.findall(r"\bplaudit(?:\.\w+)+(?::\w+)?", text):
        parts = path.replace(":", ".").split(".")
        files = [ROOT / "src" / Path(*parts[:cut]) for cut in (len(parts), len(parts) - 1)]
        module, name = files[0].with_suffix(".py"), files[1].with_suffix(".py")
        is_there = module.is_file() or files[0].is_dir()
        assert is_there or (name.is_file() and parts[-1] in name.read_text(encoding="utf-8")), path


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_to_a_file_leads_to_one(page: Path) -> None:
    linked = re.findall(r"\]\((?!\w+:)([^)#\s]+)", page.read_text(encoding="utf-8"))
    assert [name for name in linked if not (page.parent / name).exists()] == []


def test_every_page_is_in_the_sites_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert [page.name for page in PAGES if f"- {page.name}" not in navigation] == []


FOREIGN = {
    "--strict",
    "--against",
    "--rm",
    "--build-arg",
    "--stop-timeout",
    "--base",
    "--real",
    "--steps",
    "--learn",
    "--overlap",
    "--kills",
    "--config",
    "--operator",
}
"""Options of other programs, and one that is a mistake on the page of mistakes."""


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.name != "frameworks.md"], ids=lambda page: page.name
)
def test_every_option_that_a_page_names_is_an_option_of_ours(page: Path) -> None:
    named = re.findall(r"(?<![\w-])--[a-z](?:[a-z-]*[a-z])?", page.read_text(encoding="utf-8"))
    assert set(named) - set(options_of(app)) - FOREIGN == set()


def options_of(found: click.Command) -> Iterator[str]:
    """The options of a command and of those below it."""
    context = click.Context(found)
    for parameter in found.get_params(context):
        yield from (*parameter.opts, *parameter.secondary_opts)
    if isinstance(found, click.Group):
        for name in found.list_commands(context):
            below = found.get_command(context, name)
            assert below is not None
            yield from options_of(below)


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
