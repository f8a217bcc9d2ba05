"""Leases in a verdict file: which run is asking which question, until its verdict is stored.

A lease is a hint that saves money, never a lock: whatever happens to it, the worst is a question asked twice.
It counts while its owner shows signs of life: a process that exists, and a time stamp of the last LEASE_S
seconds. Clocks that disagree by more than that make leases void, so that no run waits.
"""

from __future__ import annotations

import functools
import os
import socket
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from plaudit.caches.base import LEASE_S
from plaudit.caches.sqlite_file import is_damage

CHUNK = 512
"""Keys in one statement; older SQLites take 999 at most."""
RENEW_S = 1.0
"""A claim writes its owner's time stamp anew when the last one is that old."""

Keys = dict[int, bytes]
"""Keys by the number of their row."""

_TABLES = (
    """CREATE TABLE IF NOT EXISTS owners (
        owner INTEGER PRIMARY KEY, machine BLOB NOT NULL, pid INTEGER NOT NULL, seen REAL NOT NULL
    )""",
    """CREATE TABLE IF NOT EXISTS leases (
        id INTEGER PRIMARY KEY, key BLOB NOT NULL, owner INTEGER NOT NULL, wanted_by INTEGER
    )""",
)


def prepare(connection: sqlite3.Connection) -> bool:
    """Make sure that the file has a place for leases; False where it can be read, but not written."""
    try:
        for table in _TABLES:
            connection.execute(table)
    except sqlite3.OperationalError as error:
        if is_damage(error):
            raise
        return False
    return True


def claim(
    connection: sqlite3.Connection, keys: Keys, *, owner: int, is_idle: bool, now: float
) -> tuple[frozenset[bytes], frozenset[bytes]]:
    """Lease what is free; which keys are another's, and which of the owner's own an idle run waits for."""
    live = _live_owners(connection, now)
    others = live.keys() - {owner}
    taken: dict[int, int | None] = {}
    if others:
        taken = {id_: wanted_by for id_, of, wanted_by in _leases(connection, keys) if of in others}
    if not 0.0 <= now - live.get(owner, 0.0) < RENEW_S:
        _renew(connection, owner, live.keys(), now)
    free = [(id_, key, owner) for id_, key in keys.items() if id_ not in taken]
    connection.executemany("INSERT OR REPLACE INTO leases (id, key, owner) VALUES (?, ?, ?)", free)
    if not others:
        return frozenset(), frozenset()
    if is_idle:
        waited_for = [(owner, id_) for id_, by in taken.items() if by != owner and by not in others]
        connection.executemany("UPDATE leases SET wanted_by = ? WHERE id = ?", waited_for)
    query = "SELECT key, wanted_by FROM leases WHERE owner = ? AND wanted_by IS NOT NULL"
    wanted = connection.execute(query, (owner,))
    return frozenset(keys[id_] for id_ in taken), frozenset(key for key, by in wanted if by in others)


def release(connection: sqlite3.Connection, keys: Keys | None, *, owner: int, now: float) -> None:
    """Pass leases on to runs that wait for them, and drop the others. None: all, and the owner is gone."""
    heirs = f"wanted_by IN ({_numbers(_live_owners(connection, now).keys() - {owner})})"
    for condition, ids in _conditions(keys):
        for statement in (
            f"UPDATE leases SET owner = wanted_by, wanted_by = NULL WHERE owner = ? AND {heirs}",  # noqa: S608
            "DELETE FROM leases WHERE owner = ?",
            "UPDATE leases SET wanted_by = NULL WHERE wanted_by = ?",
        ):
            connection.execute(f"{statement} AND {condition}", (owner, *ids))
    if keys is None:
        connection.execute("DELETE FROM owners WHERE owner = ?", (owner,))


def settle(connection: sqlite3.Connection, ids: Sequence[int]) -> None:
    """Drop the leases on what is stored now, of every owner."""
    for condition, chunk in _conditions(ids):
        connection.execute(f"DELETE FROM leases WHERE {condition}", chunk)  # noqa: S608


def _leases(connection: sqlite3.Connection, keys: Keys) -> Iterator[tuple[int, int, int | None]]:
    for condition, ids in _conditions(keys):
        yield from connection.execute(f"SELECT id, owner, wanted_by FROM leases WHERE {condition}", ids)  # noqa: S608


def _conditions(ids: Iterable[int] | None) -> Iterator[tuple[str, Sequence[int]]]:
    """What picks these rows, or all, in statements that are not too long."""
    if ids is None:
        yield "1", ()
        return
    ids = list(ids)
    for start in range(0, len(ids), CHUNK):
        chunk = ids[start : start + CHUNK]
        yield f"id IN ({','.join('?' * len(chunk))})", chunk


def _numbers(owners: Iterable[int]) -> str:
    return ",".join(str(owner) for owner in owners)


def _live_owners(connection: sqlite3.Connection, now: float) -> dict[int, float]:
    """When each owner was last seen, of those that show signs of life."""
    rows = connection.execute("SELECT owner, machine, pid, seen FROM owners")
    return {owner: seen for owner, where, pid, seen in rows if _is_live(where, pid, seen, now=now)}


def _is_live(where: object, pid: object, seen: object, *, now: float) -> bool:
    if not isinstance(pid, int) or not isinstance(seen, float):
        return False  # a torn row may hold anything
    return abs(now - seen) <= LEASE_S and not (where == machine() and _is_gone(pid))


def _renew(connection: sqlite3.Connection, owner: int, live: Collection[int], now: float) -> None:
    """Stamp an owner anew. One that was not there, or was taken for dead, clears away what the dead left."""
    row = (owner, machine(), os.getpid(), now)
    connection.execute("INSERT OR REPLACE INTO owners (owner, machine, pid, seen) VALUES (?, ?, ?, ?)", row)
    if owner not in live:
        connection.execute(f"DELETE FROM owners WHERE owner NOT IN ({_numbers({owner, *live})})")  # noqa: S608
        connection.execute("DELETE FROM leases WHERE owner NOT IN (SELECT owner FROM owners)")


def _is_gone(pid: int) -> bool:
    """Whether there is no such process on this machine. One that died and was not waited for still counts."""
    if os.name != "posix":
        return False  # elsewhere, signal 0 is not a question
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return True
    except PermissionError:
        return False  # another user's
    return False


@functools.cache
def machine() -> bytes:
    """What tells the machines, or containers, apart on which a process number means something."""
    parts = [socket.gethostname()]
    try:
        parts += [
            Path("/proc/sys/kernel/random/boot_id").read_text().strip(),
            str(Path("/proc/self/ns/pid").readlink()),
        ]
    except OSError:
        pass  # no Linux
    return " ".join(parts).encode(errors="replace")
