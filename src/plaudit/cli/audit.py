"""`plaudit audit`: can this judge be talked into a score, does it agree with labels, with another judge?"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich import box
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from plaudit.audit import Contender, Probe, calibrate, compare, read_pairs, samples_of
from plaudit.audit.attack_probe import scale_of
from plaudit.audit.views import view_calibration, view_comparison, view_probe
from plaudit.cli import options
from plaudit.cli.console import Commands, stderr
from plaudit.cli.convene import Bench, convene
from plaudit.cli.sink import open_sink
from plaudit.errors import ConfigError
from plaudit.observers.log import Log
from plaudit.observers.progress import Progress
from plaudit.report.document import Report, Table
from plaudit.report.html import page
from plaudit.settings import Settings, load
from plaudit.setup.engines import check_cache, engine_for
from plaudit.types import Sample, Verdict

SOME_MISSING = 3

app = typer.Typer(
    cls=Commands,
    help="Find out whether a judge can be trusted.",
    epilog="Example:  plaudit audit probe --base-url http://localhost:8000/v1 --html probe.html",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_report = "Report"
PairsFile = Annotated[
    Path, typer.Argument(metavar="FILE", help="Labelled pairs: RewardBench, JudgeBench or LLMBar fields.")
]
Json = Annotated[
    Path | None,
    typer.Option("--json", metavar="FILE", help="Write every number there.", rich_help_panel=_report),
]
Html = Annotated[
    Path | None,
    typer.Option("--html", metavar="FILE", help="Write one page with charts.", rich_help_panel=_report),
]
ENDING = "\n\nExit status:  0 everything has a verdict, 3 something has none, 2 bad usage or input."


@app.command(
    epilog="Example:  plaudit audit probe --base-url URL --rubric 'Is it right?' --html probe.html" + ENDING
)
def probe(
    context: typer.Context,
    *,
    per_family: Annotated[
        int | None, typer.Option(metavar="N", help="Attacks of each family (default: all, 230 together)")
    ] = None,
    pass_mark: Annotated[
        float | None, typer.Option(metavar="S", help="Score of a good answer (default: middle of the scale)")
    ] = None,
    margin: Annotated[
        float | None, typer.Option(metavar="S", help="Points that are a rise (default: a fifth of the scale)")
    ] = None,
    with_reference: Annotated[
        bool, typer.Option("--with-reference", help="Show the judge the right answers, too.")
    ] = False,
    json: Json = None,
    html: Html = None,
    base_url: options.BaseUrl = None,
    model: options.Model = None,
    api_key_env: options.ApiKeyEnv = None,
    judge: options.Judge = None,
    rubric: options.Rubric = None,
    scale: options.Scale = None,
    local_model: options.LocalModel = None,
    yes: options.Yes = False,
    max_concurrent: options.MaxConcurrent = None,
    rpm: options.Rpm = None,
    tpm: options.Tpm = None,
    budget: options.Budget = None,
    price: options.Price = None,
    timeout: options.Timeout = None,
    cache: options.Cache = None,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Try over 200 attacks on a judge: can it be talked into a score for a wrong answer?"""
    settings = _settings(context, locals())
    with convene(settings, is_agreed=yes) as bench:
        plan = Probe(
            bench.judge,
            per_family=per_family,
            pass_mark=pass_mark,
            margin=margin,
            with_reference=with_reference,
        )
        result = plan.read(_ask(settings, bench, plan.samples, quiet=quiet))
    _show(view_probe(result, _facts(bench, settings)), result, json=json, html=html)
    raise typer.Exit(SOME_MISSING if result.missing else 0)


@app.command(
    name="calibrate", epilog="Example:  plaudit audit calibrate pairs.jsonl --html calibration.html" + ENDING
)
def calibrate_(
    context: typer.Context,
    file: PairsFile,
    *,
    retest: Annotated[
        bool, typer.Option("--retest/--no-retest", help="Ask everything twice, the second time uncached.")
    ] = True,
    json: Json = None,
    html: Html = None,
    base_url: options.BaseUrl = None,
    model: options.Model = None,
    api_key_env: options.ApiKeyEnv = None,
    judge: options.Judge = None,
    rubric: options.Rubric = None,
    scale: options.Scale = None,
    local_model: options.LocalModel = None,
    yes: options.Yes = False,
    max_concurrent: options.MaxConcurrent = None,
    rpm: options.Rpm = None,
    tpm: options.Tpm = None,
    budget: options.Budget = None,
    price: options.Price = None,
    timeout: options.Timeout = None,
    cache: options.Cache = None,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Compare a judge with labelled pairs, with itself, and with mere length and format."""
    settings = _settings(context, locals())
    pairs = read_pairs(_read(file), str(file))
    samples = samples_of(pairs)
    with convene(settings, is_agreed=yes) as bench:
        verdicts = _ask(settings, bench, samples, quiet=quiet)
        again = _ask(replace(settings, cache="off"), bench, samples, quiet=quiet) if retest else None
    result = calibrate(pairs, verdicts, scale=scale_of(bench.judge), again=again)
    facts = (*_facts(bench, settings), ("pairs", f"{len(pairs)} from {file.name}"))
    _show(view_calibration(result, facts), result, json=json, html=html)
    raise typer.Exit(SOME_MISSING if result.missing else 0)


@app.command(
    name="compare", epilog="Example:  plaudit audit compare pairs.jsonl --judge rubric --judge yes" + ENDING
)
def compare_(
    context: typer.Context,
    file: PairsFile,
    *,
    judge: Annotated[
        list[str] | None, typer.Option(metavar="NAME|FILE", help="Give it twice to compare two judges.")
    ] = None,
    model: Annotated[
        list[str] | None, typer.Option(metavar="M", help="Give it twice to compare two models.")
    ] = None,
    json: Json = None,
    html: Html = None,
    base_url: options.BaseUrl = None,
    api_key_env: options.ApiKeyEnv = None,
    rubric: options.Rubric = None,
    scale: options.Scale = None,
    local_model: options.LocalModel = None,
    yes: options.Yes = False,
    max_concurrent: options.MaxConcurrent = None,
    rpm: options.Rpm = None,
    tpm: options.Tpm = None,
    budget: options.Budget = None,
    price: options.Price = None,
    timeout: options.Timeout = None,
    cache: options.Cache = None,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Put two judges, or two models, to the same pairs."""
    judges, models = _two(judge, "--judge"), _two(model, "--model")
    if len(set(judges)) == len(set(models)) == 1:
        raise ConfigError("compare needs two judges: give --judge twice, or --model twice")
    given = locals()
    pairs = read_pairs(_read(file), str(file))
    contenders = []
    for one_judge, one_model in zip(judges, models, strict=True):
        settings = _settings(context, {**given, "judge": one_judge, "model": one_model})
        with convene(settings, is_agreed=yes) as bench:
            verdicts = _ask(settings, bench, samples_of(pairs), quiet=quiet)
        name = _name(one_judge, one_model, with_model=len(set(models)) > 1)
        contenders.append(Contender(name, scale_of(bench.judge), verdicts))
    result = compare(pairs, *contenders)
    facts = (("judges", " and ".join(result.names)), ("pairs", f"{len(pairs)} from {file.name}"))
    _show(view_comparison(result, facts), result, json=json, html=html)
    raise typer.Exit(SOME_MISSING if result.missing else 0)


SETTINGS = (
    *("base_url", "model", "api_key_env", "judge", "rubric", "scale", "local_model"),
    *("max_concurrent", "rpm", "tpm", "budget", "price", "timeout", "cache"),
)


def _settings(context: typer.Context, given: dict[str, Any]) -> Settings:
    context.meta["debug"] = given["debug"]
    settings = load({name: given[name] or None for name in SETTINGS})
    check_cache(settings)
    return settings


def _ask(settings: Settings, bench: Bench, samples: Sequence[Sample], *, quiet: bool) -> list[Verdict]:
    """The verdicts of this bench, with a progress line; what stopped it, if anything, is said."""
    with (
        Progress(total=len(samples), console=stderr(), is_shown=not quiet) as progress,
        engine_for(settings, bench.endpoints, [Log(), progress]) as engine,
    ):
        verdicts = engine.score(samples, bench.judge)
    if trouble := bench.trouble():
        stderr().print(f"plaudit: {trouble}")
    if not any(verdict.is_valid for verdict in verdicts):
        failure = next(verdict for verdict in verdicts if not verdict.is_valid)
        raise ConfigError(f"no verdict at all came back: {failure.error or failure.status}")
    return verdicts


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {os.strerror(error.errno or 0)}") from None


def _two(values: list[str] | None, option: str) -> list[str | None]:
    if values is None or not values:
        return [None, None]
    if len(values) > 2:
        raise ConfigError(f"{option} is given {len(values)} times; compare takes two")
    return [values[0], values[-1]]


def _name(judge: str | None, model: str | None, *, with_model: bool) -> str:
    named = Path(judge).stem if judge else "rubric"
    return f"{model} ({named})" if with_model and model else named


def _facts(bench: Bench, settings: Settings) -> tuple[tuple[str, str], ...]:
    kind, file = type(bench.judge).__name__, Path(settings.judge)
    models = ", ".join(sorted({endpoint.model for endpoint in bench.endpoints}))
    return (("judge", f"{kind} from {file.name}" if file.suffix else kind), ("model", models))


def _show(report: Report, result: Any, *, json: Path | None, html: Path | None) -> None:
    """On stdout in tables; in the files that were asked for."""
    console = Console(file=sys.stdout, highlight=False, markup=False)
    console.print(Text(report.title, style="bold"))
    console.print(report.finding)
    for name, value in report.facts:
        console.print(f"{name}: {value}", style="dim")
    for part in report.parts:
        if isinstance(part, Table):
            console.print()
            console.print(_table(part))
    if json is not None:
        _write(json, msgspec.json.format(msgspec.json.encode(result), indent=2) + b"\n")
    if html is not None:
        _write(html, page(report).encode("utf-8", "replace"))
        stderr().print(f"wrote {html}")


def _table(part: Table) -> RichTable:
    table = RichTable(title=part.title, title_justify="left", box=box.SIMPLE_HEAD)
    table.caption, table.caption_justify = part.note or None, "left"
    for number, name in enumerate(part.header):
        is_first = number == 0
        table.add_column(name, justify="left" if is_first else "right", overflow="fold", no_wrap=not is_first)
    for row in part.rows:
        table.add_row(*(Text(cell) for cell in row))
    return table


def _write(path: Path, data: bytes) -> None:
    sink = open_sink(str(path))
    try:
        sink.write(data)
        sink.commit()
    except BaseException:
        sink.discard()
        raise
