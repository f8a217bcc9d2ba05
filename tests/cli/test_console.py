"""What the command line says: words of servers and files are text, and never commands."""

from __future__ import annotations

import errno
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from plaudit.cli import app
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


def test_a_working_folder_that_is_gone_is_said(tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    command = [sys.executable, "-c", "import os; os.rmdir(os.getcwd()); import plaudit.cli as c; c.main()"]
    done = subprocess.run(
        [*command, "score", "/in", "-o", "/out"], cwd=tmp_path / "gone", capture_output=True, text=True
    )
    assert done.stderr == "plaudit: the working folder does not exist any more; change to another\n"
    assert done.returncode == 2


@pytest.mark.parametrize("option", ["--cache", "--summary", "--output", "IN"])
def test_a_path_that_the_system_refuses_is_named_without_a_traceback(option: str, tmp_path: Path) -> None:
    long = tmp_path / ("x" * 300)
    (tmp_path / "in.jsonl").write_text('{"prompt": "a", "response": "b"}')
    given = {"IN": str(tmp_path / "in.jsonl"), "--output": str(tmp_path / "out"), option: str(long)}
    words = ["score", given.pop("IN"), *(word for pair in given.items() for word in pair)]
    done = CliRunner().invoke(app, [*words, "--base-url", "http://127.0.0.1:9/v1", "--model", "m"])
    assert (done.exit_code, type(done.exception)) == (2, SystemExit)
    assert f"{long} cannot be used: File name too long" in done.stderr


CTRL_C_WHILE_LOADING = """
import signal
import sys

class Interrupted:
    def find_spec(self, name, *_):
        if name == sys.argv[-1]:
            signal.raise_signal(signal.SIGINT)

sys.meta_path.insert(0, Interrupted())
from plaudit_command import main
main()
"""


@pytest.mark.parametrize(
    "module", ["plaudit", "plaudit.types", "click", "plaudit.cli.console", "plaudit.cli.score"]
)
def test_ctrl_c_while_the_command_is_still_loading_shows_no_traceback(module: str) -> None:
    command = [sys.executable, "-c", CTRL_C_WHILE_LOADING, "score", module]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
