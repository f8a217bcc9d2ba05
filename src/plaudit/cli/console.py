"""What the command line says to people: always on stderr, so that stdout stays clean for results."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from typing import Any

import typer
from rich.console import Console
from typer.core import TyperGroup

from plaudit.errors import PlauditError

USAGE = 2
"""Exit status for bad usage or input."""


def stderr() -> Console:
    """A console on stderr as it is now: plain text unless it is a terminal."""
    return Console(file=sys.stderr, highlight=False, markup=False, soft_wrap=True)


class ConsoleHandler(logging.Handler):
    """Log lines through the console, so that they appear above a live line and not inside it."""

    def __init__(self, console: Console, reword: Callable[[str], str] = str) -> None:
        super().__init__()
        self._console = console
        self._reword = reword
        self.told: list[str] = []
        """The warnings so far."""

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.WARNING:
            if record.getMessage() in self.told:
                return
            self.told.append(record.getMessage())
        self._console.print(self._reword(f"{record.levelname.lower()}: {record.getMessage()}"))


class Commands(TyperGroup):
    """Turns what plaudit raises on purpose into one line and an exit status; bugs keep their traceback."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except PlauditError as error:
            if ctx.meta.get("debug"):
                raise
            stderr().print(f"plaudit: {error}")
            raise typer.Exit(USAGE) from None
        except KeyboardInterrupt:
            raise typer.Exit(130) from None
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # or flushing stdout fails again at exit
            raise typer.Exit(141) from None
