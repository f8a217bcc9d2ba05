"""The server process on its own: it lives as long as its stdin."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from until import PATIENCE_S, until

from plaudit.local.local_server import CHILD

pytestmark = pytest.mark.local


def start(model: Path) -> subprocess.Popen[bytes]:
    child = subprocess.Popen(
        [sys.executable, str(CHILD), str(model), "name", "1", "256", "1"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        bufsize=0,
    )
    assert child.stdin is not None
    child.stdin.write(b"key\n")
    return child


def test_it_prints_its_port_and_nothing_else_then_ends_with_stdin(tiny: Path) -> None:
    with start(tiny) as child:
        assert child.stdin is not None and child.stdout is not None
        assert 1024 <= int(child.stdout.readline()) <= 65535
        child.stdin.close()
        child.wait(timeout=PATIENCE_S)
        assert child.stdout.read() == b""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere it ends once the model is loaded")
def test_it_ends_with_stdin_even_while_it_loads(tmp_path: Path) -> None:
    endless = tmp_path / "endless.gguf"
    os.mkfifo(endless)  # a model that never finishes loading
    with start(endless) as child:
        assert child.stdin is not None
        feeder = open_once_somebody_reads(endless)
        child.stdin.close()
        assert child.wait(timeout=PATIENCE_S) == -signal.SIGIO
        os.close(feeder)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere it ends once the model is loaded")
def test_it_ends_at_once_if_stdin_closed_before_it_looked(tmp_path: Path) -> None:
    endless = tmp_path / "endless.gguf"
    os.mkfifo(endless)
    with start(endless) as child:
        assert child.stdin is not None
        child.stdin.close()
        assert child.wait(timeout=PATIENCE_S) in (0, -signal.SIGIO)


def open_once_somebody_reads(fifo: Path) -> int:
    opened: list[int] = []

    def is_open() -> bool:
        with contextlib.suppress(OSError):
            opened.append(os.open(fifo, os.O_WRONLY | os.O_NONBLOCK))
        return bool(opened)

    until(is_open)
    return opened[0]
