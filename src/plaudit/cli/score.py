"""`plaudit score`: a verdict for every line of a file."""

from __future__ import annotations

import contextlib
import functools
import io
import logging
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from plaudit.cli.console import Console, ConsoleHandler, Stop, asker
from plaudit.cli.input import BadLines, RowSource, WholeGroups, can_be_read_twice, check_input, open_source
from plaudit.cli.options import JOURNAL, JUDGE, LIMITS, REQUESTS, Given, Running, argument, command
from plaudit.cli.output import FileSink, Sink, StreamSink, Unwritable, open_sink, real_path
from plaudit.cli.run_summary import RunSummary
from plaudit.cli.stream import OnFailure, PendingBatch, Stream
from plaudit.config import Endpoint, expanded, names_file
from plaudit.errors import ConfigError
from plaudit.events import BatchFinished, Event, Observer, VerdictsReady
from plaudit.judges.base import Judge, Panel, compares
from plaudit.judges.check import Demanding, check_judge
from plaudit.judges.fence import MAX_CHARS, is_cut
from plaudit.observers.log import Log
from plaudit.observers.progress import Progress
from plaudit.observers.tally import Tally
from plaudit.rows import RowReader
from plaudit.settings import REQUIRED, Settings, load, option
from plaudit.setup.engines import ReadyEndpoints, check_cache, check_journal, engine_for, open_endpoints
from plaudit.setup.json_lines import BadLine, Line, encode
from plaudit.setup.judges import judge_of
from plaudit.setup.tables import Format, describe_folder, file_in_folder, format_of, writer
from plaudit.types import Sample, Source, Status, Verdict

SOME_MISSING = 3
"""Exit status where some lines have no verdict."""
EXCERPT = 200
"""Characters kept of a response that may be shown as an example."""


IN_USE = {
    "cache": "the cache",
    "journal": "the journal",
    "rubric": "the rubric",
    "judge": "the judge",
    "local_model": "the model",
}
"""Settings that may name a file, and what it is to the run."""


def _field_option(name: str) -> Any:
    text = f"Field that holds the {name} (default: recognised by its name)."
    return option(None, text, "Input", "NAME")


@dataclass(frozen=True, kw_only=True)
class ScoreOptions(Running):
    source: str = argument("IN", "File (.jsonl, .json, .csv, .parquet, also gzipped) or folder; - for stdin.")
    output: str = option(REQUIRED, "File to write; - for stdout.", metavar="OUT", flags=("-o", "--output"))
    summary: str | None = option(None, "Write a summary of the run to this file.", "Output", "FILE.json")
    skip_bad: bool = option(False, "Skip lines that cannot be scored.", "Output")
    prompt_field: str | None = _field_option("prompt")
    response_field: str | None = _field_option("response")
    reference_field: str | None = _field_option("reference")
    group_field: str | None = _field_option("group")

    @property
    def fields(self) -> dict[str, str | None]:
        return {name: getattr(self, f"{name}_field") for name in ("prompt", "response", "reference", "group")}

    @property
    def output_place(self) -> str:
        """The file to write: in a folder where the input is one and the name has no ending."""
        if self.output == "-" or Path(self.output).suffix or not expanded(self.source).is_dir():
            return self.output
        return str(Path(self.output) / file_in_folder(self.source))

    @property
    def source_format(self) -> Format:
        return "jsonl" if self.source == "-" else format_of(self.source)

    def check(self, settings: Settings) -> None:
        """Refuse what contradicts itself, before anything is read."""
        output = real_path(self.output)
        source = None if self.source == "-" else real_path(self.source)
        if OnFailure(settings.on_failure).needs_second_pass and self.output == "-":
            why = "needs all lines before it can write the first; name a file with -o"
            raise ConfigError(why, setting="on_failure", value=settings.on_failure)
        if settings.budget is not None and settings.price is None:
            why = "needs to know what calls cost; add --price IN OUT, USD per million tokens"
            raise ConfigError(why, setting="budget")
        if self.summary is not None and real_path(self.summary) in (output, source):
            raise ConfigError(f"--summary would overwrite {self.summary}; give the summary another file")
        for name, place in (("output", self.output), ("summary", self.summary)):
            if place is not None and (used := _file_in_use(settings, real_path(place))):
                raise ConfigError(f"would overwrite {used}; name another file", setting=name, value=place)
        if self.skip_bad and source == output:
            raise ConfigError("--skip-bad would delete the bad lines of the input; name another file with -o")


@command(
    ScoreOptions,
    settings=(*JUDGE, *REQUESTS, *LIMITS, "deadline", "cache", *JOURNAL, "on_failure", "observers"),
    epilog="Example:  plaudit score answers.jsonl -o scored.jsonl --base-url http://localhost:8000/v1 "
    '--rubric "Is it correct and brief?"\n\n'
    "Exit status:  0 every line has a verdict, 3 some have none, 2 bad usage or input, 130 stopped by "
    "Ctrl-C.",
)
def score(options: ScoreOptions, given: Given) -> int:
    """Score every line of a file with a judge.

    IN has one JSON object per line with "prompt" (text or messages) and "response", and optionally
    "reference", "group" and "id"; other fields are copied. It can also be a JSON array, CSV, Parquet or the
    folder of a Hugging Face dataset; common field names are recognised. OUT gets the same lines in the same
    order, in the format of IN or the one that its ending names, plus "score" (a number, or null if there is
    no verdict), "status" (ok, empty, failed, deadline, unreadable, refused, flagged), "reason", "judge", and
    "error" if there is one. If IN already has these fields, they are replaced.

    OUT is written when all lines are done; finished lines are in OUT.partial.jsonl. Verdicts are cached:
    after a crash or Ctrl-C, run the same command again.
    """
    settings = load(given)
    check_cache(settings)
    check_journal(settings)
    return ScoreRun(
        options,
        settings,
        open_endpoints=lambda: open_endpoints(settings, ask=asker(options.yes)),
        open_engine=functools.partial(engine_for, settings),
    )()


def _file_in_use(settings: Settings, path: Path) -> str:
    """What a file is to the run where a setting names it, too; empty where none does."""
    for name, what in IN_USE.items():
        value = str(getattr(settings, name))
        is_file = value not in ("", "off", "memory") if name in ("cache", "journal") else names_file(value)
        if is_file and real_path(value) == path:
            return what
    return ""


class Submitter(Protocol):
    """What a run needs of the engine."""

    def submit_checked(
        self, samples: list[Sample], judge: Judge | Panel, *, deadline: float | None
    ) -> PendingBatch: ...


OpenEngine = Callable[
    [tuple[Endpoint, ...], Sequence[Observer]], contextlib.AbstractContextManager[Submitter]
]
OpenEndpoints = Callable[[], contextlib.AbstractContextManager[ReadyEndpoints]]


class _Late:
    """A batch that is read after the deadline: nothing is asked for it, and nothing waits for it."""

    def __init__(self, size: int) -> None:
        self._verdicts = [Verdict(None, Status.DEADLINE, error="deadline")] * size

    def done(self) -> bool:
        return True

    def result(self, timeout: float | None = None) -> list[Verdict]:  # noqa: ARG002
        return self._verdicts

    def cancel(self) -> None: ...


class _BadInput(ConfigError):
    """A bad line in an input that could not be looked at beforehand."""


class ScoreRun:
    """One run. Endpoints and engine are opened by the functions passed in."""

    def __init__(
        self,
        options: ScoreOptions,
        settings: Settings,
        *,
        open_endpoints: OpenEndpoints,
        open_engine: OpenEngine,
        console: Console | None = None,
    ) -> None:
        self._options = options
        self._settings = settings
        self._open_endpoints = open_endpoints
        self._open_engine = open_engine
        self._console = console or Console()
        self._handler = ConsoleHandler(self._console)
        self._on_failure = OnFailure(settings.on_failure)
        self._bad = BadLines()
        self._read = RowReader(options.fields)
        self._kept: RowSource | None = None
        self._tally = Tally()
        self._report = RunSummary()
        self._started = time.monotonic()

    def __call__(self) -> int:
        """Do it; the exit status. Raises ConfigError where it cannot be done."""
        self._options.check(self._settings)
        report = self._report
        judge = judge_of(self._settings, is_embedded=not self._settings.base_url)
        check_judge(judge)
        report.max_chars = getattr(judge, "max_chars", MAX_CHARS)
        total = self._check_input(judge)
        if self._read.fields is not None and (found := str(self._read.fields)):
            self._say(f"{self._options.source}: {found} (use --prompt-field etc. to change this)")
        with (
            self._opened("output", self._open_output) as sink,
            self._opened("summary", self._open_summary) as summary_sink,
        ):
            note = self._save(sink) if total == 0 else self._judge(judge, sink, total)
            report.summary = self._tally.summary(time.monotonic() - self._started)
            report.skipped = self._bad.count
            try:
                summary_sink.write(encode(report.as_json()) + b"\n")
                summary_sink.commit()
            except Unwritable as error:
                raise ConfigError(
                    f"{error.why}; all else is done: the lines are in {report.output}"
                ) from error
        if report.summary.samples or report.skipped:
            stream = self._console.stream
            width = stream.columns() if stream.isatty() else None
            for line in report.as_text(already_shown=self._handler.causes, width=width):
                self._say(line)
        elif not note:
            self._say(f"{self._source_name} has no lines: nothing to score")
        if note:
            self._console.print(note)
        return report.exit_status

    def _judge(self, judge: Judge | Panel, sink: Sink, total: int | None) -> str:
        usual = logging.ERROR if self._options.quiet else logging.WARNING
        level = logging.DEBUG if self._options.debug else usual
        with self._handler.attached(level), self._open_endpoints() as ready:
            self._say(ready.notice)
            self._report.models = tuple(dict.fromkeys(endpoint.model for endpoint in ready.endpoints))
            note = self._score(judge, ready.endpoints, sink, total)
            if trouble := ready.trouble():
                self._console.print(f"plaudit: {trouble}")
        return note

    def _say(self, text: str) -> None:
        if text and not self._options.quiet:
            self._console.print(text)

    def _check_input(self, judge: Judge | Panel) -> int | None:
        """How many lines there are to score; None where the input can be read only once."""
        if not can_be_read_twice(self._options.source):
            open_source(self._options.source).close()  # says at once what is wrong with it
            if self._options.source == "-" and sys.stdin.isatty():
                self._say("reading from the terminal: one JSON object per line, end with Ctrl-D")
            return None
        found = check_input(self._options.source, judge, self._read)
        bad = found.bad
        if bad.count and not (self._options.skip_bad and found.total):
            raise ConfigError(f"{self._options.source}: bad lines: {bad.count:,}\n{bad}\n{self._remedy(bad)}")
        if found.kept is not None:
            self._bad, self._kept = bad, found.kept
        return found.total

    def _remedy(self, bad: BadLines) -> str:
        if self._options.skip_bad:
            return "There are no other lines."
        if not bad.lack_fields:
            return "Correct them, or skip them with --skip-bad."
        is_csv = self._options.source_format == "csv"
        header = " The first line of a CSV file names its columns." if is_csv else ""
        return (
            "Name the fields with --prompt-field and --response-field, correct the lines, or leave them "
            f"out with --skip-bad.{header}"
        )

    @property
    def _source_name(self) -> str:
        return "stdin" if self._options.source == "-" else self._options.source

    def _score(
        self, judge: Judge | Panel, endpoints: tuple[Endpoint, ...], sink: Sink, total: int | None
    ) -> str:
        with (
            Stop() as stop,
            contextlib.closing(self._kept or open_source(self._options.source)) as source,
            Progress(total=total, stream=self._console.stream, is_shown=not self._options.quiet) as progress,
        ):

            def wake(event: Event) -> None:
                if isinstance(event, BatchFinished):
                    stop.wake.set()

            shown = [progress] if progress.is_shown else []
            with self._open_engine(endpoints, [self._tally, Log(), *shown, wake]) as engine:
                stream = Stream(
                    source=source,
                    sink=sink,
                    submit=functools.partial(self._submit, engine, judge, progress),
                    settle=self._settle,
                    on_bad=self._meet_bad_line,
                    wake=stop.wake,
                    should_stop=lambda: stop.signal is not None,
                    check=judge.check if isinstance(judge, Demanding) else None,
                    read=self._read,
                    groups=WholeGroups() if compares(judge) else None,
                )
                try:
                    is_complete = stream.run()
                except _BadInput as error:
                    stream.abandon()
                    raise ConfigError(f"{error}\n{self._save_partial(sink)}") from None
                if not is_complete:
                    stream.abandon()
                    self._report.exit_status = stop.exit_status
                    return f"stopped; {self._save_partial(sink)}"
        return self._save(sink)

    def _submit(
        self, engine: Submitter, judge: Judge | Panel, progress: Observer, samples: list[Sample]
    ) -> PendingBatch:
        self._report.cut += sum(is_cut(sample, self._report.max_chars) for sample in samples)
        deadline = self._settings.deadline
        if deadline is None:
            return engine.submit_checked(samples, judge, deadline=None)
        left = self._started + deadline - time.monotonic()
        if left > 0:
            return engine.submit_checked(samples, judge, deadline=left)
        late = _Late(len(samples))
        for observer in (self._tally, progress):
            observer(VerdictsReady(0.0, 0, tuple(late.result())))
        return late

    def _settle(self, line: Line, verdict: Verdict) -> Verdict:
        if verdict.score is not None:
            self._report.digest.add(verdict.score, line.number, line.sample.text[:EXCERPT], verdict.reason)
            if verdict.source is Source.CACHE:
                self._report.saved.add(verdict.usage, self._settings.price)
        return self._on_failure.settle(line, verdict)

    def _meet_bad_line(self, line: BadLine) -> None:
        self._bad.add(line)
        if self._options.skip_bad:
            return
        if self._options.source == "-" and line.number == 1:  # most likely another format than expected
            raise ConfigError(
                f"stdin: {line}\nstdin takes one JSON object per line; give any other format as a file."
            )
        raise _BadInput(f"{self._source_name}: {line}\nCorrect it, or skip such lines with --skip-bad.")

    def _save(self, sink: Sink) -> str:
        """Put the output in place; what there is to say of the first failure."""
        failure = self._on_failure
        if failure.needs_second_pass and failure.first and isinstance(sink, FileSink):
            group = self._read.fields.group if self._read.fields else "group"
            sink.rewrite(functools.partial(failure.fill_in, group_field=group))
        sink.commit()
        describe_folder(self._options.output_place)
        self._report.output = self._options.output
        if failure.first is None:
            return ""
        self._report.exit_status = SOME_MISSING
        number, verdict = failure.first
        missing = f"line {number} has no verdict ({verdict.status}): {verdict.error or 'no reason given'}"
        return f"plaudit: {missing}" if failure.is_raising or self._options.quiet else ""

    def _save_partial(self, sink: Sink) -> str:
        """Keep what is done, and say where it is and how to go on."""
        path = sink.save_partial()
        kept = f"finished lines are in {path}" if path else "no more lines were finished"
        if self._settings.cache == "off":
            return f"{kept}; the cache is off, so the next run starts from the beginning"
        return f"{kept}; run the same command again to resume from the cache"

    def _open_output(self) -> Sink:
        options, place = self._options, self._options.output_place
        if place == "-":
            return open_sink(place)
        convert = writer(place, options.source, options.source_format, self._bad.numbers)
        if place != options.output:
            expanded(options.output).mkdir(exist_ok=True)
        return open_sink(place, convert, shows_partial=True)

    def _open_summary(self) -> Sink:
        place = self._options.summary
        return open_sink(place) if place else StreamSink(io.BytesIO())

    @contextlib.contextmanager
    def _opened(self, setting: str, open_: Callable[[], Sink]) -> Iterator[Sink]:
        """An output for as long as the run takes; what it holds is thrown away if the run breaks down."""
        try:
            sink = open_()
        except ConfigError as error:
            error.setting = error.setting and setting  # an error about no setting names none
            raise
        try:
            yield sink
        except Unwritable as error:
            sink.discard()
            if self._settings.cache == "off":
                raise
            raise ConfigError(
                f"{error}; it resumes from the cache, which has every verdict so far"
            ) from error
        except BaseException:
            sink.discard()
            raise
