"""What cannot be written ends no run that need not end, and the exit status tells the truth."""

from __future__ import annotations

import errno
import io
import json
import logging
import os
import resource
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import pytest
from simulated_judge import Simulator
from until import PATIENCE_S

from plaudit.cli.console import Console, ConsoleHandler
from plaudit.observers.message_stream import messages
from plaudit.observers.progress import Progress
from plaudit.types import Cause

LINES = 200
FULL = Path("/dev/full")
"""Seconds after which a command that hangs is killed; none should take two."""


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    path = tmp_path / "in.jsonl"
    rows = ({"prompt": f"What is {i} + {i}?", "response": str(2 * i)} for i in range(LINES))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def full() -> Iterator[IO[bytes]]:
    if not FULL.exists():
        pytest.skip("there is no /dev/full on macOS")
    with FULL.open("wb", buffering=0) as file:
        yield file


def score(
    lines: Path, url: str, *options: str, limit: Callable[[], None] | None = None, **streams: Any
) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-m",
        "plaudit",
        "score",
        str(lines),
        "--base-url",
        url,
        "--model",
        "simulated",
    ]
    return subprocess.run(
        [*command, *options],
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams},
        text=True,
        check=False,
        preexec_fn=limit,
    )


def file_size(limit: int) -> Callable[[], None]:
    """A disk on which no file can grow beyond so many bytes."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))


@pytest.mark.parametrize("debug", [(), ("--debug",)])
def test_messages_that_cannot_be_written_end_no_run(
    lines: Path, simulator: Simulator, full: IO[bytes], tmp_path: Path, debug: tuple[str, ...]
) -> None:
    out = tmp_path / "out.jsonl"
    assert score(lines, simulator.url, "-o", str(out), *debug, stderr=full).returncode == 0
    assert out.read_text().count('"status":"ok"') == LINES


def test_a_closed_stderr_ends_no_run_and_sends_no_message_into_another_file(
    lines: Path, simulator: Simulator, tmp_path: Path
) -> None:
    out = tmp_path / "out.jsonl"
    done = score(lines, simulator.url, "-o", str(out), limit=lambda: os.close(2), stderr=None)
    assert (done.returncode, done.stdout) == (0, "")
    assert out.read_text().count('"status":"ok"') == LINES


def test_a_reader_of_messages_that_has_left_ends_no_run(
    lines: Path, simulator: Simulator, tmp_path: Path
) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    assert score(lines, simulator.url, "-o", str(tmp_path / "out.jsonl"), stderr=writer).returncode == 0
    os.close(writer)


@pytest.mark.parametrize(
    ("options", "status"), [(("-o", "out.jsonl"), 3), (("-o", "none/out.jsonl"), 2), ((), 2)]
)
def test_the_exit_status_tells_the_truth_though_nothing_can_be_said(
    lines: Path, full: IO[bytes], options: tuple[str, ...], status: int
) -> None:
    nobody = "http://127.0.0.1:9/v1"
    assert score(lines, nobody, "--deadline", "2", *options, stderr=full).returncode == status


def test_an_output_on_a_full_disk_is_named_and_not_torn_and_the_verdicts_are_kept(
    lines: Path, simulator: Simulator, tmp_path: Path
) -> None:
    out, cache = tmp_path / "out.jsonl", ("--cache", str(tmp_path / "verdicts.sqlite"))
    out.write_text("old\n")
    # Enough for the cache, and not for the second file: it holds the carried text as well.
    long = lines.with_name("long.jsonl")
    rows = (json.loads(row) | {"carried": "x" * 10_000} for row in lines.read_text().splitlines())
    long.write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = score(long, simulator.url, "-o", str(out), *cache, limit=file_size(1_000_000))
    assert done.returncode == 2
    assert f"{out} cannot be written: File too large; make room, or name another place" in done.stderr
    assert "it resumes from the cache" in done.stderr
    assert out.read_text() == "old\n"
    assert not list(tmp_path.glob(".out*"))
    asked = simulator.server.stats.requests
    assert score(long, simulator.url, "-o", str(out), *cache).returncode == 0
    assert simulator.server.stats.requests - asked < LINES


@pytest.mark.skipif(not FULL.exists(), reason="there is none on macOS")
def test_a_summary_on_a_full_disk_costs_no_line_of_the_output(
    lines: Path, simulator: Simulator, tmp_path: Path
) -> None:
    out = tmp_path / "out.jsonl"
    done = score(lines, simulator.url, "-o", str(out), "--cache", "off", "--summary", "/dev/full")
    assert done.returncode == 2
    assert "/dev/full cannot be written: No space left on device; all else is done" in done.stderr
    assert str(out) in done.stderr and "again" not in done.stderr
    assert out.read_text().count('"status":"ok"') == LINES


def test_a_cache_on_a_full_disk_is_done_without(lines: Path, simulator: Simulator, tmp_path: Path) -> None:
    cache = str(tmp_path / "verdicts.sqlite")
    done = score(lines, simulator.url, "-o", "-", "--cache", cache, limit=file_size(45_000))
    assert done.returncode == 0
    assert done.stdout.count('"status":"ok"') == LINES
    assert "going on without the cache" in done.stderr


def test_stdout_on_a_full_disk_or_closed_is_an_error_of_its_own(
    lines: Path, simulator: Simulator, full: IO[bytes]
) -> None:
    done = score(lines, simulator.url, "-o", "-", stdout=full)
    assert done.returncode == 2
    assert "stdout cannot be written: No space left on device" in done.stderr
    done = score(lines, simulator.url, "-o", "-", limit=lambda: os.close(1), stdout=None)
    assert done.returncode == 2
    assert "--output - cannot be stdout, which is closed" in done.stderr


def test_a_closed_stdout_ends_no_run_that_writes_a_file(
    lines: Path, simulator: Simulator, tmp_path: Path
) -> None:
    out = tmp_path / "out.jsonl"
    done = score(lines, simulator.url, "-o", str(out), limit=lambda: os.close(1), stdout=None)
    assert done.returncode == 0
    assert f"{LINES} of {LINES} lines scored" in done.stderr
    assert out.read_text().count('"status":"ok"') == LINES


def test_a_closed_stdin_is_an_empty_one(lines: Path, simulator: Simulator) -> None:
    done = score(Path("-"), simulator.url, "-o", "-", limit=lambda: os.close(0))
    assert (done.returncode, done.stdout) == (0, "")
    assert "stdin has no lines: nothing to score" in done.stderr
    assert score(lines, simulator.url, "-o", "-", limit=lambda: os.close(0)).returncode == 0


def test_a_stdin_of_bad_lines_that_are_skipped_is_no_silent_success(
    lines: Path, simulator: Simulator
) -> None:
    command = [sys.executable, "-m", "plaudit", "score", "-", "-o", "-", "--skip-bad", "--base-url"]
    done = subprocess.run([*command, simulator.url], input="no\n{}\n", capture_output=True, text=True)
    assert done.returncode == 0
    assert "0 of 0 lines scored" in done.stderr
    assert "skipped   2 bad lines" in done.stderr


@pytest.mark.parametrize("command", ["--version", "--help", "simulate --list", "doctor --json"])
def test_words_for_a_full_disk_are_an_error_in_one_line(command: str, full: IO[bytes]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "plaudit", *command.split()], stdout=full, stderr=subprocess.PIPE, text=True
    )
    assert done.returncode == 2
    assert done.stderr == "plaudit: stdout cannot be written: No space left on device\n"


def test_a_progress_line_that_cannot_be_written_ends_no_run() -> None:
    tried = threading.Event()

    class Full(io.StringIO):
        def isatty(self) -> bool:
            return True

        def write(self, text: str) -> int:
            tried.set()
            raise OSError(errno.ENOSPC, f"no room for {text!r}")

    with Progress(stream=Full(), delay=0.0):
        assert tried.wait(PATIENCE_S)


@pytest.mark.skipif(not FULL.exists(), reason="there is none on macOS")
def test_a_log_line_that_cannot_be_written_is_dropped() -> None:
    handler = ConsoleHandler(Console(FULL.open("w")))
    record = logging.LogRecord("plaudit", logging.WARNING, "", 0, "trouble", None, None)
    record.plaudit_cause = Cause.UNREACHABLE
    handler.emit(record)
    assert handler.causes == {Cause.UNREACHABLE}


def test_a_log_line_that_cannot_be_worded_is_reported_and_ends_no_run(
    capsys: pytest.CaptureFixture[str],
) -> None:
    record = logging.LogRecord("plaudit", logging.WARNING, "", 0, "%d of them", ("x",), None)
    ConsoleHandler(Console(io.StringIO())).emit(record)
    assert "of them" in capsys.readouterr().err  # as logging itself reports it


def test_a_message_stream_passes_on_what_it_can(tmp_path: Path) -> None:
    with (tmp_path / "log").open("w") as file:
        stream = messages(file)
        stream.write("said")
        stream.flush()
    stream.write("too late")
    stream.flush()
    assert not stream.isatty()
    assert (tmp_path / "log").read_text() == "said"
    assert messages(stream) is stream
