"""`plaudit audit`: can this judge be talked into a score, does it agree with labels, with another judge?"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
import msgspec
from rich import box
from rich.console import Console as RichConsole
from rich.table import Table as RichTable
from rich.text import Text

from plaudit.audit import Contender, Probe, calibrate, compare, compare_answers, samples_of
from plaudit.audit.attack_probe import scale_of
from plaudit.audit.pairs import is_pair, pairs_from
from plaudit.audit.views import view_answers, view_calibration, view_comparison, view_probe
from plaudit.cli.console import Console, asker
from plaudit.cli.input import rows_in
from plaudit.cli.options import JUDGE, LIMITS, REQUESTS, Given, Running, argument, command
from plaudit.cli.output import check_place, written
from plaudit.errors import ConfigError
from plaudit.judges.base import Judge, Panel
from plaudit.observers.log import Log
from plaudit.observers.progress import Progress
from plaudit.report.document import Report, Table
from plaudit.report.html import page
from plaudit.rows import RowReader
from plaudit.settings import Settings, load, option
from plaudit.setup.engines import ReadyEndpoints, check_cache, engine_for, open_endpoints
from plaudit.setup.json_lines import OURS
from plaudit.setup.judges import judge_of
from plaudit.types import Sample, Verdict

SOME_MISSING = 3

ENDING = "\n\nExit status:  0 every response has a verdict, 3 some have none, 2 bad usage or input."
ENGINE = (*REQUESTS, *LIMITS, "cache")


@dataclass(frozen=True, kw_only=True)
class AuditOptions(Running):
    json: Path | None = option(None, "Write all numbers to this file.", "Report", "FILE")
    html: Path | None = option(None, "Write an HTML page with charts.", "Report", "FILE")


@dataclass(frozen=True, kw_only=True)
class ProbeOptions(AuditOptions):
    per_family: int | None = option(None, "Attacks per family (default: all, 230 in total)", metavar="N")
    pass_mark: float | None = option(
        None, "Lowest score of a good answer (default: the middle of the scale)", metavar="S"
    )
    margin: float | None = option(
        None, "Rise in score that counts as fooled (default: a fifth of the scale)", metavar="S"
    )
    with_reference: bool = option(False, "Show the right answers to the judge, too.")


@command(
    ProbeOptions,
    settings=(*JUDGE, *ENGINE),
    epilog="Example:  plaudit audit probe --base-url URL --rubric 'Is it right?' --html probe.html" + ENDING,
)
def probe(options: ProbeOptions, given: Given) -> int:
    """Try over 200 attacks that ask a judge for a good score for a wrong answer."""
    with _opened(load(given), options) as asked:
        plan = Probe(
            asked.judge,
            per_family=options.per_family,
            pass_mark=options.pass_mark,
            margin=options.margin,
            with_reference=options.with_reference,
        )
        result = plan.read(asked.verdicts(plan.samples))
    return _show(view_probe(result, asked.facts), result, options)


@dataclass(frozen=True, kw_only=True)
class CalibrateOptions(AuditOptions):
    file: Path = argument("FILE", "Labelled pairs: RewardBench, JudgeBench or LLMBar fields.")
    retest: bool = option(
        True, "Judge everything twice, the second time without the cache.", flags=("--retest/--no-retest",)
    )


@command(
    CalibrateOptions,
    settings=(*JUDGE, *ENGINE),
    epilog="Example:  plaudit audit calibrate pairs.jsonl --html calibration.html" + ENDING,
)
def calibrate_(options: CalibrateOptions, given: Given) -> int:
    """Compare a judge with labelled pairs, with itself, and with length and format."""
    with _opened(load(given), options) as asked:
        pairs = pairs_from(rows_in(str(options.file)), str(options.file))
        samples = samples_of(pairs)
        verdicts = asked.verdicts(samples)
        again = asked.verdicts(samples, is_cached=False) if options.retest else None
    result = calibrate(pairs, verdicts, scale=scale_of(asked.judge), again=again)
    facts = (*asked.facts, ("pairs", f"{len(pairs)} from {options.file.name}"))
    return _show(view_calibration(result, facts), result, options)


@dataclass(frozen=True, kw_only=True)
class CompareOptions(AuditOptions):
    file: Path = argument("FILE", "Answers, as for plaudit score, or labelled pairs, as for calibrate.")
    judge: tuple[str, ...] = option((), "Give it twice to compare two judges.", "Judge", "NAME|FILE")
    model: tuple[str, ...] = option((), "Give it twice to compare two models.", "Judge", "M")


@command(
    CompareOptions,
    settings=(*(name for name in JUDGE if name not in ("judge", "model")), *ENGINE),
    epilog="Example:  plaudit audit compare answers.jsonl --model small --model large" + ENDING,
)
def compare_(options: CompareOptions, given: Given) -> int:
    """Compare two judges, or two models, on the same answers or labelled pairs."""
    judges, models = _two(options.judge, "judge"), _two(options.model, "model")
    if len(set(judges)) == len(set(models)) == 1:
        raise ConfigError("compare needs two judges: give --judge twice, or --model twice")
    rows = list(rows_in(str(options.file)))
    pairs = pairs_from(rows, str(options.file)) if any(is_pair(row) for _, row in rows) else []
    samples = samples_of(pairs) if pairs else _answers(rows, options.file)
    settings = load({**given, "judge": judges[0], "model": models[0]})
    contenders = []
    for judge, model in zip(judges, models, strict=True):
        own = replace(settings, judge=judge or settings.judge, model=model or settings.model)
        with _opened(own, options) as asked:
            verdicts = asked.verdicts(samples)
        named = Path(judge).stem if judge else "rubric"
        name = f"{model} ({named})" if model and len(set(models)) > 1 else named
        contenders.append(Contender(name, scale_of(asked.judge), verdicts))
    first, second = contenders
    names = ("judges", f"{first.name} and {second.name}")
    if pairs:
        compared = compare(pairs, first, second)
        facts = (names, ("pairs", f"{len(pairs)} from {options.file.name}"))
        return _show(view_comparison(compared, facts), compared, options)
    result = compare_answers(samples, first, second)
    facts = (names, ("answers", f"{len(samples)} from {options.file.name}"))
    return _show(view_answers(result, facts), result, options)


def _answers(rows: Sequence[tuple[int, dict[str, Any]]], file: Path) -> list[Sample]:
    read, samples = RowReader(), []
    for number, row in rows:
        try:
            samples.append(read({name: value for name, value in row.items() if name not in OURS}))
        except ConfigError as error:
            raise ConfigError(f"{file}, line {number}: {error}") from None
    if not samples:
        raise ConfigError(f"{file} has no lines: nothing to compare")
    return samples


audit = click.Group(
    "audit",
    commands=[probe, calibrate_, compare_],
    help="Find out whether a judge can be trusted.",
    epilog="Example:  plaudit audit probe --base-url http://localhost:8000/v1 --html probe.html",
    no_args_is_help=True,
)


@dataclass(frozen=True, slots=True)
class _AskedJudge:
    """A judge with its endpoints, to be asked for verdicts."""

    settings: Settings
    judge: Judge | Panel
    ready: ReadyEndpoints
    is_quiet: bool

    def verdicts(self, samples: Sequence[Sample], *, is_cached: bool = True) -> list[Verdict]:
        """All verdicts, with a progress line. ConfigError where not a single one came back."""
        settings = self.settings if is_cached else replace(self.settings, cache="off")
        with (
            Progress(total=len(samples), is_shown=not self.is_quiet) as progress,
            engine_for(settings, self.ready.endpoints, [Log(), progress]) as engine,
        ):
            verdicts = engine.score(samples, self.judge, progress=False)
        if trouble := self.ready.trouble():
            Console().print(f"plaudit: {trouble}")
        if not any(verdict.is_valid for verdict in verdicts):
            raise ConfigError(f"no verdict at all came back: {verdicts[0].error or verdicts[0].status}")
        return verdicts

    @property
    def facts(self) -> tuple[tuple[str, str], ...]:
        kind, file = type(self.judge).__name__, Path(self.settings.judge)
        models = ", ".join(sorted({endpoint.model for endpoint in self.ready.endpoints}))
        return (("judge", f"{kind} from {file.name}" if file.suffix else kind), ("model", models))


@contextlib.contextmanager
def _opened(settings: Settings, options: AuditOptions) -> Iterator[_AskedJudge]:
    check_cache(settings)
    for setting in ("json", "html"):
        if (place := getattr(options, setting)) is not None:
            check_place(str(place), *_inputs(options), setting=setting)
    judge = judge_of(settings, is_embedded=not settings.base_url)
    with open_endpoints(settings, ask=asker(options.yes)) as ready:
        yield _AskedJudge(settings, judge, ready, options.quiet)


def _two(values: Sequence[str], name: str) -> list[str | None]:
    if not values:
        return [None, None]
    if len(values) > 2:
        raise ConfigError(f"is given {len(values)} times; compare takes two", setting=name)
    return [values[0], values[-1]]


def _show(report: Report, result: Any, options: AuditOptions) -> int:
    """On stdout in tables, and in the files that were asked for; gives the exit status."""
    console = RichConsole(file=sys.stdout, highlight=False, markup=False)
    console.print(Text(report.title, style="bold"))
    console.print(report.finding)
    for name, value in report.facts:
        console.print(f"{name}: {value}", style="dim")
    for part in report.parts:
        if isinstance(part, Table):
            console.print()
            console.print(_table(part))
    if options.json is not None:
        _write(options.json, msgspec.json.format(msgspec.json.encode(result), indent=2) + b"\n", options)
    if options.html is not None:
        _write(options.html, page(report).encode("utf-8", "replace"), options)
        Console().print(f"wrote {options.html}")
    return SOME_MISSING if result.missing else 0


def _table(part: Table) -> RichTable:
    table = RichTable(title=part.title, title_justify="left", box=box.SIMPLE_HEAD)
    table.caption, table.caption_justify = part.note or None, "left"
    first, *others = part.header
    table.add_column(first, overflow="fold")
    for name in others:
        table.add_column(name, justify="right", overflow="fold", no_wrap=True)
    for row in part.rows:
        table.add_row(*(Text(cell) for cell in row))
    return table


def _inputs(options: AuditOptions) -> list[str]:
    return [str(options.file)] if isinstance(options, CalibrateOptions | CompareOptions) else []


def _write(path: Path, data: bytes, options: AuditOptions) -> None:
    with written(str(path), *_inputs(options)) as sink:
        sink.write(data)
