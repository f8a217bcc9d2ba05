"""A report as data: facts, tables and charts, for a page or a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from plaudit.report.measure import Share


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of words under a header; numbers are written as they should be read."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Bars:
    """A bar for each share, with its interval."""

    title: str
    bars: tuple[tuple[str, Share], ...]
    note: str = ""
    with_intervals: bool = True


LEGEND = ("the better response", "the worse response")


@dataclass(frozen=True, slots=True)
class Scatter:
    """A point for each response, in one of two colours."""

    title: str
    x_label: str
    y_label: str
    points: tuple[tuple[float, float, bool], ...]
    y_range: tuple[float, float]
    note: str = ""
    legend: tuple[str, str] = LEGEND
    """What the colours mean: that of points marked True, and the other."""


@dataclass(frozen=True, slots=True)
class Curve:
    """A named line; x rises from point to point."""

    name: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Baseline:
    """A value to compare with, drawn across."""

    name: str
    value: float


@dataclass(frozen=True, slots=True)
class Curves:
    """Lines over a common axis that begins at 0, and levels to compare them with."""

    title: str
    x_label: str
    y_label: str
    lines: Sequence[Curve]
    levels: Sequence[Baseline] = ()
    note: str = ""


Part = Table | Bars | Scatter | Curves


@dataclass(frozen=True, slots=True)
class Report:
    """What is shown, and what wrote it."""

    title: str
    finding: str
    """The result in one sentence."""
    facts: tuple[tuple[str, str], ...]
    """What was asked of which model, and how it was counted."""
    parts: tuple[Part, ...] = ()
    footer: str = ""
