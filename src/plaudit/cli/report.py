"""`plaudit report`: a scored file as a page, with how the scores spread, what is missing, and examples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, pstdev
from typing import Annotated, Any

import click
import msgspec

from plaudit.cli.input import rows_in
from plaudit.cli.options import argument, command, output_option
from plaudit.cli.output import written
from plaudit.errors import ConfigError
from plaudit.report.document import Bars, Part, Report, Table
from plaudit.report.html import page
from plaudit.report.measure import share
from plaudit.report.score_digest import Example, ScoreDigest
from plaudit.rows import Fields, find_fields
from plaudit.setup.json_lines import OURS
from plaudit.types import Usage
from plaudit.value_check import MOST, reworded

EXTREMES = 10
SHORT = 160
"""Characters of a text that a table shows."""


@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    source: str = argument("SCORED", "File written by plaudit score.")
    output: str | None = output_option(None, "Page to write (default: next to the input).", "PAGE.html")


@command(ReportOptions, epilog="Example:  plaudit report scored.jsonl")
def report(options: ReportOptions) -> None:
    """Turn a scored file into an HTML page.

    It shows the distribution of the scores, the worst and best responses with their reasons, why scores are
    missing, and the cost.
    """
    beside = "report.html" if options.source == "-" else str(Path(options.source).with_suffix(".html"))
    place = options.output or beside
    with written(place, options.source) as sink:
        found = read_scored(options.source)
        sink.write(page(view(found, options.source)).encode(errors="replace"))
    click.echo(place)


class _WrittenJudge(msgspec.Struct):
    model: str = ""
    source: str = ""
    cause: str = ""
    usage: Usage = msgspec.field(default_factory=Usage)


class _Written(msgspec.Struct):
    """What `plaudit score` adds to a line, as far as the page shows it."""

    status: str
    score: Annotated[float, msgspec.Meta(ge=-MOST, le=MOST)] | None = None
    reason: str = ""
    error: str = ""
    judge: _WrittenJudge = msgspec.field(default_factory=_WrittenJudge)


@dataclass(slots=True)
class ScoredFile:
    """A scored file in numbers."""

    digest: ScoreDigest = field(default_factory=lambda: ScoreDigest(EXTREMES))
    statuses: Counter[str] = field(default_factory=Counter)
    causes: Counter[str] = field(default_factory=Counter)
    models: Counter[str] = field(default_factory=Counter)
    sources: Counter[str] = field(default_factory=Counter)
    usage: Usage = field(default_factory=Usage)
    """Of the calls; what came from the cache was paid before."""

    @property
    def lines(self) -> int:
        return self.statuses.total()

    def add(self, number: int, found: _Written, response: str) -> None:
        judge = found.judge
        self.statuses[found.status] += 1
        if judge.model:
            self.models[judge.model] += 1
        self.sources[judge.source] += 1
        if judge.source == "call":
            self.usage += judge.usage
        if judge.cause:
            self.causes[f"{judge.cause}: {found.error}"[:SHORT]] += 1
        elif found.score is not None:
            self.digest.add(found.score, number, response, found.reason)


def read_scored(place: str) -> ScoredFile:
    """Read a scored file of any format. ConfigError where it cannot be read, or has not been scored."""
    found, fields = ScoredFile(), None
    for number, row in rows_in(place):
        if "score" not in row or "status" not in row:
            raise ConfigError(
                f"{place}, line {number}, has no score; first run: plaudit score {place} -o scored.jsonl"
            )
        fields = fields or find_fields([name for name in row if name not in OURS])
        try:
            written = _written(row)
        except msgspec.MsgspecError as error:
            field = reworded(error)[1].strip(".").partition(".")[0] or "judge"
            raise ConfigError(
                f"{place}, line {number}: {field!r} is not as plaudit score writes it; score the file again"
            ) from None
        found.add(number, written, _response(row, fields))
    if not found.lines:
        raise ConfigError(f"{place} has no lines: nothing to report")
    return found


def view(found: ScoredFile, place: str) -> Report:
    """The page as data."""
    scores = found.digest.scores
    facts = [("file", place), ("lines", f"{found.lines:,}"), ("with a score", f"{len(scores):,}")]
    if scores:
        facts.append(("mean, standard deviation", f"{fmean(scores):.4g}, {pstdev(scores):.3g}"))
        facts.append(("lowest, highest", f"{min(scores):g}, {max(scores):g}"))
    facts.append(("judged by", ", ".join(found.models) or "no model"))
    if tokens := found.usage.prompt_tokens + found.usage.completion_tokens:
        facts.append(("tokens", f"{tokens:,}"))
    if found.usage.cost is not None:
        facts.append(("cost", f"${found.usage.cost:,.4f}"))
    if cached := found.sources.get("cache"):
        facts.append(("from the cache", f"{cached:,} lines, not paid again"))
    bars = tuple(
        (f"{low:g} to {high:g}", share(count, len(scores))) for low, high, count in found.digest.histogram()
    )
    parts: list[Part] = [
        *([Bars("Distribution of the scores", bars, with_intervals=False)] if bars else []),
        _counts("Status", "status", found.statuses),
        *([_counts("Why there is no score", "cause", found.causes)] if found.causes else []),
        _examples("The worst", found.digest.worst),
        _examples("The best", found.digest.best),
    ]
    mean = f", {fmean(scores):.3g} on average" if scores else ""
    finding = f"{len(scores):,} of {found.lines:,} lines have a score{mean}."
    if found.causes:
        cause, count = found.causes.most_common(1)[0]
        finding += f" Most of the others ({count:,}): {cause}."
    return Report("Scores", finding, tuple(facts), tuple(parts), footer="Written by plaudit report.")


def _written(row: Mapping[str, Any]) -> _Written:
    """What was added to a row; in a table, numbers may be text, and objects are JSON."""
    ours = {name: row[name] for name in OURS if row.get(name) not in (None, "")}
    if isinstance(judge := ours.get("judge"), str):
        ours["judge"] = msgspec.json.decode(judge)
    return msgspec.convert(ours, _Written, strict=False)


def _response(row: Mapping[str, Any], fields: Fields) -> str:
    try:
        return fields.sample(row).text
    except ConfigError:
        value = row.get(fields.response)
        return value if isinstance(value, str) else ""


def _counts(title: str, name: str, counts: Counter[str]) -> Table:
    rows = tuple((words, f"{count:,}") for words, count in counts.most_common(20))
    return Table(title, (name, "lines"), rows)


def _examples(title: str, examples: list[Example]) -> Table:
    rows = tuple(
        (one.response[:SHORT], f"{one.score:g}", str(one.number), one.reason[:SHORT]) for one in examples
    )
    return Table(title, ("response", "score", "line", "reason"), rows)
