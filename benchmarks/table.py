"""Tables in Markdown: readable on a terminal, and ready to be pasted into a page."""

from __future__ import annotations

from collections.abc import Sequence


def show(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table; the first column is aligned to the left, the others to the right."""
    widths = [max(len(row[column]) for row in (header, *rows)) for column in range(len(header))]
    print(f"\n{title}\n")
    print(_line(header, widths))
    print("|" + "|".join(_rule(column, width) for column, width in enumerate(widths)) + "|")
    for row in rows:
        print(_line(row, widths))
    print(flush=True)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (
        cell.rjust(width) if column else cell.ljust(width)
        for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )
    return "| " + " | ".join(padded) + " |"


def _rule(column: int, width: int) -> str:
    return "-" * (width + 1) + (":" if column else "-")
