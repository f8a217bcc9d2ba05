"""The live line: what it counts, and when it is shown at all."""

from __future__ import annotations

import io
import sys
import types

import pytest
from until import until

from plaudit.events import BatchStarted, CallFinished, CallStarted, LimitChanged, VerdictsReady
from plaudit.observers.message_stream import ERASE, messages
from plaudit.observers.progress import Meter, Progress, StatusLine, bar, batch_progress, in_notebook
from plaudit.types import Source, Status, Usage, Verdict

OK = Verdict(score=1.0, status=Status.OK)
CACHED = Verdict(score=1.0, status=Status.OK, source=Source.CACHE)
FAILED = Verdict(score=None, status=Status.FAILED)


def ready(at: float, *verdicts: Verdict) -> VerdictsReady:
    return VerdictsReady(at=at, batch=1, verdicts=verdicts)


def test_the_line_has_done_rate_in_flight_limit_cache_failures_cost_and_time_left() -> None:
    meter = Meter(total=1000)
    meter(BatchStarted(at=0.0, batch=1, samples=200))
    meter(LimitChanged(at=0.0, endpoint="a", limit=32, cause="start"))
    meter(LimitChanged(at=0.0, endpoint="b", limit=8, cause="start"))
    meter(CallStarted(at=0.0, endpoint="a", in_flight=20))
    meter(CallStarted(at=0.0, endpoint="b", in_flight=3))
    meter(
        CallFinished(
            at=1.0, endpoint="a", in_flight=19, outcome="ok", latency_s=1.0, usage=Usage(cost=0.0125)
        )
    )
    meter(ready(1.0, *[OK] * 10))
    meter(ready(2.0, *[OK] * 5, *[CACHED] * 4, FAILED))
    expected = "20/1,000  10/s  in flight 22 of 40  cache 4  failed 1  $0.0125  1:38 left"
    assert meter.line() == expected


def test_without_a_total_it_counts_what_was_submitted() -> None:
    meter = Meter()
    meter(BatchStarted(at=0.0, batch=1, samples=5))
    meter(BatchStarted(at=0.0, batch=2, samples=5))
    meter(ready(0.0, OK))
    assert meter.line() == "1/10  in flight 0"


def test_the_rate_is_that_of_the_last_seconds() -> None:
    meter = Meter(total=10_000)
    meter(BatchStarted(at=0.0, batch=1, samples=10_000))
    for second in range(1, 101):
        meter(ready(float(second), *[OK] * (100 if second <= 50 else 2)))
    assert meter.rate() == 2.0


def test_a_burst_at_one_moment_is_counted_in_the_rate() -> None:
    meter = Meter(total=10)
    meter(BatchStarted(at=0.0, batch=1, samples=10))
    for _ in range(5):
        meter(ready(0.5, OK))
    assert meter.rate() == 10.0


def test_the_time_left_grows_while_nothing_comes() -> None:
    meter = Meter(total=30)
    meter(BatchStarted(at=0.0, batch=1, samples=30))
    meter(ready(1.0, *[OK] * 10))
    assert meter.line(now=500.0) == "10/30  10/s  in flight 0  0:02 left"
    assert meter.line(now=505.0) == "10/30  10/s  in flight 0  0:02 left"
    assert meter.line(now=539.0) == "10/30  0.2/s  in flight 0  1:20 left"
    meter(ready(41.0, *[OK] * 10))
    assert meter.line(now=540.0).endswith("0:40 left")


class Terminal(io.StringIO):
    def __init__(self, *, is_terminal: bool = True) -> None:
        super().__init__()
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal


def test_nothing_is_shown_for_a_short_run() -> None:
    terminal = Terminal()
    with Progress(total=2, stream=terminal) as progress:
        progress(ready(0.0, OK, OK))
    assert terminal.getvalue() == ""


def test_a_longer_run_shows_the_line_and_clears_it() -> None:
    terminal = Terminal()
    with Progress(total=2, stream=terminal, delay=0.0) as progress:
        progress(ready(0.0, OK))
        until(lambda: "1/2" in terminal.getvalue())
    assert terminal.getvalue().endswith(ERASE)


def test_a_line_is_cut_to_the_width_of_the_terminal() -> None:
    terminal = Terminal()
    with StatusLine(lambda: "x" * 200, stream=terminal, delay=0.0):
        until(lambda: "x" in terminal.getvalue())
    assert terminal.getvalue().startswith(ERASE + "x" * 79 + ERASE)


def test_a_terminal_too_narrow_for_the_bar_shows_the_numbers() -> None:
    terminal = Terminal()
    with Progress(total=10**30, stream=terminal, delay=0.0) as progress:
        progress(ready(0.0, OK))
        until(lambda: "1/1,000" in terminal.getvalue())
    assert "[" not in terminal.getvalue().replace(ERASE, "")


def test_a_message_stands_above_the_line_and_not_inside_it() -> None:
    terminal = Terminal()
    stream = messages(terminal)
    stream.show_status("1/2")
    stream.write("warning: slow")
    stream.show_status("2/2")  # in the middle of a message: not now
    stream.write("\n")
    stream.show_status("2/2")
    assert terminal.getvalue() == f"{ERASE}1/2{ERASE}warning: slow\n{ERASE}2/2"


def test_a_log_gets_whole_lines_now_and_then() -> None:
    log = Terminal(is_terminal=False)
    with Progress(total=2, stream=log, delay=0.0, log_every=0.001) as progress:
        progress(ready(0.0, OK))
        until(lambda: log.getvalue().count("1/2") >= 2)
    lines = log.getvalue().splitlines()
    assert all("/2" in line for line in lines)
    assert sum("1/2" in line for line in lines) >= 2
    assert "\r" not in log.getvalue()


def test_a_log_gets_nothing_in_the_first_ten_seconds() -> None:
    log = Terminal(is_terminal=False)
    with Progress(total=2, stream=log, delay=0.0) as progress:
        progress(ready(0.0, OK))
    assert log.getvalue() == ""


@pytest.mark.parametrize(
    ("is_terminal", "is_shown", "expected"),
    [
        (True, None, True),
        (False, None, False),
        (False, True, True),
        (True, False, False),
    ],
)
def test_unless_asked_for_only_terminals_show_it(
    is_terminal: bool, is_shown: bool | None, expected: bool
) -> None:
    line = StatusLine(lambda: "x", stream=Terminal(is_terminal=is_terminal), is_shown=is_shown)
    assert line.is_shown is expected


def test_a_notebook_redraws_one_line_and_keeps_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    output = Terminal(is_terminal=False)
    kernel = types.SimpleNamespace(get_ipython=lambda: types.SimpleNamespace(kernel=True))
    monkeypatch.setitem(sys.modules, "IPython", kernel)
    monkeypatch.setattr(sys, "stdout", output)
    done = iter(["3/10", "9/10", *["10/10"] * 100])
    with StatusLine(lambda: next(done), delay=0.0):
        until(lambda: "10/10" in output.getvalue())
    assert output.getvalue().startswith("\r3/10\r9/10\r10/10")
    assert output.getvalue().endswith("10/10\n")
    assert "\x1b" not in output.getvalue()


def test_a_program_that_has_only_imported_jupyter_is_no_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ipykernel", types.ModuleType("ipykernel"))
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: None))
    assert not in_notebook()


def test_the_progress_of_a_batch_counts_what_is_done() -> None:
    log = Terminal(is_terminal=False)
    shown = batch_progress(lambda: 3, 10, is_shown=True)
    assert shown.is_shown
    assert "7/10" in shown.line()
    assert log.getvalue() == ""


def test_the_bar_fills_up_and_never_runs_over() -> None:
    assert [bar(done, 4).count("=") for done in (0, 1, 4, 9)] == [0, 6, 24, 24]
