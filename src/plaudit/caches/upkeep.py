"""Keeping a verdict file in shape: how big it is, dropping what is old, writing it out as text."""

from __future__ import annotations

import base64
import sqlite3
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

import msgspec

from plaudit.caches.schema import VERSION

ENTRY_BYTES = 64
"""What an entry takes in the file besides its value: key, time, checksum, its share of the page."""


class Writable(Protocol):
    """Where an export goes."""

    def write(self, data: bytes, /) -> object: ...


@dataclass(frozen=True, slots=True)
class CacheStats:
    """A verdict file in numbers. Times are seconds since 1970; None in an empty file."""

    entries: int
    bytes: int
    """What the entries take, without the free space between them."""
    oldest: float | None
    newest: float | None
    file_bytes: int
    """What the file and its write-ahead log take on disk."""
    schema_version: int


def stats(connection: sqlite3.Connection, path: Path) -> CacheStats:
    """Count everything: one pass over the file."""
    entries, size, oldest, newest = connection.execute(
        "SELECT count(*), coalesce(sum(length(value) + ?), 0), min(created), max(created) FROM verdicts",
        (ENTRY_BYTES,),
    ).fetchone()
    files = [file for file in (path, Path(f"{path}-wal")) if file.exists()]
    return CacheStats(entries, size, oldest, newest, sum(file.stat().st_size for file in files), VERSION)


def prune(
    connection: sqlite3.Connection,
    *,
    max_entries: int | None = None,
    max_bytes: int | None = None,
    created_before: float | None = None,
) -> int:
    """Drop what is older than a time, then the oldest until the rest fits. Returns how many went."""
    before = connection.total_changes
    connection.execute("BEGIN IMMEDIATE")
    if created_before is not None:
        connection.execute("DELETE FROM verdicts WHERE created < ?", (created_before,))
    if max_entries is not None:
        connection.execute(
            "DELETE FROM verdicts WHERE id IN "
            "(SELECT id FROM verdicts ORDER BY created DESC, id LIMIT -1 OFFSET ?)",
            (max_entries,),
        )
    if max_bytes is not None:
        connection.execute(
            "DELETE FROM verdicts WHERE id IN (SELECT id FROM (SELECT id, sum(length(value) + ?) "
            "OVER (ORDER BY created DESC, id) AS total FROM verdicts) WHERE total > ?)",
            (ENTRY_BYTES, max_bytes),
        )
    connection.execute("COMMIT")
    return connection.total_changes - before


def compact(connection: sqlite3.Connection) -> None:
    """Give free space back to the disk."""
    connection.execute("VACUUM")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def export(connection: sqlite3.Connection, out: Writable) -> int:
    """Write one JSON object a line: key (hex), created (UTC), value (or value_base64). Returns how many."""
    count = 0
    for key, created, value in connection.execute("SELECT key, created, value FROM verdicts"):
        line: dict[str, object] = {
            "key": key.hex(),
            "created": datetime.fromtimestamp(created, UTC).isoformat(timespec="milliseconds"),
        }
        try:
            line["value"] = msgspec.json.decode(value)
        except (msgspec.DecodeError, UnicodeDecodeError):
            line["value_base64"] = base64.b64encode(value).decode()
        out.write(msgspec.json.encode(line) + b"\n")
        count += 1
    return count
