"""One run of `plaudit score`: check the input, find the judge, score, save, report."""

from __future__ import annotations

import contextlib
import functools
import io
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from rich.console import Console

from plaudit.cli.console import ConsoleHandler
from plaudit.cli.convene import Bench
from plaudit.cli.on_failure import OnFailure
from plaudit.cli.report import Report
from plaudit.cli.sink import FileSink, Sink, StreamSink, Unwritable, open_sink
from plaudit.cli.source import can_be_read_twice, open_source
from plaudit.cli.stop import Stop
from plaudit.cli.stream import Pending, Stream
from plaudit.cli.survey import BadLines, survey
from plaudit.cli.whole_group import WholeGroups
from plaudit.config import Endpoint
from plaudit.errors import ConfigError
from plaudit.events import BatchFinished, Event, Observer, VerdictsReady
from plaudit.judges.base import Judge, Panel, compares
from plaudit.judges.check import Demanding
from plaudit.observers.log import Log
from plaudit.observers.progress import Progress
from plaudit.observers.tally import Tally
from plaudit.settings import Settings
from plaudit.setup.json_lines import BadLine, encode
from plaudit.setup.judges import judge_of
from plaudit.types import Cause, Sample, Status, Verdict

SOME_MISSING = 3
"""Exit status where some lines have no verdict."""
TOO_LATE = Verdict(None, Status.DEADLINE, error="deadline")


class Scorer(Protocol):
    """What a run needs of the engine."""

    def submit(
        self, samples: Sequence[Sample], judge: Judge | Panel, *, deadline: float | None
    ) -> Pending: ...


OpenEngine = Callable[[tuple[Endpoint, ...], Sequence[Observer]], contextlib.AbstractContextManager[Scorer]]
Convene = Callable[[], contextlib.AbstractContextManager[Bench]]


class _Late:
    """A batch that is read after the deadline: nothing is asked for it, and nothing waits for it."""

    def __init__(self, size: int) -> None:
        self._size = size

    def done(self) -> bool:
        return True

    def result(self, timeout: float | None = None) -> list[Verdict]:  # noqa: ARG002
        return [TOO_LATE] * self._size

    def cancel(self) -> None: ...


class _BadInput(ConfigError):
    """A bad line in an input that could not be looked at beforehand."""


@dataclass(frozen=True, slots=True)
class Job:
    """What was asked for."""

    source: str
    output: str
    settings: Settings
    summary: str | None = None
    quiet: bool = False
    skip_bad: bool = False
    debug: bool = False

    def check(self) -> None:
        """Refuse what contradicts itself, before anything is read."""
        if OnFailure(self.settings.on_failure).needs_second_pass and self.output == "-":
            raise ConfigError(
                "must see every line before it can write one; name a file with -o",
                setting="on_failure",
                value=self.settings.on_failure,
            )
        if self.settings.budget is not None and self.settings.price is None:
            raise ConfigError(
                "must know what calls cost; add --price IN OUT, USD for a million tokens", setting="budget"
            )
        if self.summary is not None and Path(self.summary).resolve() == Path(self.output).resolve():
            raise ConfigError(f"--summary and -o both name {self.output}; give the summary another file")
        if self.skip_bad and Path(self.source).resolve() == Path(self.output).resolve():
            raise ConfigError("--skip-bad would delete the bad lines of the input; name another file with -o")


@dataclass(frozen=True, slots=True)
class _Ended:
    """How the scoring ended."""

    status: int
    output: str | None
    note: str = ""
    models: tuple[str, ...] = ()
    shown: frozenset[Cause] = frozenset()
    """What warnings have said meanwhile."""


class Run:
    """A job under way. The engine and whoever judges are passed in."""

    def __init__(self, job: Job, *, convene: Convene, open_engine: OpenEngine, console: Console) -> None:
        self._job = job
        self._convene = convene
        self._open_engine = open_engine
        self._console = console
        self._on_failure = OnFailure(job.settings.on_failure)
        self._bad = BadLines()
        self._tally = Tally()
        self._started = time.monotonic()

    def __call__(self) -> int:
        """Do it; the exit status. Raises ConfigError where it cannot be done."""
        self._job.check()
        judge = judge_of(self._job.settings, is_embedded=not self._job.settings.base_url)
        total = self._survey(judge)
        with self._opened(self._job.output) as sink, self._opened(self._job.summary) as summary_sink:
            ended = self._end_empty(sink) if total == 0 else self._judge(sink, total)
            seconds = time.monotonic() - self._started
            report = Report(
                self._tally.summary(seconds), self._bad.count, ended.models, ended.output, ended.status
            )
            summary_sink.write(encode(report.as_json()) + b"\n")
            summary_sink.commit()
        for line in report.as_text(already_shown=ended.shown) if report.summary.samples else []:
            self._say(line)
        if ended.note:
            self._console.print(ended.note)
        return ended.status

    def _judge(self, sink: Sink, total: int | None) -> _Ended:
        with self._logging() as shown, self._convene() as bench:
            self._say(bench.notice)
            ended = self._score(bench, sink, total)
            if trouble := bench.trouble():
                self._console.print(f"plaudit: {trouble}")
        models = tuple(dict.fromkeys(endpoint.model for endpoint in bench.endpoints))
        return replace(ended, models=models, shown=frozenset(shown))

    def _say(self, text: str) -> None:
        if text and not self._job.quiet:
            self._console.print(text)

    def _survey(self, judge: Judge | Panel) -> int | None:
        """How many lines there are to score; None where the input can be read only once."""
        if not can_be_read_twice(self._job.source):
            open_source(self._job.source).close()  # says at once what is wrong with it
            return None
        bad = BadLines()
        total = survey(self._job.source, bad, judge)
        if bad.count and not (self._job.skip_bad and total):
            remedy = "No other is left." if self._job.skip_bad else "Mend them, or go on without: --skip-bad."
            raise ConfigError(f"{self._job.source}: bad lines: {bad.count:,}\n{bad}\n{remedy}")
        return total

    def _end_empty(self, sink: Sink) -> _Ended:
        sink.commit()
        return _Ended(0, self._job.output, note=f"{self._job.source} has no lines: nothing to score")

    def _score(self, bench: Bench, sink: Sink, total: int | None) -> _Ended:
        job = self._job
        with (
            Stop() as stop,
            contextlib.closing(open_source(job.source)) as source,
            Progress(total=total, console=self._console, is_shown=not job.quiet) as progress,
        ):

            def wake(event: Event) -> None:
                if isinstance(event, BatchFinished):
                    stop.wake.set()

            with self._open_engine(bench.endpoints, [self._tally, Log(), progress, wake]) as engine:
                stream = Stream(
                    source=source,
                    sink=sink,
                    submit=functools.partial(self._submit, engine, bench.judge, progress),
                    settle=self._on_failure.settle,
                    on_bad=self._meet_bad_line,
                    wake=stop.wake,
                    should_stop=lambda: stop.signal is not None,
                    check=bench.judge.check if isinstance(bench.judge, Demanding) else None,
                    groups=WholeGroups() if compares(bench.judge) else None,
                )
                try:
                    is_complete = stream.run()
                except _BadInput as error:
                    stream.abandon()
                    raise ConfigError(f"{error}\n{self._save_partial(sink)}") from None
                if not is_complete:
                    stream.abandon()
                    return _Ended(stop.exit_status, None, note=f"stopped; {self._save_partial(sink)}")
        return self._save(sink)

    def _submit(
        self, engine: Scorer, judge: Judge | Panel, progress: Observer, samples: Sequence[Sample]
    ) -> Pending:
        deadline = self._job.settings.deadline
        if deadline is None:
            return engine.submit(samples, judge, deadline=None)
        left = self._started + deadline - time.monotonic()
        if left > 0:
            return engine.submit(samples, judge, deadline=left)
        late = _Late(len(samples))
        for observer in (self._tally, progress):
            observer(VerdictsReady(0.0, 0, tuple(late.result())))
        return late

    def _meet_bad_line(self, line: BadLine) -> None:
        self._bad.add(line)
        if not self._job.skip_bad:
            raise _BadInput(f"{self._job.source}: {line}\nMend it, or go on without such lines: --skip-bad.")

    def _save(self, sink: Sink) -> _Ended:
        failure = self._on_failure
        if failure.needs_second_pass and failure.first and isinstance(sink, FileSink):
            sink.rewrite(failure.fill_in)
        sink.commit()
        if failure.first is None:
            return _Ended(0, self._job.output)
        number, verdict = failure.first
        missing = f"line {number} has no verdict ({verdict.status}): {verdict.error or 'no reason given'}"
        note = f"plaudit: {missing}" if failure.is_raising or self._job.quiet else ""
        return _Ended(SOME_MISSING, self._job.output, note=note)

    def _save_partial(self, sink: Sink) -> str:
        """Keep what is done, and say where it is and how to go on."""
        path = sink.save_partial()
        kept = f"finished lines are in {path}" if path else "no further line was finished"
        if self._job.settings.cache == "off":
            return f"{kept}; the cache is off, so the next run starts from the beginning"
        return f"{kept}; run the same command again to go on from the cache"

    @contextlib.contextmanager
    def _logging(self) -> Iterator[set[Cause]]:
        """Warnings on the console while it runs; gives the causes that they name."""
        logger = logging.getLogger("plaudit")
        handler = ConsoleHandler(self._console)
        before = logger.level, logger.propagate
        logger.addHandler(handler)
        logger.setLevel(logging.DEBUG if self._job.debug else logging.WARNING)
        logger.propagate = False
        try:
            yield handler.causes
        finally:
            logger.removeHandler(handler)
            logger.level, logger.propagate = before

    @contextlib.contextmanager
    def _opened(self, place: str | None) -> Iterator[Sink]:
        """The output for as long as the run takes; what it holds is thrown away if the run breaks down."""
        sink = open_sink(place) if place else StreamSink(io.BytesIO())
        try:
            yield sink
        except Unwritable as error:
            sink.discard()
            if self._job.settings.cache == "off":
                raise
            raise ConfigError(
                f"{error}; it goes on from the cache, which has every verdict so far"
            ) from error
        except BaseException:
            sink.discard()
            raise
