"""What the command line says to people, always on stderr, and how they stop it: Ctrl-C as a flag."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Any, TextIO, cast

import click

from plaudit.errors import ConfigError
from plaudit.observers.message_stream import UNWRITABLE, MessageStream, messages
from plaudit.types import Cause

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""All but tabs and line feeds; also what turns the direction of writing."""
BARS = " ▁▂▃▄▅▆▇█"
POINTS = 60
"""Characters of a curve."""


def printable(text: str) -> str:
    """A text that may hold words of a server or a file, without what could command a terminal."""
    return _CONTROL.sub("", text)


def bars(values: Sequence[float | None], *, highest: float | None = None) -> str:
    """A curve in a line of text, no wider than a terminal."""
    known = [value or 0.0 for value in values[:: max(1, -(-len(values) // POINTS))]]
    most = highest or max([*known, 1e-9])
    return "".join(BARS[min(round(value / most * (len(BARS) - 1)), len(BARS) - 1)] for value in known)


class Console:
    """Lines on stderr as it is now, or on another stream; a live line stays below them."""

    def __init__(self, stream: TextIO | MessageStream | None = None) -> None:
        self.stream = messages(stream)

    def print(self, text: str) -> None:
        """Show a text as what it is, on a line of its own."""
        self.stream.write(printable(text) + "\n")
        self.stream.flush()


def asker(is_agreed: bool) -> Callable[[str], bool] | None:
    """How to ask for consent on the terminal; None where there is none."""
    if is_agreed:
        return lambda _: True
    if sys.stdin.isatty() and sys.stderr.isatty():
        return lambda question: click.confirm(question, err=True)
    return None


def open_standard_streams() -> None:
    """Make stderr one that never raises, and let no file of ours take the number of a closed stream.

    A closed stdin, as under cron, is an empty one.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free number: this one
    sys.stderr = cast(TextIO, messages())
    if sys.stdin is None:
        sys.stdin = open(0, closefd=False)  # noqa: SIM115 - it lasts as long as we do


def close_standard_streams() -> None:
    """Give up what the streams could not take: the interpreter would end with status 120 over it."""
    for number, stream in ((1, sys.__stdout__), (2, sys.__stderr__)):
        try:
            if stream is not None:
                stream.flush()
        except UNWRITABLE:
            os.dup2(os.open(os.devnull, os.O_WRONLY), number)


class ConsoleHandler(logging.Handler):
    """Log lines through the console; a warning is shown once."""

    def __init__(self, console: Console) -> None:
        super().__init__()
        self._console = console
        self.causes: set[Cause] = set()
        """What the warnings so far said of endpoints."""
        self._shown: set[str] = set()

    @contextlib.contextmanager
    def attached(self, level: int = logging.WARNING) -> Iterator[None]:
        """Show what plaudit logs from this level on, and let no other handler show it."""
        logger = logging.getLogger("plaudit")
        before = logger.handlers, logger.propagate, logger.level
        logger.handlers, logger.propagate = [self], False
        logger.setLevel(level)
        try:
            yield
        finally:
            logger.handlers, logger.propagate = before[:2]
            logger.setLevel(before[2])

    def emit(self, record: logging.LogRecord) -> None:
        try:
            text = record.getMessage()
            if record.levelno >= logging.WARNING:
                if text in self._shown:
                    return
                self._shown.add(text)
                if cause := getattr(record, "plaudit_cause", None):
                    self.causes.add(cause)
            if record.exc_info and logging.getLogger("plaudit").isEnabledFor(logging.DEBUG):
                text += "\n" + logging.Formatter().formatException(record.exc_info)
            self._console.print(f"{record.levelname.lower()}: {text}")
        except Exception:  # noqa: BLE001 - as handlers do: the code that logs must go on
            self.handleError(record)


def cannot_listen(host: str, port: int, error: OSError) -> ConfigError:
    """The error of a server whose port is taken, or whose address is none of this machine's."""
    is_known = (error.errno or 0) > 0  # else a name that cannot be looked up
    why = os.strerror(error.errno or 0) if is_known else error.strerror or error
    remedy = "choose another with --port, or --port 0 for any free one"
    if not is_known or error.errno == errno.EADDRNOTAVAIL:
        remedy = "give an address of this machine with --host, like 127.0.0.1"
    return ConfigError(f"cannot listen on {host} port {port}: {why}; {remedy}")


class Stop:
    """Ctrl-C and SIGTERM as a flag while its `with` block runs.

    The first asks to stop and save, the second ends at once. `wake` is set by a signal, and may be set by
    other news.
    """

    def __init__(self) -> None:
        self.signal: int | None = None
        """The signal that came, or None."""
        self.wake = threading.Event()
        self._before: dict[int, Any] = {}

    @property
    def exit_status(self) -> int:
        """What shells expect of a process that a signal ended: 130 for Ctrl-C, 143 for SIGTERM."""
        return 128 + (self.signal or 0)

    def __enter__(self) -> Stop:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        if self.signal is not None:
            os._exit(128 + number)  # asked twice: the user does not want to wait for the saving
        self.signal = number
        self.wake.set()
