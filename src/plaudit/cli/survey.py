"""A look at the whole input before the first call: how many lines there are, and which are bad."""

from __future__ import annotations

import contextlib

from plaudit.cli.source import every_line, open_source
from plaudit.cli.whole_group import WholeGroups
from plaudit.errors import ConfigError
from plaudit.judges.base import Judge, Panel, is_panel
from plaudit.judges.check import Demanding
from plaudit.setup.json_lines import BadLine, Line, parse

SHOWN = 10
CHUNK_LINES = 256


class BadLines:
    """Lines that cannot be scored: all are counted, the first ten are kept."""

    def __init__(self) -> None:
        self.count = 0
        self._first: list[BadLine] = []

    def add(self, line: BadLine) -> None:
        self.count += 1
        if len(self._first) < SHOWN:
            self._first.append(line)

    def __str__(self) -> str:
        shown = [f"  {line}" for line in self._first]
        if self.count > len(self._first):
            shown.append(f"  and {self.count - len(self._first):,} more")
        return "\n".join(shown)


def survey(place: str, bad: BadLines, judge: Judge | Panel | None = None) -> int:
    """How many lines of a file can be scored; the others go to `bad`.

    Raises ConfigError where a panel cannot compare the lines that are left.
    """
    check = judge.check if isinstance(judge, Demanding) else None
    panel = judge if is_panel(judge) else None
    groups, lines, good = WholeGroups(), list[Line](), 0
    with contextlib.closing(open_source(place)) as source:
        for number, raw in every_line(source):
            if raw == b"[" and not good + bad.count:
                raise ConfigError(
                    f'{place} is one JSON array; turn it into lines: jq -c ".[]" {place} > lines.jsonl'
                )
            line = parse(number, raw, check)
            if isinstance(line, BadLine):
                bad.add(line)
                continue
            good += 1
            if panel is not None:
                lines.append(line)
                if len(lines) == CHUNK_LINES:
                    _rehearse(panel, groups.add(lines, is_end=False), place)
                    lines = []
    if panel is not None:
        _rehearse(panel, groups.add(lines, is_end=True), place)
    return good


def _rehearse(panel: Panel, lines: list[Line], place: str) -> None:
    """Let a panel say what it would ask, without asking it."""
    try:
        for _ in panel.split([line.sample for line in lines]):
            pass
    except ConfigError as error:
        numbers = f"lines {lines[0].number} to {lines[-1].number}"
        raise ConfigError(f"{place}, {numbers}: {error}") from None
