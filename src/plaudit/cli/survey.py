"""A look at the whole input before the first call: how many lines there are, and which are bad."""

from __future__ import annotations

import contextlib

from plaudit.cli.line import BadLine, Check, parse
from plaudit.cli.source import every_line, open_source
from plaudit.errors import ConfigError

SHOWN = 10


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


def survey(place: str, bad: BadLines, check: Check | None = None) -> int:
    """How many lines of a file can be scored; the others go to `bad`."""
    good = 0
    with contextlib.closing(open_source(place)) as source:
        for number, raw in every_line(source):
            if raw == b"[" and not good + bad.count:
                raise ConfigError(
                    f'{place} is one JSON array; turn it into lines: jq -c ".[]" {place} > lines.jsonl'
                )
            line = parse(number, raw, check)
            if isinstance(line, BadLine):
                bad.add(line)
            else:
                good += 1
    return good
