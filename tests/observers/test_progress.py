"""The live line: what it counts, and when it is shown at all."""

from __future__ import annotations

import io

from rich.console import Console
from until import until

from plaudit.events import BatchStarted, CallFinished, CallStarted, LimitChanged, VerdictsReady
from plaudit.observers.progress import Meter, Progress
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
    assert meter.rate == 2.0


def test_a_burst_at_one_moment_is_counted_in_the_rate() -> None:
    meter = Meter(total=10)
    meter(BatchStarted(at=0.0, batch=1, samples=10))
    for _ in range(5):
        meter(ready(0.5, OK))
    assert meter.rate == 10.0


def terminal(*, is_terminal: bool = True) -> Console:
    return Console(file=io.StringIO(), force_terminal=is_terminal, width=100)


def shown(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_nothing_is_shown_for_a_short_run() -> None:
    console = terminal()
    with Progress(total=2, console=console) as progress:
        progress(ready(0.0, OK, OK))
    assert shown(console) == ""


def test_a_longer_run_shows_the_line_and_clears_it() -> None:
    console = terminal()
    with Progress(total=2, console=console, delay=0.0) as progress:
        progress(ready(0.0, OK))
        until(lambda: "1/2" in shown(console))
    assert "1/2" in shown(console)
    assert shown(console).endswith("\x1b[2K")


def test_nothing_is_shown_where_there_is_no_terminal() -> None:
    console = terminal(is_terminal=False)
    with Progress(total=2, console=console, delay=0.0) as progress:
        progress(ready(0.0, OK))
    assert shown(console) == ""
