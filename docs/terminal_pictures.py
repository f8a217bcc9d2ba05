"""Draw what terminals of two sizes show of `plaudit score`: while it runs, and at its end."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

DOCS = Path(__file__).parent
ROWS = 900
MIDDLE = 4.0
"""Seconds after which it is looked at for the first time."""
ERASE = re.compile(r"[^\n]*\x1b\[2K")
"""What a line held before it was drawn anew."""
TYPED = ("score", "sums.csv", "-o", "scored.csv")


def shell(
    folder: Path, columns: int, rows: int, command: Sequence[str], environment: dict[str, str]
) -> tuple[str, str]:
    """What a terminal of this size has received in the middle of a command, and at its end."""
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(folder)
        os.execve(sys.executable, [sys.executable, "-m", "plaudit", *command], environment)  # noqa: S606
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    started, received, middle = time.monotonic(), b"", b""
    while True:
        if not middle and time.monotonic() - started > MIDDLE:
            middle = received
        if select.select([terminal], [], [], 0.05)[0]:
            try:
                received += os.read(terminal, 1 << 16)
            except OSError:  # the terminal is closed: the command has ended
                break
    os.waitpid(process, 0)
    return middle.decode(), received.decode()


def draw(name: str, texts: dict[str, str], columns: int, rows: int) -> None:
    """A screen as SVG: commands with what they wrote, the last lines where it does not fit."""
    with Path(os.devnull).open("w") as nowhere:
        console = Console(record=True, width=columns, height=rows, file=nowhere)
        shown = Text()
        for command, text in texts.items():
            shown.append(f"$ {command}\n", style="bold")
            shown.append(ERASE.sub("", text.replace("\r\n", "\n")).replace("\r", "").rstrip() + "\n")
        for line in shown.wrap(console, columns)[-rows:]:
            console.print(line, no_wrap=True, crop=True)
        picture = console.export_svg(title=f"{columns} x {rows}", unique_id=name)
    (DOCS / f"{name}.svg").write_text(picture, encoding="utf-8")


def main(page: Path) -> None:
    """Start a simulated judge, score a table of sums, and draw.

    Args:
        page: Where to leave the report of the scores.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sums = (f"What is {n} + {n % 7}?,{n + n % 7 + (n % 3 == 0)}\n" for n in range(ROWS))
        (folder / "sums.csv").write_text("question,answer\n" + "".join(sums))
        judge = [sys.executable, "-m", "plaudit", "simulate", "--scenario", "rejecting", "--speed", "4"]
        with subprocess.Popen([*judge, "--port", "0"], stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            found = re.search(r"http://[\d.:]+", server.stdout.readline())
            assert found is not None, "the simulator has said no address"
            environment = {**os.environ, "TERM": "xterm", "PLAUDIT_HOME": f"{folder}/home"}
            environment |= {"OPENAI_BASE_URL": f"{found[0]}/v1"}
            command = f"plaudit {' '.join(TYPED)}"
            middle, ended = shell(folder, 80, 24, TYPED, environment)
            draw("terminal-running", {command: middle}, 80, 7)
            draw("terminal-80x24", {command: ended}, 80, 24)
            report = ("report", "scored.csv")
            texts = {
                f"plaudit {' '.join(one)}": shell(folder, 120, 40, one, environment)[1]
                for one in (TYPED, report)
            }
            draw("terminal-120x40", texts, 120, 40)
            server.terminate()
        page.write_bytes((folder / "scored.html").read_bytes())
