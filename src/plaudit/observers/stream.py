"""A stream for messages, whose writes may fail: what cannot be said is dropped, and the run goes on."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from pathlib import Path
from typing import Any, TextIO, cast

UNWRITABLE = (OSError, ValueError)
"""A full disk, a reader that left, a closed file."""


class MessageStream(io.TextIOBase):
    """Passes text on to another stream as long as that takes it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with contextlib.suppress(*UNWRITABLE):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(*UNWRITABLE):
            self._stream.flush()

    def isatty(self) -> bool:
        try:
            return self._stream.isatty()
        except UNWRITABLE:
            return False

    def fileno(self) -> int:
        return self._stream.fileno()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def messages(stream: TextIO | None = None) -> TextIO:
    """stderr as it is now, or the stream given, as one that never raises. Closed means: to nowhere."""
    stream = stream or sys.stderr
    if isinstance(stream, MessageStream):
        return cast(TextIO, stream)
    if stream is None:
        stream = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - as long as the process runs
    return cast(TextIO, MessageStream(stream))
