"""What the command line says to people: always on stderr, so that stdout stays clean for results."""

from __future__ import annotations

import errno
import logging
import os
import re
import shlex
import sys
from typing import Any

import typer
from rich.console import Console
from typer.core import TyperGroup

from plaudit.errors import NO_VALUE, ConfigError, PlauditError, as_argument
from plaudit.observers.stream import UNWRITABLE, messages
from plaudit.settings import NAMES
from plaudit.types import Cause

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""All but tabs and line feeds; also what turns the direction of writing."""
USAGE = 2
"""Exit status for bad usage or input."""


FLAGS = {name: f"--{name.replace('_', '-')}" for name in NAMES} | {"output": "-o"}


def printable(text: str) -> str:
    """A text that may hold words of a server or a file, without what could command a terminal."""
    return _CONTROL.sub("", text)


def as_flag(setting: str, value: object) -> str:
    """A setting as the command line has it, `--rpm 0`; what is no option of ours is as in Python."""
    if setting not in FLAGS:
        return as_argument(setting, value)
    values = value if isinstance(value, tuple | list) else (value,)
    shown = () if value is NO_VALUE else (f"{one:g}" if isinstance(one, float) else one for one in values)
    return " ".join([FLAGS[setting], *(shlex.quote(str(one)) for one in shown)])


class _Messages(Console):
    """Prints texts as what they are."""

    def print(self, *objects: Any, **options: Any) -> None:
        super().print(*(printable(one) if isinstance(one, str) else one for one in objects), **options)


def stderr() -> Console:
    """A console on stderr as it is now: plain text unless it is a terminal."""
    return _Messages(file=messages(), highlight=False, markup=False, soft_wrap=True)


def open_standard_streams() -> None:
    """Make stderr one that never raises, and let no file of ours take the number of a closed stream."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free number: this one
    sys.stderr = messages()


def close_standard_streams() -> None:
    """Give up what stderr could not take: the interpreter would end with status 120 over it."""
    stream = sys.__stderr__
    if stream is not None:
        try:
            stream.flush()
        except UNWRITABLE:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


class ConsoleHandler(logging.Handler):
    """Log lines through the console, so that they appear above a live line and not inside it."""

    def __init__(self, console: Console) -> None:
        super().__init__()
        self._console = console
        self.causes: set[Cause] = set()
        """What the warnings so far said of endpoints."""
        self._shown: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.WARNING:
            if record.getMessage() in self._shown:
                return
            self._shown.add(record.getMessage())
            if cause := getattr(record, "plaudit_cause", None):
                self.causes.add(cause)
        try:
            self._console.print(f"{record.levelname.lower()}: {record.getMessage()}")
        except Exception:  # noqa: BLE001 - as handlers do: whoever logs must go on
            self.handleError(record)


class Commands(TyperGroup):
    """Turns what plaudit raises on purpose into one line and an exit status; bugs keep their traceback."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except PlauditError as error:
            if isinstance(error, ConfigError):
                error.named(as_flag)
            if ctx.meta.get("debug"):
                raise
            stderr().print(f"plaudit: {error}")
            raise typer.Exit(USAGE) from None
        except KeyboardInterrupt:
            raise typer.Exit(130) from None
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # or flushing stdout fails again at exit
            raise typer.Exit(141) from None
        except OSError as error:
            if error.errno not in FULL or error.filename is not None:
                raise
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            stderr().print(f"plaudit: stdout cannot be written: {error.strerror}")
            raise typer.Exit(USAGE) from None
