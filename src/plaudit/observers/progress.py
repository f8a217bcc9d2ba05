"""How far, how fast, how much in flight, what it cost: a live line on a terminal or in a notebook, and
elsewhere (Slurm, Docker, nohup) a plain line every ten seconds.

    with Progress(total=1024) as progress, Engine(url, model="m", observers=[progress]) as engine: ...

Nothing is shown in the first second; in a log, not in the first ten.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Self, TextIO

from plaudit.events import BatchStarted, CallFinished, CallStarted, Event, LimitChanged, VerdictsReady
from plaudit.observers.message_stream import MessageStream, messages
from plaudit.types import Source

WINDOW = 10.0
"""Seconds over which the rate is taken."""
STEP = 0.1
"""Seconds between two points of the rate's window: bounds its memory, not its use."""
REDRAW = 0.2
"""Seconds between two drawings of the line."""
IN_A_LOG = 10.0
"""Seconds between two lines where they stay."""
BAR = 24
"""Characters of the bar."""


class Meter:
    """What the line shows, counted from events; their own times are the clock, but where none come."""

    def __init__(self, total: int | None = None) -> None:
        self.done = 0
        self.failed = 0
        self.cached = 0
        self.cost: float | None = None
        self._total = total
        self._submitted = 0
        self._in_flight: dict[str, int] = {}
        self._limits: dict[str, int] = {}
        self._points: deque[tuple[float, int]] = deque()
        self._looked = (0.0, 0)
        """The first look at what is done now, and how much that is."""

    def __call__(self, event: Event) -> None:
        match event:
            case BatchStarted():
                self._submitted += event.samples
                self._mark(event.at)
            case VerdictsReady():
                self.done += len(event.verdicts)
                self.failed += sum(verdict.score is None for verdict in event.verdicts)
                self.cached += sum(verdict.source is Source.CACHE for verdict in event.verdicts)
                self._mark(event.at)
            case CallStarted():
                self._in_flight[event.endpoint] = event.in_flight
            case CallFinished():
                self._in_flight[event.endpoint] = event.in_flight
                if event.usage.cost is not None:
                    self.cost = (self.cost or 0.0) + event.usage.cost
            case LimitChanged():
                self._limits[event.endpoint] = event.limit
            case _:
                pass

    @property
    def total(self) -> int:
        """How many there are, as far as known."""
        return self._submitted if self._total is None else self._total

    def rate(self, quiet: float = 0.0) -> float | None:
        """Verdicts a second over the last seconds; None while there is nothing to go by.

        `quiet` is how long none has come: where that is long, the last ones came at a rate that is over.
        """
        if len(self._points) < 2:
            return None
        (first_at, first_done), (last_at, last_done) = self._points[0], self._points[-1]
        return (last_done - first_done) / (last_at - first_at + (quiet if quiet >= WINDOW else 0.0))

    def line(self, now: float = 0.0) -> str:
        """The numbers, in a fixed order, without those that say nothing yet; `now` is by any one clock."""
        parts = [f"{self.done:,}/{self.total:,}"]
        if self._looked[1] != self.done:
            self._looked = (now, self.done)
        if rate := self.rate(quiet=now - self._looked[0]):
            parts.append(f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.1f}/s")
        limit = sum(list(self._limits.values()))
        flying = sum(list(self._in_flight.values()))
        parts.append(f"in flight {flying:,}" + (f" of {limit:,}" if limit else ""))
        if self.cached:
            parts.append(f"cache {self.cached:,}")
        if self.failed:
            parts.append(f"failed {self.failed:,}")
        if self.cost is not None:
            parts.append(f"${self.cost:,.2f}" if self.cost >= 1 else f"${self.cost:.4f}")
        if rate and self.total > self.done:
            parts.append(f"{_clock((self.total - self.done) / rate)} left")
        return "  ".join(parts)

    def _mark(self, at: float) -> None:
        if self._points and at - self._points[-1][0] < STEP:
            if len(self._points) > 1:  # the first point stays: it is where the rate starts from
                self._points[-1] = (self._points[-1][0], self.done)
            return
        self._points.append((at, self.done))
        while len(self._points) > 2 and at - self._points[0][0] > WINDOW:
            self._points.popleft()


class StatusLine:
    """A line at the bottom of a terminal, drawn anew several times a second while its `with` block runs.

    In a notebook it is redrawn in place; where the stream is neither, a line is added every ten seconds.
    """

    def __init__(
        self,
        line: Callable[[], str],
        *,
        stream: TextIO | MessageStream | None = None,
        delay: float = 1.0,
        log_every: float = IN_A_LOG,
        is_shown: bool | None = True,
    ) -> None:
        """
        Args:
            line: Called for each drawing, on a thread of this object's own.
            stream: Where to draw; by default stderr, and in a notebook stdout.
            delay: Seconds before the first drawing, so that a short run shows nothing.
            log_every: Seconds between two lines where the stream is neither a terminal nor a notebook.
            is_shown: Whether anything is drawn at all; None: only on a terminal and in a notebook.
        """
        self.line = line
        self._is_notebook = stream is None and in_notebook()
        self._stream = messages(sys.stdout if self._is_notebook else stream)  # a notebook shows stderr in red
        self._delay = delay
        self._log_every = log_every
        self._is_terminal = self._stream.isatty() and os.environ.get("TERM") != "dumb"
        is_live = self._is_terminal or self._is_notebook
        self.is_shown = is_live if is_shown is None else is_shown
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._draw, name="plaudit-progress", daemon=True)

    def __enter__(self) -> Self:
        if self.is_shown:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closed.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _draw(self) -> None:
        is_live = self._is_notebook or self._is_terminal
        wait, width = self._delay if is_live else self._log_every, 0
        while not self._closed.wait(wait):
            line = self.line()
            if self._is_notebook:  # knows the carriage return, and no other command of a terminal
                self._write("\r" + line.ljust(width))
            elif self._is_terminal:
                self._stream.show_status(line[: self._stream.columns() - 1])
            else:
                self._write(f"plaudit: {line}\n")
            wait, width = REDRAW if is_live else self._log_every, len(line)
        if self._is_notebook and width:
            self._write("\r" + self.line().ljust(width) + "\n")
        elif self._is_terminal:
            self._stream.show_status("")

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


class Progress(StatusLine):
    """An observer that shows a Meter as a live line while its `with` block runs."""

    def __init__(
        self,
        *,
        total: int | None = None,
        stream: TextIO | MessageStream | None = None,
        delay: float = 1.0,
        log_every: float = IN_A_LOG,
        is_shown: bool | None = True,
    ) -> None:
        """
        Args:
            total: How many verdicts there will be; what was submitted so far where it is not known.
            stream, delay, log_every, is_shown: As for a StatusLine.
        """
        self._meter = Meter(total)
        super().__init__(self._text, stream=stream, delay=delay, log_every=log_every, is_shown=is_shown)

    def __call__(self, event: Event) -> None:
        self._meter(event)

    def _text(self) -> str:
        numbers = self._meter.line(time.monotonic())
        drawn = f"{bar(self._meter.done, self._meter.total)} {numbers}"
        return numbers if self._is_terminal and len(drawn) >= self._stream.columns() else drawn


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


def batch_progress(remaining: Callable[[], int], total: int, *, is_shown: bool | None = None) -> StatusLine:
    """The progress of one batch, by how many of its samples have no verdict yet."""
    started = time.monotonic()

    def line() -> str:
        done = total - remaining()
        rate = done / max(time.monotonic() - started, 1e-9)
        left = f"  {_clock((total - done) / rate)} left" if 0 < done < total else ""
        return f"{bar(done, total)} {done:,}/{total:,}  {rate:,.1f}/s{left}"

    return StatusLine(line, is_shown=is_shown)


def bar(done: int, total: int) -> str:
    """How far, as a drawing of fixed width."""
    filled = min(BAR, BAR * done // max(total, 1))
    return f"[{'=' * filled:{BAR}}]"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
