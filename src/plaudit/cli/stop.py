"""Ctrl-C and SIGTERM as a flag: the first asks to stop and save, the second ends at once."""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType, TracebackType
from typing import Any


class Stop:
    """Handles both while its `with` block runs. `wake` is set by a signal, and by whoever has news."""

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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        if self.signal is not None:
            os._exit(128 + number)  # asked twice: whatever is being saved, the user has had enough
        self.signal = number
        self.wake.set()
