"""The input of `plaudit score`: lines of a file or a pipe, numbered and in order, and a check of them all.

The rows of a table (CSV, Parquet, a JSON array, a data set's folder) are read as JSON lines.

Reading never waits longer than it was asked to. Lines of one group stay together for a judge that compares
them, though the input is read piece by piece: they stand next to each other, and the last group read so far
may not be complete yet.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import stat
import sys
import zlib
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, BinaryIO, cast

from plaudit.config import expanded
from plaudit.errors import ConfigError
from plaudit.judges.base import Judge, Panel, is_panel
from plaudit.judges.check import Demanding
from plaudit.rows import RowReader, kind_of
from plaudit.setup.json_lines import BadLine, Line, parse
from plaudit.setup.tables import BOM, FORMATS, format_of, open_binary, read_table

BLOCK = 1 << 18
LONGEST_LINE = 1 << 28
"""Bytes of a line beyond which the file is none of lines: all of one line is held in memory."""
CHUNK_LINES = 256
KEPT_BYTES = 8 << 20
"""A file up to this size is parsed once, and its lines are kept until they are scored."""
SHOWN = 10
"""Bad lines that are named; the others are counted."""
MAX_GROUP = 8192
"""Lines of one group beyond which it is not held back any longer."""
Taken = tuple[int, bytes] | Line | BadLine
"""What a source gives: a line by its number, or one that was read already."""


class LineSource:
    """The lines of one input. Blank lines are skipped, but they count in the numbers."""

    def __init__(self, file: BinaryIO, name: str, *, can_stall: bool) -> None:
        self.name = name
        self.exhausted = False
        """Whether everything has been taken."""
        self._file = file
        self._can_stall = can_stall and sys.platform != "win32"  # there, a pipe cannot be asked
        self._ended = False
        self._number = 0
        self._ready: deque[tuple[int, bytes]] = deque()
        self._tail: list[bytes] = []
        self._tail_size = 0

    def take(self, *, lines: int, size: int, wait: float) -> list[tuple[int, bytes]]:
        """Up to so many lines and bytes (one line at least), as far as they come within `wait` seconds."""
        taken: list[tuple[int, bytes]] = []
        left = size
        while len(taken) < lines and left > 0:
            if not self._ready and not self._read(0.0 if taken else wait):
                break
            while self._ready and len(taken) < lines and left > 0:
                taken.append(self._ready.popleft())
                left -= len(taken[-1][1])
        self.exhausted = self._ended and not self._ready
        return taken

    def close(self) -> None:
        self._file.close()

    def _read(self, wait: float) -> bool:
        """Read until there is a whole line; False where none came in time, or none will come."""
        while not self._ready and not self._ended:
            if self._can_stall and not select.select([self._file], [], [], wait)[0]:
                return False
            try:
                block = self._file.read(BLOCK)
            except (OSError, EOFError, zlib.error) as error:
                raise ConfigError(f"{self.name} cannot be read any further: {error}") from error
            self._ended = not block
            rest, *others = block.split(b"\n")
            self._tail.append(rest)
            self._tail_size += len(rest)
            if self._tail_size > LONGEST_LINE:
                why = f"is longer than {LONGEST_LINE >> 20} MiB; write one JSON object per line"
                raise ConfigError(f"{self.name}: line {self._number + 1} {why}")
            for start in [*others, b""] if self._ended else others:
                self._number += 1
                line = b"".join(self._tail).removeprefix(BOM if self._number == 1 else b"").strip(b" \t\r")
                if line:
                    self._ready.append((self._number, line))
                self._tail, self._tail_size = [start], len(start)
        return bool(self._ready)


class RowSource:
    """The rows of a table as JSON lines; or lines as they were parsed when their file was checked."""

    def __init__(self, rows: Iterator[Taken]) -> None:
        self._rows = rows
        self._next = next(rows, None)

    @property
    def exhausted(self) -> bool:
        return self._next is None

    def take(self, *, lines: int, size: int, wait: float) -> list[Taken]:  # noqa: ARG002 - as a LineSource
        """Up to so many rows and bytes, one row at least."""
        taken: list[Taken] = []
        while self._next is not None and len(taken) < lines and size > 0:
            taken.append(self._next)
            size -= 0 if isinstance(self._next, BadLine) else len(self._next[1])
            self._next = next(self._rows, None)
        return taken

    def close(self) -> None:
        self._rows = iter(())
        self._next = None


def open_source(place: str) -> LineSource | RowSource:
    """The lines of a file, which may be compressed by gzip, or of stdin where the place is `-`."""
    if not place:
        raise ConfigError("the name of the input is empty; give a file, or - for stdin")
    path = expanded(place)
    try:
        if place == "-":
            stdin = cast(BinaryIO, os.fdopen(0, "rb", buffering=0, closefd=False))
            return LineSource(stdin, "stdin", can_stall=not _is_regular(0))
        if path.exists() and (kind := format_of(place)) != "jsonl":
            return RowSource(read_table(place, kind))
        if path.is_file():
            return LineSource(open_binary(path), place, can_stall=False)
        file = cast(BinaryIO, path.open("rb", buffering=0))
    except FileNotFoundError:
        raise ConfigError(_missing(place, path)) from None
    except OSError as error:
        raise ConfigError(f"{place} cannot be read: {error.strerror}") from None
    return LineSource(file, place, can_stall=not _is_regular(file.fileno()))


def can_be_read_twice(place: str) -> bool:
    """Whether the input is a plain file or a folder, so that it may be checked before the first call."""
    path = expanded(place)
    return place != "-" and (path.is_file() or path.is_dir())


def every_line(source: LineSource | RowSource) -> Iterator[Taken]:
    """All lines, however long they take to come."""
    while not source.exhausted:
        yield from source.take(lines=256, size=BLOCK, wait=1.0)


def rows_in(place: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """The rows of an input of any format, with their line numbers. ConfigError where it cannot be read."""
    with contextlib.closing(open_source(place)) as source:
        for one in every_line(source):
            if isinstance(one, BadLine):
                raise ConfigError(f"{place}: {one}")
            number, raw = one[:2]
            try:
                row = json.loads(raw)
            except (ValueError, RecursionError) as error:  # the latter: nested too deeply
                raise ConfigError(f"{place}, line {number}, is not JSON: {error}") from None
            if not isinstance(row, dict):
                raise ConfigError(f"{place}, line {number}, is {kind_of(row)}, not an object")
            yield number, row


def _is_regular(descriptor: int) -> bool:
    return stat.S_ISREG(os.fstat(descriptor).st_mode)


def _missing(place: str, path: Path) -> str:
    if "://" in place:
        return f"{place} is a URL; download it, and name the file"
    there = sorted(path.parent.iterdir()) if path.parent.is_dir() else []
    names = [found.name for found in there if FORMATS.keys() & set(found.suffixes)]
    near = get_close_matches(path.name, names, n=1) or names[:5]
    hint = f"; the folder contains {', '.join(near)}" if near else ""
    return f"{place} does not exist{hint}"


class WholeGroups:
    """Holds the last group back until something else follows, or nothing does."""

    def __init__(self) -> None:
        self._held: list[Line] = []

    def __len__(self) -> int:
        return len(self._held)

    def add(self, lines: list[Line], *, is_end: bool) -> list[Line]:
        """The lines that may go now: those of all groups that are complete."""
        lines = self._held + lines
        self._held = []
        if is_end or not lines or lines[-1].sample.group is None or len(lines) >= MAX_GROUP:
            return lines
        start = len(lines) - 1
        while start and lines[start - 1].sample.group == lines[-1].sample.group:
            start -= 1
        self._held = lines[start:]
        return lines[:start]


class BadLines:
    """Lines that cannot be scored: of all the numbers are kept, of the first ten the reasons."""

    def __init__(self) -> None:
        self.numbers: set[int] = set()
        self._first: list[BadLine] = []

    @property
    def count(self) -> int:
        return len(self.numbers)

    def add(self, line: BadLine) -> None:
        self.numbers.add(line.number)
        if len(self._first) < SHOWN:
            self._first.append(line)

    @property
    def lack_fields(self) -> bool:
        """Whether fields are missing in those that are named."""
        return any(line.lacks_field for line in self._first)

    def __str__(self) -> str:
        shown = [f"  {line}" for line in self._first]
        if self.count > len(self._first):
            shown.append(f"  and {self.count - len(self._first):,} more")
        return "\n".join(shown)


@dataclass(frozen=True, slots=True)
class CheckedInput:
    """A file whose every line was looked at."""

    total: int
    """Lines that can be scored."""
    bad: BadLines
    kept: RowSource | None
    """The lines that can be scored; None where they are too many to be kept in memory."""


def check_input(place: str, judge: Judge | Panel, read: RowReader | None = None) -> CheckedInput:
    """Parse every line of a file for a judge, before the first call is paid for.

    ConfigError where it cannot be read, or a judge that compares responses cannot compare these.
    """
    check = judge.check if isinstance(judge, Demanding) else None
    panel = judge if is_panel(judge) else None
    read = read or RowReader()
    groups, chunk, bad, total = WholeGroups(), list[Line](), BadLines(), 0
    kept, size = list[Line](), 0
    with contextlib.closing(open_source(place)) as source:
        for one in every_line(source):
            line = one if isinstance(one, Line | BadLine) else parse(*one, check, read=read)
            if isinstance(line, BadLine):
                bad.add(line)
                continue
            total += 1
            size += len(line.raw)
            if size <= KEPT_BYTES:
                kept.append(line)
            else:
                kept.clear()
            if panel is not None:
                chunk.append(line)
                if len(chunk) == CHUNK_LINES:
                    _check_groups(panel, groups.add(chunk, is_end=False), place)
                    chunk = []
    if panel is not None:
        _check_groups(panel, groups.add(chunk, is_end=True), place)
    return CheckedInput(total, bad, RowSource(iter(kept)) if size <= KEPT_BYTES else None)


def _check_groups(panel: Panel, lines: list[Line], place: str) -> None:
    """Let a panel say what it would ask, without asking it."""
    try:
        for _ in panel.split([line.sample for line in lines]):
            pass
    except ConfigError as error:
        numbers = f"lines {lines[0].number} to {lines[-1].number}"
        raise ConfigError(f"{place}, {numbers}: {error}") from None
