"""One live line on a terminal: how far, how fast, how much in flight, what it cost.

    with Progress(total=1024) as progress, Engine(url, model="m", observers=[progress]) as engine: ...

Nothing is shown in the first second, nor where the output is not a terminal.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from types import TracebackType

from rich.console import Console, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from plaudit.events import BatchStarted, CallFinished, CallStarted, Event, LimitChanged, VerdictsReady
from plaudit.observers.stream import UNWRITABLE, messages
from plaudit.types import Source

WINDOW = 10.0
"""Seconds over which the rate is taken."""
STEP = 0.1
"""Seconds between two points of the rate's window: bounds its memory, not its use."""


class Meter:
    """What the line shows, counted from events alone; their own times are the clock."""

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

    @property
    def rate(self) -> float | None:
        """Verdicts a second over the last seconds; None while there is nothing to go by."""
        if len(self._points) < 2:
            return None
        (first_at, first_done), (last_at, last_done) = self._points[0], self._points[-1]
        return (last_done - first_done) / (last_at - first_at)

    def line(self) -> str:
        """The numbers, in a fixed order, without those that say nothing yet."""
        parts = [f"{self.done:,}/{self.total:,}"]
        if rate := self.rate:
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


class Progress:
    """An observer that shows a Meter as a live line while its `with` block runs."""

    def __init__(
        self,
        *,
        total: int | None = None,
        console: Console | None = None,
        delay: float = 1.0,
        is_shown: bool = True,
    ) -> None:
        self._console = console or Console(file=messages())
        self._is_shown = is_shown and self._console.is_terminal
        self._meter = Meter(total)
        self._live: Live | None = None
        self._lock = threading.Lock()
        self._timer = threading.Timer(delay, self._show)
        self._timer.daemon = True
        self._closed = False

    def __enter__(self) -> Progress:
        if self._is_shown:
            self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.cancel()
        with self._lock:
            self._closed = True
            if self._live:
                with contextlib.suppress(*UNWRITABLE):
                    self._live.stop()

    def __call__(self, event: Event) -> None:
        self._meter(event)

    def __rich__(self) -> RenderableType:
        grid = Table.grid(padding=(0, 1))
        bar = ProgressBar(total=max(self._meter.total, 1), completed=self._meter.done, width=24)
        grid.add_row(bar, Text(self._meter.line(), no_wrap=True, overflow="ellipsis"))
        return grid

    def _show(self) -> None:
        with self._lock:
            if self._closed:
                return
            self._live = Live(self, console=self._console, transient=True, refresh_per_second=5)
            with contextlib.suppress(
                *UNWRITABLE
            ):  # a console of the caller's, on a stream that is full or gone
                self._live.start()


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
