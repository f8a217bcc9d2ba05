"""What the site adds to the pages: those of the repository's root, and the help of every command."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click
from mkdocs.structure.files import File, Files

from plaudit.cli import app

ROOT = Path(__file__).parent.parent
PAGES = ("README.md", "ARCHITECTURE.md", "SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md")
COMMANDS = "<!-- every command -->"
_LINK = re.compile(r"\]\(([^)#\s]+)(#[^)]*)?\)")


def on_files(files: Files, config: Any) -> Files:
    """Add the root's pages, README as the first."""
    for name in PAGES:
        files.append(File.generated(config, name, content=(ROOT / name).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put the commands in, and make links fit: a file that the site has not is named, not linked."""
    if COMMANDS in markdown:
        markdown = markdown.replace(COMMANDS, _commands(app, "plaudit"))
    return _LINK.sub(_fitting, markdown)


def _fitting(found: re.Match[str]) -> str:
    target, anchor = found[1], found[2] or ""
    if "://" in target or target.startswith("mailto:"):
        return found[0]
    name = target.removeprefix("../").removeprefix("docs/")
    if name in PAGES or (ROOT / "docs" / name).is_file():
        return f"]({name}{anchor})"
    return found[0] if not target else "](#)"


def _commands(command: click.Command, path: str) -> str:
    """The help of a command and of those below it."""
    context = click.Context(command, info_name=path, max_content_width=100, terminal_width=100)
    text = f"## {path}\n\n```text\n{command.get_help(context)}\n```\n\n"
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below is not None:
                text += _commands(below, f"{path} {name}")
    return text
