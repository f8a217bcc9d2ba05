"""Lines from a file or a pipe, numbered and in order, without ever waiting longer than told."""

from __future__ import annotations

import gzip
import os
import select
import stat
import sys
import zlib
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from plaudit.errors import ConfigError

BLOCK = 1 << 18
BOM = b"\xef\xbb\xbf"


class Source:
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
        """Free the file."""
        self._file.close()

    def _read(self, wait: float) -> bool:
        """Read until there is a whole line; False where none came in time, or none will come."""
        while not self._ready and not self._ended:
            if self._can_stall and not select.select([self._file], [], [], wait)[0]:
                return False
            self._split(self._block())
        return bool(self._ready)

    def _block(self) -> bytes:
        try:
            return self._file.read(BLOCK)
        except (OSError, EOFError, zlib.error) as error:
            raise ConfigError(f"{self.name} cannot be read any further: {error}") from error

    def _split(self, block: bytes) -> None:
        if not block:
            self._ended = True
        *whole, rest = block.split(b"\n")
        if whole or not block:
            self._tail.append(whole.pop(0) if whole else b"")
            self._add(b"".join(self._tail))
            self._tail = []
            for line in whole:
                self._add(line)
        if rest:
            self._tail.append(rest)

    def _add(self, line: bytes) -> None:
        self._number += 1
        if self._number == 1:
            line = line.removeprefix(BOM)
        line = line.strip(b" \t\r")
        if line:
            self._ready.append((self._number, line))


def open_source(place: str) -> Source:
    """The lines of a file (compressed where its name ends in .gz), or of stdin where the place is `-`."""
    path = Path(place).expanduser()
    try:
        if place == "-":
            return Source(_unbuffered(0), "stdin", can_stall=not _is_regular(0))
        if path.suffix == ".gz":
            return Source(cast(BinaryIO, gzip.open(path)), place, can_stall=False)
        file = cast(BinaryIO, path.open("rb", buffering=0))
    except FileNotFoundError:
        raise ConfigError(_missing(place, path)) from None
    except IsADirectoryError:
        raise ConfigError(f"{place} is a folder; name a file of JSON lines in it") from None
    except OSError as error:
        raise ConfigError(f"{place} cannot be read: {error.strerror}") from None
    return Source(file, place, can_stall=not _is_regular(file.fileno()))


def can_be_read_twice(place: str) -> bool:
    """Whether the input is a plain file, so that it may be checked before the first call."""
    return place != "-" and Path(place).expanduser().is_file()


def every_line(source: Source) -> Iterator[tuple[int, bytes]]:
    """All lines, however long they take to come."""
    while not source.exhausted:
        yield from source.take(lines=256, size=BLOCK, wait=1.0)


def _unbuffered(descriptor: int) -> BinaryIO:
    return cast(BinaryIO, os.fdopen(descriptor, "rb", buffering=0, closefd=False))


def _is_regular(descriptor: int) -> bool:
    return stat.S_ISREG(os.fstat(descriptor).st_mode)


def _missing(place: str, path: Path) -> str:
    near = sorted(path.parent.glob("*.jsonl*"))[:5] if path.parent.is_dir() else []
    hint = f"; in that folder there is {', '.join(found.name for found in near)}" if near else ""
    return f"there is no file {place}{hint}"
