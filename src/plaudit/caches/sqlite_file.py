"""A verdict file as a file: its layout, what its errors mean, where it lies.

A damaged file is set aside, never deleted; a file of another program is left alone.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from plaudit.errors import CacheError

# -- its layout ----------------------------------------------------------------------------------------


APPLICATION_ID = int.from_bytes(b"plau", "big")
VERSION = 1
MARK = "plaudit verdict cache"

# Rows lie in the order of their storing, and an index finds them by the first 64 bits of their keys. In a
# tree of whole rows by key, every verdict of a group has a page of its own: each group writes twice to five
# times as much, and the verdicts of a batch are read from as many pages. Files laid out so (with `id INTEGER
# PRIMARY KEY`) are used as they are. Two keys with the same 64 bits evict each other; the whole key is stored
# and compared, so neither is ever taken for the other.
_CREATE = f"""
CREATE TABLE verdicts ( /* {MARK} */
    id INTEGER NOT NULL UNIQUE,
    key BLOB NOT NULL,
    created REAL NOT NULL,
    crc INTEGER NOT NULL,
    value BLOB NOT NULL
)"""

CHECKPOINT_PAGES = 8192
"""Pages of 4 KB in the write-ahead log before they move into the file. At SQLite's 1,000, every batch of a
thousand verdicts on a large store waits for the disk, and takes seven times as long."""


class Unusable(Exception):
    """A verdict file of ours that this version cannot read: to be set aside."""


def adopt(connection: sqlite3.Connection, path: Path) -> None:
    """Make sure that the file is a verdict cache of this version; create it where there is nothing yet."""
    if _is_empty(connection):
        _create(connection)
    number, version = _number(connection, "application_id"), _number(connection, "user_version")
    if number != APPLICATION_ID:
        raise CacheError(f"{path} is another program's database and was left alone; name another cache file")
    if version > VERSION:
        raise CacheError(
            f"the cache {path} was made by a newer plaudit (layout {version}, this one knows {VERSION}); "
            "upgrade plaudit, or name another cache file"
        )
    if version < VERSION:
        raise Unusable(f"its layout {version} is older than {VERSION} and cannot be converted")


def choose_journal(connection: sqlite3.Connection, *, is_shared_memory_safe: bool) -> bool:
    """Write ahead where it can be had; True if so. Readers and a writer then never wait for each other."""
    wanted = "wal" if is_shared_memory_safe else "delete"
    mode = connection.execute("PRAGMA journal_mode").fetchone()[0]
    if mode != wanted:
        mode = connection.execute(f"PRAGMA journal_mode = {wanted}").fetchone()[0]
    if mode != "wal":
        connection.execute("PRAGMA synchronous = FULL")
        return False
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
    connection.execute(f"PRAGMA journal_size_limit = {2 * CHECKPOINT_PAGES * 4096}")
    return True


def _is_empty(connection: sqlite3.Connection) -> bool:
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    return not tables and _number(connection, "application_id") == 0


def _create(connection: sqlite3.Connection) -> None:
    """In one transaction of the plain journal: the file's first page names us before anybody else looks."""
    connection.execute("BEGIN IMMEDIATE")
    if _is_empty(connection):  # another process may have been first
        connection.execute(_CREATE)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
    connection.execute("COMMIT")


def _number(connection: sqlite3.Connection, pragma: str) -> int:
    return int(connection.execute(f"PRAGMA {pragma}").fetchone()[0])


# -- damage and refusals -------------------------------------------------------------------------------


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
    try:
        with path.open("rb") as file:
            head = file.read(4096)
    except FileNotFoundError:
        return True  # another process has just set it aside, as none would that it had not made
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


# -- network file systems, where shared memory between processes cannot be trusted ---------------------


NETWORK_KINDS = frozenset({
    "9p", "afs", "beegfs", "ceph", "cifs", "fuse.glusterfs", "fuse.sshfs", "gpfs", "lustre", "ncpfs", "nfs",
    "nfs4", "orangefs", "pvfs2", "smb3", "smbfs", "wekafs",
})  # fmt: skip
MOUNTS = Path("/proc/self/mountinfo")


def network_kind(path: Path) -> str | None:
    """The kind of network file system that holds this path; None for a local disk, or where it is unknown."""
    try:
        mounts = MOUNTS.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return None  # no Linux
    kind = kind_of(path.resolve(), mounts)
    return kind if kind in NETWORK_KINDS else None


def kind_of(path: PurePosixPath | Path, mounts: str) -> str | None:
    """The file system of the innermost mount above a path, from the text of /proc/self/mountinfo."""
    kind, depth = None, -1
    for line in mounts.splitlines():
        place, _, rest = line.partition(" - ")
        fields = place.split(" ")
        if len(fields) < 5 or not rest:
            continue
        point = PurePosixPath(fields[4].replace("\\040", " "))
        inner = len(point.parts)
        if inner >= depth and path.is_relative_to(point):  # of two at one place, the later hides the earlier
            kind, depth = rest.split(" ")[0], inner
    return kind
