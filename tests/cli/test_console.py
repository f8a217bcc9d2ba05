"""What the command line says: words of servers and files are text, and never commands."""

from __future__ import annotations

import errno
import socket
import subprocess
import sys

import pytest

from plaudit.cli.console import Console, cannot_listen, printable


def test_words_of_a_server_cannot_command_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    Console().print("model \x1b]0;owned\x07\x1b[2J\x9b31m\u202ename in\nlines")
    assert capsys.readouterr().err == "model ]0;owned[2J31mname in\nlines\n"


def test_honest_text_is_printed_as_it_is() -> None:
    text = "Grüße, 世界 🙂 — it's 100% [bold]fine[/bold]"
    assert printable(text) == text


@pytest.mark.parametrize(
    ("error", "why", "remedy"),
    [
        (OSError(errno.EADDRINUSE, "in many words"), "Address already in use", "--port"),
        (OSError(errno.EADDRNOTAVAIL, "in many words"), "Cannot assign requested address", "--host"),
        (socket.gaierror(socket.EAI_NONAME, "Name or service not known"), "Name or service", "--host"),
    ],
)
def test_a_server_that_cannot_listen_says_which_option_to_change(
    error: OSError, why: str, remedy: str
) -> None:
    said = str(cannot_listen("10.0.0.1", 8400, error))
    assert said.startswith(f"cannot listen on 10.0.0.1 port 8400: {why}")
    assert f"with {remedy}" in said


CTRL_C_WHILE_LOADING = """
import sys
import plaudit.cli

class Interrupted:
    def find_spec(self, name, *_):
        if name == "plaudit.cli.score":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupted())
sys.argv = ["plaudit", "score", "answers.jsonl"]
plaudit.cli.main()
"""


def test_ctrl_c_while_a_command_is_loaded_shows_no_traceback() -> None:
    done = subprocess.run(
        [sys.executable, "-c", CTRL_C_WHILE_LOADING], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (130, "")
