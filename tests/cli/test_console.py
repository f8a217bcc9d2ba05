"""What the command line says: words of servers and files are text, and never commands."""

from __future__ import annotations

import pytest

from plaudit.cli.console import Console, printable


def test_words_of_a_server_cannot_command_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    Console().print("model \x1b]0;owned\x07\x1b[2J\x9b31m\u202ename in\nlines")
    assert capsys.readouterr().err == "model ]0;owned[2J31mname in\nlines\n"


def test_honest_text_is_printed_as_it_is() -> None:
    text = "Grüße, 世界 🙂 — it's 100% [bold]fine[/bold]"
    assert printable(text) == text
