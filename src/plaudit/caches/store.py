"""A verdict file in use: one connection, opened on first use, that outlives damage of its file."""

from __future__ import annotations

import base64
import contextlib
import sqlite3
import struct
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from operator import itemgetter
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec

from plaudit.caches import leases
from plaudit.caches.base import Claim
from plaudit.caches.sqlite_file import (
    COMPANIONS,
    VERSION,
    FileId,
    Unusable,
    adopt,
    choose_journal,
    code_of,
    file_id,
    is_busy,
    is_damage,
    looks_like_ours,
    network_kind,
    refusal,
    set_aside,
)
from plaudit.config import home
from plaudit.errors import CacheError
from plaudit.files import close_to_others, create_private_file, is_anothers_link, make_private_folder

T = TypeVar("T")

BUSY_S = 0.25
"""How long SQLite waits for another process's write before it says so."""
LEASE_TRIES = 8
"""How often so long: then the keys are looked up without being leased."""

_INSERT = "INSERT OR REPLACE INTO verdicts (id, key, created, crc, value) VALUES (?, ?, ?, ?, ?)"
_head = struct.Struct(">q").unpack_from


class Busy(CacheError):
    """Another process is writing; nothing was done, and it may be tried again."""


def connect(path: Path) -> sqlite3.Connection:
    """A connection as Store wants it: no transactions but those it begins itself."""
    return sqlite3.connect(path, isolation_level=None, timeout=BUSY_S)


def _crc(key: bytes, value: bytes) -> int:
    return zlib.crc32(value, zlib.crc32(key))


def _is_whole(key: object, crc: object, value: object) -> bool:
    """Whether a row is as it was written; a torn one may hold anything."""
    return isinstance(key, bytes) and isinstance(value, bytes) and _crc(key, value) == crc


class Store:
    """Everything here blocks: call it from one thread, and never from a forked child of its process.

    A damaged file is set aside and a fresh one started; `on_trouble` hears of it.
    """

    def __init__(
        self,
        path: Path,
        *,
        on_trouble: Callable[[str], None],
        clock: Callable[[], float] = time.time,
        connect: Callable[[Path], sqlite3.Connection] = connect,
    ) -> None:
        self.path = path
        self._on_trouble = on_trouble
        self._clock = clock
        self._connect = connect
        self._connection: sqlite3.Connection | None = None
        self._file: FileId | None = None
        self._is_slow_told = False
        self._can_lease = False
        self._owners: set[int] = set()
        self._stored: list[int] = []
        """Rows whose leases are to be dropped by the next claim, which writes to the same pages anyway."""

    def __str__(self) -> str:
        return f"the cache {self.path}"

    def get(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """The values of those keys that are there and whole."""
        return self.run(lambda connection: self._read(connection, keys))

    def claim(self, keys: Sequence[bytes], *, owner: int, is_idle: bool) -> Claim:
        """The values that are there; what is free of the rest is leased, in the same transaction.

        A file that cannot be written, or that others keep locked, is read all the same.
        """
        # The first fails if others wrote meanwhile.
        for begin in ("BEGIN", *("BEGIN IMMEDIATE",) * LEASE_TRIES):

            def work(connection: sqlite3.Connection, begin: str = begin) -> Claim:
                connection.execute(begin)
                values = self._read(connection, keys)
                missing = {_head(key)[0]: key for key in keys if key not in values}
                claim = Claim(values)
                is_leasing = self._can_lease and (bool(missing) or not keys)
                if is_leasing:
                    now = self._clock()
                    leases.settle(connection, self._stored)
                    others = leases.claim(connection, missing, owner=owner, is_idle=is_idle, now=now)
                    claim = Claim(values, *others)
                    self._owners.add(owner)
                connection.execute("COMMIT")
                if is_leasing:
                    self._stored.clear()
                return claim

            try:
                return self.run(work)
            except Busy:
                continue
            except CacheError:
                break
        return Claim(self.get(keys))

    def release(self, keys: Sequence[bytes] | None, *, owner: int) -> None:
        """Give up an owner's leases on some keys, or all of them."""
        if owner not in self._owners:
            return  # none were written
        ids = None if keys is None else {_head(key)[0]: key for key in keys}

        def work(connection: sqlite3.Connection) -> None:
            if self._can_lease:
                connection.execute("BEGIN IMMEDIATE")
                leases.settle(connection, self._stored)
                leases.release(connection, ids, owner=owner, now=self._clock())
                connection.execute("COMMIT")
                self._stored.clear()

        self.run(work)
        if keys is None:
            self._owners.discard(owner)

    def put(self, items: Sequence[tuple[bytes, bytes]]) -> None:
        """Store all in one transaction; of two values for one key, the later stays."""
        now = self._clock()
        rows = [(_head(key)[0], key, now, _crc(key, value), value) for key, value in items]
        rows.sort(key=itemgetter(0))

        def write(connection: sqlite3.Connection) -> None:
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(_INSERT, rows)
            if self._can_lease and not self._owners:
                leases.settle(connection, [row[0] for row in rows])
            connection.execute("COMMIT")

        self.run(write)
        if self._owners:
            self._stored += [row[0] for row in rows]

    def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do some work on the connection; once more, on a fresh file, when this one turns out damaged."""
        try:
            return self._attempt(work)
        except Unusable as damage:
            self._replace(str(damage))
        try:
            return self._attempt(work)
        except Unusable as damage:
            raise CacheError(f"{self} keeps getting damaged ({damage}); check its disk") from damage

    def close(self) -> None:
        """Let go of the file; the next use opens it again."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(sqlite3.Error):  # what is committed stays, whatever closing finds
                connection.close()

    def _attempt(self, work: Callable[[sqlite3.Connection], T]) -> T:
        try:
            return work(self._ready())
        except UnicodeDecodeError as error:  # SQLite quotes the damage in its message, and Python reads it
            raise Unusable("malformed database schema") from error
        except sqlite3.Error as error:
            self._roll_back()
            if is_busy(error):
                raise Busy(f"{self} is locked by another process") from error
            if is_damage(error):
                raise Unusable(str(error)) from error
            if code_of(error):
                raise refusal(self.path, error) from error
            raise  # misuse of the module: a bug

    def _ready(self) -> sqlite3.Connection:
        try:
            if self._connection is not None and file_id(self.path) != self._file:
                self.close()
                self._on_trouble(
                    f"{self} was moved or deleted while in use; what has its name now is used instead"
                )
            return self._connection or self._open()
        except OSError as error:
            raise refusal(self.path, error) from error

    def _open(self) -> sqlite3.Connection:
        if is_anothers_link(self.path):
            raise CacheError(f"{self} is a link that another user has made; name the file itself")
        if self.path.is_dir():
            raise CacheError(f"{self} is a folder; name a file in it, like {self.path}/verdicts.sqlite")
        if self.path.exists() and not self.path.is_file():
            raise CacheError(f"{self} is not a file; name one, or do without a cache: off")
        if self.path.parent == home().absolute():
            make_private_folder(self.path.parent)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        create_private_file(self.path)
        self._file = file_id(self.path)  # before it is opened: the other order might name a newer file
        connection = self._connect(self.path)
        try:
            self._file = self._file or file_id(self.path)
            adopt(connection, self.path)
            close_to_others(self.path, *(Path(f"{self.path}{suffix}") for suffix in COMPANIONS))
            network = network_kind(self.path)
            if not choose_journal(connection, is_shared_memory_safe=network is None):
                self._tell_slow(network)
            self._can_lease = leases.prepare(connection)
        except BaseException:
            connection.close()
            raise
        connection.text_factory = bytes  # a torn row may hold text that is none; there is none of ours
        self._connection = connection
        return connection

    def _replace(self, damage: str) -> None:
        """Make way for a fresh file; refuse when this one was never ours."""
        was_ours = self._connection is not None
        self.close()
        try:
            is_there = file_id(self.path) == self._file  # another process may have replaced it by now
            if is_there and not was_ours and not looks_like_ours(self.path):
                raise CacheError(
                    f"{self.path} is not a plaudit cache ({damage}) and was left alone; name another file"
                )
            aside = set_aside(self.path, self._file)
        except OSError as error:
            raise CacheError(
                f"{self} is damaged ({damage}) and cannot be set aside: {error.strerror}; "
                "move it away, or name another file"
            ) from error
        if aside is not None:
            self._on_trouble(
                f"{self} is damaged ({damage}); it was set aside as {aside.name} and a new one started"
            )

    def _read(self, connection: sqlite3.Connection, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        wanted = set(keys)
        ids = sorted(_head(key)[0] for key in wanted)  # in the order of the index
        rows = []
        for start in range(0, len(ids), leases.CHUNK):
            chunk = ids[start : start + leases.CHUNK]
            marks = ",".join("?" * len(chunk))
            query = f"SELECT key, crc, value FROM verdicts WHERE id IN ({marks})"  # noqa: S608 - only marks
            rows += connection.execute(query, chunk).fetchall()
        whole = [row for row in rows if _is_whole(*row)]
        if len(whole) < len(rows):
            self._examine(connection, torn=len(rows) - len(whole))
        return {key: value for key, _, value in whole if key in wanted}

    def _examine(self, connection: sqlite3.Connection, *, torn: int) -> None:
        """Bytes have changed under us: pass over what they hit, unless they hit the tree itself."""
        [found] = connection.execute("PRAGMA quick_check(1)").fetchone()
        if found != b"ok":
            raise Unusable("its pages contradict each other")
        self._on_trouble(
            f"{torn} entries of {self} are damaged and were passed over; they will be judged again"
        )

    def _roll_back(self) -> None:
        if self._connection is not None and self._connection.in_transaction:
            with contextlib.suppress(sqlite3.Error):  # already rolled back, or beyond it
                self._connection.execute("ROLLBACK")

    def _tell_slow(self, network: str | None) -> None:
        if not self._is_slow_told:
            self._is_slow_told = True
            self._on_trouble(
                f"{self} has no write-ahead log here ({network or 'the file system refused it'}): "
                "it works, but processes wait for one another; a local disk is faster"
            )


# -- keeping it in shape -------------------------------------------------------------------------------


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
    prompt_tokens: int = 0
    """What the verdicts took when they were judged, as far as they say so; likewise the next two."""
    completion_tokens: int = 0
    paid: float = 0.0
    """US dollars, for verdicts from endpoints whose price was known."""


def stats(connection: sqlite3.Connection, path: Path) -> CacheStats:
    """Count everything: one pass over the file."""
    entries, size, oldest, newest = connection.execute(
        "SELECT count(*), coalesce(sum(length(value) + ?), 0), min(created), max(created) FROM verdicts",
        (ENTRY_BYTES,),
    ).fetchone()
    paid = connection.execute(
        "SELECT coalesce(sum(text ->> '$.usage.prompt_tokens'), 0), "
        "coalesce(sum(text ->> '$.usage.completion_tokens'), 0), coalesce(sum(text ->> '$.paid'), 0.0) "
        "FROM (SELECT CAST(value AS TEXT) AS text FROM verdicts) WHERE json_valid(text)"
    ).fetchone()
    files = [file for file in (path, Path(f"{path}-wal")) if file.exists()]
    on_disk = sum(file.stat().st_size for file in files)
    return CacheStats(entries, size, oldest, newest, on_disk, VERSION, *paid)


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
