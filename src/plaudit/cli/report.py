"""`plaudit report`: a scored file as a page, with how the scores spread, what is missing, and examples."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

import click

from plaudit.cli.input import rows_in
from plaudit.cli.options import argument, command, option
from plaudit.cli.output import written
from plaudit.errors import ConfigError
from plaudit.report.document import Bars, Part, Report, Table
from plaudit.report.html import page
from plaudit.report.measure import share
from plaudit.report.score_digest import Example, ScoreDigest
from plaudit.rows import Fields, find_fields
from plaudit.setup.json_lines import OURS

EXTREMES = 10
SHORT = 160
"""Characters of a text that a table shows."""


@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    source: str = argument("SCORED", "File written by plaudit score.")
    output: str | None = option(
        "-o",
        "--output",
        default=None,
        metavar="PAGE.html",
        text="Page to write (default: next to the input).",
    )


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


COMMAND = report


@dataclass(slots=True)
class ScoredFile:
    """A scored file in numbers."""

    digest: ScoreDigest = field(default_factory=lambda: ScoreDigest(EXTREMES))
    statuses: Counter[str] = field(default_factory=Counter)
    causes: Counter[str] = field(default_factory=Counter)
    models: Counter[str] = field(default_factory=Counter)
    sources: Counter[str] = field(default_factory=Counter)
    tokens: int = 0
    cost: float | None = None

    @property
    def lines(self) -> int:
        return self.statuses.total()

    def add(self, number: int, row: Mapping[str, Any], response: str) -> None:
        judge = row.get("judge") or {}
        judge = json.loads(judge) if isinstance(judge, str) else judge
        score = row.get("score")
        self.statuses[str(row["status"])] += 1
        if judge.get("model"):
            self.models[judge["model"]] += 1
        self.sources[str(judge.get("source", ""))] += 1
        usage = judge.get("usage") or {}
        if judge.get("source") == "call":
            self.tokens += usage.get("prompt_tokens", 0) + usage.get("completion_tokens", 0)
            if usage.get("cost") is not None:
                self.cost = (self.cost or 0.0) + usage["cost"]
        if cause := judge.get("cause"):
            self.causes[f"{cause}: {row.get('error') or ''}"[:SHORT]] += 1
        if score not in (None, "") and not cause:
            self.digest.add(float(score), number, response, str(row.get("reason") or ""))


def read_scored(place: str) -> ScoredFile:
    """Read a scored file of any format. ConfigError where it cannot be read, or has not been scored."""
    found, fields = ScoredFile(), None
    for number, row in rows_in(place):
        if "score" not in row or "status" not in row:
            raise ConfigError(
                f"{place}, line {number}, has no score; first run: plaudit score {place} -o scored.jsonl"
            )
        fields = fields or find_fields([name for name in row if name not in OURS])
        found.add(number, row, _response(row, fields))
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
    if found.tokens:
        facts.append(("tokens", f"{found.tokens:,}"))
    if found.cost is not None:
        facts.append(("cost", f"${found.cost:,.4f}"))
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
    finding = f"{len(scores):,} of {found.lines:,} lines have a score"
    finding += f", {fmean(scores):.3g} on average." if scores else "."
    if found.causes:
        cause, count = found.causes.most_common(1)[0]
        finding += f" Most of the others ({count:,}): {cause}."
    return Report(
        title="Scores",
        finding=finding,
        facts=tuple(facts),
        parts=tuple(parts),
        footer="Written by plaudit report.",
    )


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
