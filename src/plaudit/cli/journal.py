"""`plaudit journal`: what is in a journal, for people and for other programs."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import msgspec

from plaudit.cli.console import Console, bars, printable
from plaudit.cli.options import WholeNumber, argument, command, output_option
from plaudit.cli.output import Sink, written
from plaudit.config import expanded, names_file
from plaudit.errors import ConfigError
from plaudit.journal.blocks import FACTS, HASHES, WORDS, StoredText
from plaudit.journal.index import JournalIndex, Record
from plaudit.journal.query import ORDERS, Query, compare, overview, words_of
from plaudit.settings import option
from plaudit.setup.tables import load_pyarrow

WIDE = 100
PARQUET_ROWS = 5_000


def limit_option(default: int, text: str = "Maximum number of records; 0 for all.") -> int:
    """How many records a command is about."""
    return option(default, text, "Records", flags=("-n", "--limit"), type_=WholeNumber(min=0))


@dataclass(frozen=True, kw_only=True)
class JournalOptions:
    journal: str = argument("JOURNAL", "Journal file.")


@dataclass(frozen=True, kw_only=True)
class Choice(JournalOptions):
    """Which records a command is about."""

    run: str = option("", "Only records of this run.", "Records", "NAME")
    judge: str = option(
        "", "Only records of this judge; the beginning of its name is enough.", "Records", "NAME"
    )
    status: str = option("", "Only this status: ok, failed, ..., or missing.", "Records", "STATUS")
    step: str = option("", "Only these training steps.", "Records", "N|N-M")
    sort: str = option("time", "What to sort by.", "Records", type_=click.Choice(ORDERS))
    descending: bool = option(False, "The largest first.", "Records", flags=("--descending", "-d"))
    limit: int = limit_option(20)

    def rows(self, index: JournalIndex, text: str = "") -> Any:
        """The rows that are wanted, no more of them than the limit."""
        found = self.all_rows(index, text)
        return found[: self.limit] if self.limit else found

    def all_rows(self, index: JournalIndex, text: str = "") -> Any:
        """The rows that are wanted. A name that no record has is an error: it is misspelt."""
        for name, wanted in (("run", self.run), ("judge", self.judge), ("status", self.status)):
            if not wanted or (name == "status" and wanted in ("missing", "canary")):
                continue
            has = sorted({index.words[number] for number in set(index.facts[name].tolist())})
            if has and not any(one.startswith(wanted) if name == "judge" else one == wanted for one in has):
                why = f"is the {name} of no record; there are: {', '.join(has)}"
                raise ConfigError(why, setting=name, value=wanted)
        query = Query(
            run=self.run,
            judge=self.judge,
            status=self.status,
            steps=self.step,
            text=text,
            order=self.sort,
            is_descending=self.descending,
        )
        return query.rows(index)


@dataclass(frozen=True, kw_only=True)
class ShowOptions(Choice):
    id: str = option(
        "",
        "Show the record with this id in full; for a trainer's `record`, the last verdict on it.",
        "",
        "ID",
    )


@command(ShowOptions, epilog="Example:  plaudit journal show run.journal --sort unit -n 5")
def show(options: ShowOptions) -> None:
    """List records, one per line, or show one in full with --id."""
    with opened(options.journal) as index:
        if options.id:
            row = index.row_of(options.id)
            if row is None:
                raise ConfigError(f"{options.journal} has no record {options.id}; list them without --id")
            _print("\n".join(_in_full(index.record(row))))
            for question in index.questions(row):
                _print(f"asked     {_line(index.record(question))}")
            return
        rows = options.rows(index)
        for row in rows:
            _print(_line(index.record(int(row))))
        _print(f"{len(rows):,} of {index.verdicts:,} records; one in full: --id ID")


@dataclass(frozen=True, kw_only=True)
class GrepOptions(Choice):
    pattern: str = argument("PATTERN", "Regular expression; case is ignored.")


@command(GrepOptions, epilog="Example:  plaudit journal grep run.journal 'ignore (all|previous)' --status ok")
def grep(options: GrepOptions) -> int:
    """List records with a pattern in prompt, response, reason, reply or error. Status 1: there is none."""
    from plaudit.journal.query import matcher

    if names_file(options.pattern) and not expanded(options.journal).exists():
        raise ConfigError(
            f"there is no journal {options.journal}; the journal comes first, then the pattern: "
            f"plaudit journal grep {options.pattern} {shlex.quote(options.journal)}"
        )
    with opened(options.journal) as index:
        matches = matcher(options.pattern, setting="PATTERN")
        rows = options.rows(index, options.pattern)
        for row in rows:
            record = index.record(int(row))
            _print(_line(record))
            for text in words_of(record.text):
                if found := matches(text):
                    _print(f"    {_short(text[max(found.start() - 40, 0) :], WIDE)}")
                    break
    return 0 if len(rows) else 1


@dataclass(frozen=True, kw_only=True)
class JournalStatsOptions(Choice):
    as_json: bool = option(False, "Print one JSON object, for scripts.", flags=("--json",))


@command(JournalStatsOptions, epilog="Example:  plaudit journal stats run.journal --step 40-60")
def stats(options: JournalStatsOptions) -> None:
    """Summarise the records: scores by judge and step, failures, time, cost."""
    with opened(options.journal) as index:
        found = overview(index, options.all_rows(index))
    show_numbers(found, _stats(found), is_json=options.as_json)


@dataclass(frozen=True, kw_only=True)
class DiffOptions(JournalOptions):
    first: str = argument("RUN", "Name of a run, as `plaudit journal stats` lists it.")
    second: str = argument("RUN", "Name of the other run.")
    as_json: bool = option(False, "Print one JSON object, for scripts.", flags=("--json",))


@command(DiffOptions, epilog="Example:  plaudit journal diff run.journal monday tuesday")
def diff(options: DiffOptions) -> None:
    """Compare two runs on the samples that both have judged."""
    with opened(options.journal) as index:
        rows = [Query(run=name).rows(index) for name in (options.first, options.second)]
        runs = {session.run for session in index.sessions.values()}
        for name, own in zip((options.first, options.second), rows, strict=True):
            if not len(own):
                raise ConfigError(f"{options.journal} has no run {name!r}; it has {', '.join(sorted(runs))}")
        found = compare(index, *rows)
        show_numbers(found, differences(index, found), is_json=options.as_json)


@dataclass(frozen=True, kw_only=True)
class JournalExportOptions(Choice):
    limit: int = limit_option(0)
    output: str = output_option("-", "File: .jsonl, or .parquet; - for stdout, as JSON lines.")


@command(JournalExportOptions, epilog="Example:  plaudit journal export run.journal -o verdicts.parquet")
def export(options: JournalExportOptions) -> None:
    """Write records for other programs, as JSON lines or Parquet."""
    if Path(options.output).suffix not in ("", ".jsonl", ".ndjson", ".parquet"):
        why = "is not a form that records are written in; name a file that ends with .jsonl or .parquet"
        raise ConfigError(why, setting="output", value=options.output)
    with opened(options.journal) as index:
        rows = options.rows(index)
        with written(options.output, options.journal) as sink:
            if Path(options.output).suffix == ".parquet":
                _write_parquet(index.records(rows), sink)
            else:
                for record in index.records(rows):
                    sink.write(msgspec.json.encode(record.as_json(), enc_hook=repr) + b"\n")
    if options.output != "-":
        Console().print(f"wrote {len(rows):,} records to {options.output}")


journal = click.Group(
    "journal",
    commands=[show, grep, stats, diff, export],
    help="Read a journal: every verdict with its request and its reply.",
    epilog="Example:  plaudit journal show run.journal",
    no_args_is_help=True,
)


@contextlib.contextmanager
def opened(*paths: str) -> Iterator[JournalIndex]:
    """Journals to read. What cannot be read is named: now, or once it was needed."""
    with JournalIndex(*(expanded(path) for path in paths)) as index:
        named = index.damage
        console = Console()
        for line in named:
            console.print(f"warning: {line}")
        yield index
        for line in index.damage:
            if line not in named:
                console.print(f"warning: {line}")


def _write_parquet(records: Iterator[Record], sink: Sink) -> None:
    arrow = load_pyarrow()
    out = arrow.PythonFile(SimpleNamespace(write=sink.write, closed=False), mode="w")
    with arrow.parquet.ParquetWriter(out, _schema(arrow)) as writer:
        while part := [flat(record) for record in islice(records, PARQUET_ROWS)]:
            writer.write_table(arrow.Table.from_pylist(part, schema=writer.schema))


def _schema(arrow: Any) -> Any:
    """The columns of a table. Said, not guessed: in the first records any of them may be empty."""
    numbers = {"d": arrow.float64(), "f": arrow.float64(), "B": arrow.bool_()}
    columns = {"id": arrow.string()}
    for name, code in FACTS.items():
        if name not in HASHES:
            columns[name] = arrow.string() if name in WORDS else numbers.get(code, arrow.int64())
    columns |= {f"{name}_hash": arrow.string() for name in HASHES}
    columns |= dict.fromkeys(StoredText.__struct_fields__, arrow.string())
    return arrow.schema(list(columns.items()))


def flat(record: Record) -> dict[str, Any]:
    """A record as a row of a table: what has no fixed shape is JSON text."""
    fields = record.as_json()
    for name in ("prompt", "request", "exchanges", "extra", "parts", "serves", "turns", "tools"):
        if not isinstance(fields[name], str):
            fields[name] = msgspec.json.encode(fields[name], enc_hook=repr).decode()
    return fields


def _print(text: str) -> None:
    click.echo(printable(text))


def show_numbers(found: dict[str, Any], lines: Iterable[str], *, is_json: bool) -> None:
    """Print what was found: as it is for a program, in words for people."""
    if is_json:
        click.echo(msgspec.json.encode(found))
    else:
        _print("\n".join(lines))


def _short(text: str, most: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"


def _score(value: float | None) -> str:
    return "   -" if value is None else f"{value:4.2f}"


def _line(record: Record) -> str:
    facts = record.facts
    step = "" if facts["step"] is None else f" step {facts['step']}"
    said = record.text.reason or record.text.error or facts["cause"]
    return (
        f"{record.id:18} {_score(facts['unit'])} {facts['status']:10}{step} "
        f"{_short(record.text.response, 36):36} | {_short(said, 40)}"
    )


def _in_full(record: Record) -> Iterator[str]:
    facts, text = record.facts, record.text
    when = datetime.fromtimestamp(facts["time"]).astimezone().isoformat(timespec="seconds")
    yield f"record    {record.id}   {when}"
    yield f"run       {facts['run']}" + ("" if facts["step"] is None else f", step {facts['step']}")
    yield f"judge     {facts['judge']}"
    yield f"verdict   {facts['status']}, score {facts['score']}, {_score(facts['unit']).strip()} from 0 to 1"
    model = "" if facts["endpoint"].endswith(f" {facts['model']}") else facts["model"]
    yield f"from      {facts['source']} {facts['endpoint']} {model}".rstrip()
    yield (
        f"took      {facts['latency_s']:.2f} s, {facts['queued_s']:.2f} s queued, {facts['sends']} sent, "
        f"{facts['prompt_tokens']} + {facts['completion_tokens']} tokens"
    )
    for title, body in (("reason", text.reason), ("error", text.error), ("reference", text.reference)):
        if body:
            yield f"{title:9} {body}"
    for name, part in text.parts.items():
        yield f"part      {name}: {part:g}"
    yield from _titled("prompt", text.prompt)
    yield from _titled("response", text.turns or text.response)
    yield from _titled("request", text.request)
    for number, exchange in enumerate(text.exchanges, 1):
        yield from _titled(f"reasoning {number}", exchange.reasoning)
        yield from _titled(f"reply {number} from {exchange.endpoint}", exchange.reply or exchange.error or "")


def _titled(title: str, body: Any) -> Iterator[str]:
    if not body:
        return
    yield f"\n--- {title}"
    if isinstance(body, str):
        yield body
        return
    for turn in body:
        calls = turn.get("tool_calls")
        said = f" {msgspec.json.encode(calls, enc_hook=repr).decode()}" if calls else ""
        yield f"[{turn.get('role')}] {turn.get('content') or ''}{said}"


def _stats(found: dict[str, Any]) -> Iterator[str]:
    score, money = found["score"], found["money"]
    if not found["records"]:
        yield "0 records"
        return
    yield f"{found['records']:,} records, runs: {_joined(found['by_run'])}"
    yield from (f"look at   {one['text']}" for one in found["findings"])
    yield f"status    {_joined(found['by_status'])}"
    yield f"source    {_joined(found['by_source'])}"
    if score["mean"] is not None:
        yield f"score     mean {score['mean']:.3f}, std {score['std']:.3f}, from 0 to 1"
    for judge in found["judges"]:
        flat_share = f", {judge['flat']} of {judge['groups']} groups flat" if judge["groups"] else ""
        mean = "-" if judge["mean"] is None else f"{judge['mean']:.3f}"
        counts = f"{judge['records']:,}, mean {mean} {bars(judge['histogram'])}{flat_share}"
        yield f"judge     {judge['judge']}: {counts}"
    for cause in found["missing"]:
        yield f"missing   {cause['count']:,} {cause['cause']}: {_short(cause['error'], WIDE)}"
    latency = found["latency_s"]
    if latency["p50"] is not None:
        yield f"latency   p50 {latency['p50']:.2f} s, p95 {latency['p95']:.2f} s, p99 {latency['p99']:.2f} s"
    spent = "" if money["spent"] is None else f", ${money['spent']:.4f} spent, ${money['saved']:.4f} saved"
    yield f"calls     {money['calls']:,}, {money['without_call']:,} answered without one{spent}"
    correlation = found["length"]["correlation"]
    if correlation is not None:
        yield f"length    correlation with the score {correlation:+.2f}"
    columns = found["trend"]["columns"]
    if found["trend"]["by"] == "step" and len(columns) > 1:
        means = [column["mean"] or 0.0 for column in columns]
        yield f"by step   {columns[0]['x']:g} to {columns[-1]['x']:g}: {bars(means, highest=1.0)}"


def _joined(counts: dict[str, int]) -> str:
    return ", ".join(f"{name or '-'} {count:,}" for name, count in counts.items())


def differences(index: JournalIndex, found: dict[str, Any]) -> Iterator[str]:
    """A comparison in words."""
    yield (
        f"{found['samples']:,} samples in both, {found['only_first']:,} only in the first, "
        f"{found['only_second']:,} only in the second"
    )
    yield f"{found['lost']:,} have a score only in the first, {found['gained']:,} only in the second"
    if not found["scored_in_both"]:
        yield "none has a score in both"
        return
    correlation = "" if found["correlation"] is None else f", correlation {found['correlation']:.3f}"
    yield (
        f"{found['changed']:,} of {found['scored_in_both']:,} scores differ; mean change "
        f"{found['mean_change']:+.3f}, absolute {found['mean_absolute_change']:.3f}{correlation}"
    )
    for one in found["most_changed"]:
        first, second = (index.record(row) for row in one["rows"])
        yield (
            f"  {one['change']:+.2f}  {_score(first.facts['unit'])} -> {_score(second.facts['unit'])}  "
            f"{one['first']} {one['second']}  {_short(first.text.response, 50)}"
        )
