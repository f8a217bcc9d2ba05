"""What a verdict file's trouble means, and where a damaged file goes: set aside, never deleted."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from plaudit.caches.schema import APPLICATION_ID, MARK
from plaudit.errors import CacheError

COMPANIONS = ("-wal", "-shm", "-journal")
CACHE_SUFFIXES = {".sqlite", ".sqlite3", ".db", ".cache"}
_MAGIC = b"SQLite format 3\0"
_APPLICATION_ID_AT = 68

FileId = tuple[int, int]

_REMEDIES = {
    sqlite3.SQLITE_FULL: "free some space, or shrink it with `plaudit cache prune --max-size 500MB`",
    sqlite3.SQLITE_READONLY: "make the file and its folder writable, or name another file",
    sqlite3.SQLITE_PERM: "make the file and its folder writable, or name another file",
    sqlite3.SQLITE_CANTOPEN: "check that the file and its folder can be read and written, or name another",
    sqlite3.SQLITE_IOERR: "check the disk, or name a file on another one",
}


def code_of(error: sqlite3.Error) -> int:
    """SQLite's primary result code; 0 when the error did not come from SQLite itself."""
    return (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF


def is_busy(error: sqlite3.Error) -> bool:
    """Whether another process is at the file just now."""
    return code_of(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def is_damage(error: sqlite3.Error) -> bool:
    """Whether the file itself is broken, or our table gone from it."""
    is_stripped = str(error).startswith(("no such ", "unsupported file format"))
    return is_stripped or code_of(error) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def refusal(path: Path, error: sqlite3.Error | OSError) -> CacheError:
    """The error to raise for a file that is not damaged, but cannot be used."""
    if isinstance(error, OSError):
        return CacheError(f"the cache {path} cannot be used: {error.strerror or error}; name another file")
    remedy = _REMEDIES.get(code_of(error), "name another file")
    return CacheError(f"the cache {path} cannot be used: {error}; {remedy}")


def file_id(path: Path) -> FileId | None:
    """What tells this file from another that took its name; None when there is none."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def looks_like_ours(path: Path) -> bool:
    """Whether a file that SQLite cannot read was a verdict cache once: by its first page, else by its name.

    Call it only once SQLite has given up: closing any handle on a database drops this process's locks on it.
    """
    with path.open("rb") as file:
        head = file.read(4096)
    number = head[_APPLICATION_ID_AT : _APPLICATION_ID_AT + 4]
    if number == APPLICATION_ID.to_bytes(4, "big") or MARK.encode() in head:
        return True
    is_anothers = head.startswith(_MAGIC) and len(number) == 4
    return not is_anothers and path.suffix.lower() in CACHE_SUFFIXES


def set_aside(path: Path, found: FileId | None) -> Path | None:
    """Rename a damaged file and its companions to NAME.damaged-<n>; None when another process already has.

    Reward workers start together and find the damage together: the lock, and the look at which file it is,
    keep the second one from setting aside the fresh file of the first.
    """
    with _folder_lock(path.parent):
        if file_id(path) != found:
            return None
        number = 1
        while (aside := path.with_name(f"{path.name}.damaged-{number}")).exists():
            number += 1
        for companion in (*COMPANIONS, ""):  # the file last: it must never meet another file's journal
            with contextlib.suppress(FileNotFoundError):
                Path(f"{path}{companion}").rename(f"{aside}{companion}")
        return aside


@contextlib.contextmanager
def _folder_lock(folder: Path) -> Iterator[None]:
    """One process at a time, where the system can; the lock goes with its process."""
    try:
        import fcntl

        handle = os.open(folder, os.O_RDONLY)
    except (ImportError, OSError):
        yield
        return
    try:
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
