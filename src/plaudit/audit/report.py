"""What an audit shows, whatever it is shown on: facts, tables and charts."""

from __future__ import annotations

from dataclasses import dataclass, field

from plaudit.audit.measure import Share


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


@dataclass(frozen=True, slots=True)
class Scatter:
    """A point for each response, the better ones in another colour."""

    title: str
    x_label: str
    y_label: str
    points: tuple[tuple[float, float, bool], ...]
    y_range: tuple[float, float]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """One audit."""

    title: str
    finding: str
    """The result in one sentence."""
    facts: tuple[tuple[str, str], ...]
    """Who judged what, and how it was counted."""
    parts: tuple[Table | Bars | Scatter, ...] = field(default=())
