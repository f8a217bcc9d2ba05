"""How a verdict file is laid out, how we know it for ours, and how it is prepared for use."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from plaudit.errors import CacheError

APPLICATION_ID = int.from_bytes(b"plau", "big")
VERSION = 1
MARK = "plaudit verdict cache"

# The row's number is the first 64 bits of the key, so that a look-up is one descent of one tree: on a store
# of a million, twice as fast as a table keyed by the whole digest. Two keys with the same 64 bits evict each
# other; the whole key is stored and compared, so neither is ever taken for the other.
_CREATE = f"""
CREATE TABLE verdicts ( /* {MARK} */
    id INTEGER PRIMARY KEY,
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
