"""A journal as files: FILE is being written, FILE.000001 and so on are full ones, of which the oldest go.

Several processes may write one journal: each appends a block at a time, under a lock. Who opens it to write
cuts off what a dead writer left unfinished; readers pass over damage by looking for the next block.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from plaudit.errors import JournalError
from plaudit.files import close_to_others, create_private_file, is_anothers_link
from plaudit.journal.blocks import HEAD_SIZE, MARK, BlockHead, read_head

try:
    import fcntl
except ImportError:  # Windows: one process a journal
    fcntl = None  # type: ignore[assignment]

log = logging.getLogger("plaudit")

VERSION = 1
_MAGIC = b"plaudit journal "
TITLE = _MAGIC + b"%03d\n" % VERSION
SEGMENTS = 8
"""A full journal is in so many files; the oldest is dropped for a new one."""
SEARCH = 1 << 20
"""Bytes that are searched for the next block at a time."""
START = 64 << 20
"""Bytes of a file that does not begin like a journal that are searched for the first block."""


# -- writing ----------------------------------------------------------------------------------------------


class Appender:
    """Appends blocks to a journal, and keeps it below its size.

    Args:
        path: The file.
        opening: A block that every file begins with, so that it is there when the first ones are dropped.
        max_bytes: Of all files together; a single block may be larger.

    Raises:
        JournalError: the file cannot be written, or is something else.
    """

    def __init__(self, path: Path, opening: bytes, *, max_bytes: int) -> None:
        self._path = path
        self._opening = opening
        self._max_bytes = max_bytes
        self._segment_bytes = max(max_bytes // SEGMENTS, 1)
        self._fd = -1
        self._is_new = True
        """Whether nothing is in the file yet: a block larger than files should be goes into such a one."""
        self._open()

    def append(self, data: bytes) -> None:
        """Write a block; when this returns, it survives the end of this process. Raises OSError."""
        if not self._is_current():
            self.close()
            self._open()
        elif os.fstat(self._fd).st_size + len(data) > self._segment_bytes and not self._is_new:
            self._set_aside(len(data))
        with self._locked():
            self._put(data)
        self._is_new = False

    def _put(self, data: bytes) -> None:
        end = os.fstat(self._fd).st_size
        try:
            written = 0
            while written < len(data):
                written += os.write(self._fd, data[written:])
        except OSError:  # a full disk: half a block would swallow the beginning of the next one
            os.ftruncate(self._fd, end)
            raise

    def close(self) -> None:
        """Bring everything to the disk. Safe to call twice."""
        if self._fd >= 0:
            with contextlib.suppress(OSError):
                os.fsync(self._fd)
            os.close(self._fd)
            self._fd = -1

    def _open(self) -> None:
        try:
            if is_anothers_link(self._path):
                why = "is a link that another user has made; name the file itself"
                raise JournalError(f"the journal {self._path} {why}")
            self._path.parent.mkdir(parents=True, exist_ok=True)
            create_private_file(self._path)
            if not self._path.is_file():
                raise JournalError(f"the journal {self._path} is not a file; name one")
            self._fd = os.open(self._path, os.O_RDWR | os.O_APPEND | getattr(os, "O_CLOEXEC", 0))
            with self._locked():
                found = os.pread(self._fd, len(TITLE), 0)
                if TITLE.startswith(found) and found != TITLE:  # new, or cut off within its title
                    os.ftruncate(self._fd, 0)
                    os.write(self._fd, TITLE)
                check_title(os.pread(self._fd, len(TITLE), 0), self._path)
                close_to_others(self._path)
                self._cut_torn_tail()
                self._is_new = os.fstat(self._fd).st_size == len(TITLE)
                self._put(self._opening)
        except JournalError:
            self.close()
            raise
        except OSError as error:
            raise _unwritable(self._path, error.strerror) from error

    def _cut_torn_tail(self) -> None:
        segment = Segment(self._path)
        try:
            for found in segment.new_blocks():
                if isinstance(found, Damage) and found.is_tail:
                    log.warning("%s: cut %d bytes that a writer left unfinished", self._path, found.size)
                    os.ftruncate(self._fd, found.offset)
        finally:
            segment.close()

    def _is_current(self) -> bool:
        if self._fd < 0:  # it could not be opened again
            return False
        with contextlib.suppress(FileNotFoundError):
            return self._path.stat().st_ino == os.fstat(self._fd).st_ino
        return False

    def _set_aside(self, coming: int) -> None:
        """Begin a new file; the full one gets the next number. The oldest make room for what is coming."""
        with self._locked():
            if self._is_current():
                older = _numbered(self._path)
                number = older[-1][0] + 1 if older else 1
                self._path.rename(self._path.with_name(f"{self._path.name}.{number:06d}"))
                new = max(self._segment_bytes, len(TITLE) + len(self._opening) + coming)
                full = [(path, _size(path)) for _, path in _numbered(self._path)]
                while full and new + sum(size for _, size in full) > self._max_bytes:
                    full.pop(0)[0].unlink(missing_ok=True)
        self.close()
        self._open()

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        if fcntl is None:
            yield
            return
        with contextlib.suppress(OSError):  # a file system without locks: one process a journal
            fcntl.flock(self._fd, fcntl.LOCK_EX)
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                fcntl.flock(self._fd, fcntl.LOCK_UN)


def check_writable(path: Path) -> None:
    """Refuse a journal that cannot be written. One that is not there yet is not made.

    Raises:
        JournalError: the file cannot be written, or is something else.
    """
    try:
        path.stat()
    except FileNotFoundError:
        if path.is_symlink():
            raise _unwritable(path, "it is a link to a file that does not exist") from None
        above = next(one for one in path.absolute().parents if one.exists())
        if not os.access(above, os.W_OK | os.X_OK):
            raise _unwritable(path, f"{above} is read-only for you") from None
    except OSError as error:
        raise _unwritable(path, error.strerror) from error
    else:
        Appender(path, b"", max_bytes=1 << 60).close()


def _unwritable(path: Path, why: str | None) -> JournalError:
    return JournalError(f"the journal {path} cannot be written: {why}; name another file")


def _size(path: Path) -> int:
    with contextlib.suppress(FileNotFoundError):
        return path.stat().st_size
    return 0


def _numbered(path: Path) -> list[tuple[int, Path]]:
    pattern = re.compile(re.escape(path.name) + r"\.(\d{6,})")
    found = [(int(match[1]), one) for one in path.parent.iterdir() if (match := pattern.fullmatch(one.name))]
    return sorted(found)


# -- reading ----------------------------------------------------------------------------------------------


class Located(NamedTuple):
    """A block and where it begins."""

    offset: int
    head: BlockHead


class Damage(NamedTuple):
    """Bytes that hold no block."""

    offset: int
    size: int
    is_tail: bool
    """Whether nothing follows: a writer was stopped there, or is writing just now."""


def segments_of(path: Path) -> list[Path]:
    """The files of a journal, the oldest first.

    Raises:
        JournalError: there is none.
    """
    try:
        found = [one for _, one in _numbered(path)]
    except OSError:
        found = []
    if path.exists():
        found.append(path)
    if not found:
        raise JournalError(
            f"there is no journal {path}; write one with: plaudit score ... --journal {path.name}"
        )
    return found


class Segment:
    """One file of a journal, read from where reading stopped before."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            if not path.is_file() and not path.is_dir():  # a pipe would be waited for
                raise JournalError(f"{path} is not a file; name a journal")
            self._file = path.open("rb")
        except OSError as error:
            raise JournalError(
                f"{path} cannot be read: {error.strerror}; name a journal that you may read"
            ) from error
        self._next = 0

    def close(self) -> None:
        self._file.close()

    def new_blocks(self) -> Iterator[Located | Damage]:
        """Blocks that were written since the last call. A torn tail is named, and looked at again next time.

        Raises:
            JournalError: this is no journal, or one of another version.
        """
        size = os.fstat(self._file.fileno()).st_size
        if self._next == 0:
            if size < len(TITLE):
                start = self._read(0, size)
                if not TITLE.startswith(start):
                    check_title(start, self.path)
                if size:
                    yield Damage(0, size, is_tail=True)
                return
            title = self._read(0, len(TITLE))
            if not title.startswith(_MAGIC) and (found := self._search(0, min(size, START))) is not None:
                yield Damage(0, found, is_tail=False)  # its beginning is missing
                self._next = found
            else:
                check_title(title, self.path)
                self._next = len(TITLE)
        while self._next < size:
            head = read_head(self._read(self._next, HEAD_SIZE))
            if head is not None and self._next + head.size <= size:
                here, self._next = self._next, self._next + head.size
                yield Located(here, head)
                continue
            found = self._search(self._next + 1, size)
            if found is None:
                yield Damage(self._next, size - self._next, is_tail=True)
                return
            yield Damage(self._next, found - self._next, is_tail=False)
            self._next = found

    def facts(self, block: Located) -> bytes:
        return self._read(block.offset + HEAD_SIZE, block.head.facts_bytes)

    def texts(self, block: Located) -> bytes:
        return self._read(block.offset + HEAD_SIZE + block.head.facts_bytes, block.head.texts_bytes)

    def _search(self, start: int, size: int) -> int | None:
        while start < size:
            chunk = self._read(start, SEARCH + HEAD_SIZE)
            place = chunk.find(MARK)
            while place >= 0:
                head = read_head(chunk[place : place + HEAD_SIZE])
                if head is not None and start + place + head.size <= size:
                    return start + place
                place = chunk.find(MARK, place + 1)
            start += SEARCH
        return None

    def _read(self, offset: int, size: int) -> bytes:
        return os.pread(self._file.fileno(), size, offset)


def check_title(title: bytes, path: Path) -> None:
    """Raises JournalError where a file does not begin like a journal of this version."""
    if title == TITLE:
        return
    if not title.startswith(_MAGIC):
        raise JournalError(f"{path} is not a journal and was left alone; name another file")
    version = title[len(_MAGIC) :].strip().decode(errors="replace")
    raise JournalError(
        f"{path} is a journal of version {version}, and this plaudit reads {VERSION:03d}; "
        "read it with the plaudit that wrote it (plaudit journal export), or upgrade"
    )
