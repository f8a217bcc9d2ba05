"""A stream for messages, whose writes may fail: what cannot be said is dropped, and the run goes on.

On a terminal its last line may be one that is redrawn in place; messages written meanwhile appear above it.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import threading
from pathlib import Path
from typing import Any, TextIO, cast

UNWRITABLE = (OSError, ValueError)
"""A full disk, a reader that left, a closed file."""
ERASE = "\r\x1b[2K"


class MessageStream(io.TextIOBase):
    """Passes text on to another stream as long as that takes it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lock = threading.RLock()  # a signal handler may write in the middle of a write
        self._has_status = False
        self._is_at_start = True

    def write(self, text: str) -> int:
        with self._lock:
            if text:
                self._pass_on(ERASE + text if self._has_status else text)
                self._has_status = False
                self._is_at_start = text.endswith("\n")
        return len(text)

    def show_status(self, line: str) -> None:
        """Draw the last line of the terminal anew; an empty one takes it away."""
        with self._lock:
            if self._is_at_start and (line or self._has_status):
                self._pass_on(ERASE + line)
                self._has_status = bool(line)
                self.flush()

    def flush(self) -> None:
        with contextlib.suppress(*UNWRITABLE):
            self._stream.flush()

    def isatty(self) -> bool:
        try:
            return self._stream.isatty()
        except UNWRITABLE:
            return False

    def columns(self) -> int:
        """How wide the terminal is; 80 where it does not say."""
        try:
            return os.get_terminal_size(self._stream.fileno()).columns or 80
        except UNWRITABLE:
            return 80

    def fileno(self) -> int:
        return self._stream.fileno()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def _pass_on(self, text: str) -> None:
        with contextlib.suppress(*UNWRITABLE):
            self._stream.write(text)


def messages(stream: TextIO | MessageStream | None = None) -> MessageStream:
    """stderr as it is now, or the stream given, as one that never raises. Closed means: to nowhere."""
    stream = stream or cast(TextIO | None, sys.stderr)
    if isinstance(stream, MessageStream):
        return stream
    if stream is None:
        stream = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - as long as the process runs
    return MessageStream(stream)
