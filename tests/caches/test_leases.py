"""Leases in a verdict file: how they end, and that no file is worse off for them."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from cache_contract import digest

from plaudit.caches import Claim, SqliteCache
from plaudit.caches.base import LEASE_S
from plaudit.caches.store import connect

KEYS = [digest(number) for number in range(3)]

OWNER = """
import asyncio, sys
from hashlib import sha256
from plaudit.caches import SqliteCache

async def main():
    cache = SqliteCache(sys.argv[1])
    await cache.claim_many([sha256(b"%d" % number).digest() for number in range(3)], owner=1)
    print("leased", flush=True)
    sys.stdin.read()

asyncio.run(main())
"""


class Clock:
    """Seconds since 1970, as a test wants them."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def on(cache: SqliteCache, body: Callable[[SqliteCache], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        await body(cache)
        await cache.close()

    asyncio.run(main())


def tables(path: Path) -> set[str]:
    connection = sqlite3.connect(path)
    names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    connection.close()
    return names


def without_leases(path: Path) -> None:
    """Make the file what an earlier version has written."""

    async def body(cache: SqliteCache) -> None:
        await cache.put_many([(digest(0), b"old")])

    on(SqliteCache(path), body)
    connection = sqlite3.connect(path)
    connection.executescript("DROP TABLE leases; DROP TABLE owners")
    connection.close()


def test_a_lease_ends_when_its_owner_makes_no_claim_for_a_while(tmp_path: Path) -> None:
    clock = Clock()

    async def body(cache: SqliteCache) -> None:
        await cache.claim_many(KEYS, owner=1)
        clock.now += LEASE_S
        assert (await cache.claim_many(KEYS, owner=2)).elsewhere == set(KEYS)
        clock.now += 0.1
        assert not (await cache.claim_many(KEYS, owner=2)).elsewhere
        assert (await cache.claim_many(KEYS, owner=1)).elsewhere == set(KEYS)

    on(SqliteCache(tmp_path / "c.sqlite", clock=clock), body)


def test_every_claim_renews_all_leases_of_its_owner(tmp_path: Path) -> None:
    clock = Clock()

    async def body(cache: SqliteCache) -> None:
        await cache.claim_many(KEYS, owner=1)
        for _ in range(5):
            clock.now += LEASE_S - 0.1
            await cache.claim_many([], owner=1)
        clock.now += LEASE_S - 0.1
        assert (await cache.claim_many(KEYS, owner=2)).elsewhere == set(KEYS)

    on(SqliteCache(tmp_path / "c.sqlite", clock=clock), body)


def test_an_owner_that_comes_back_keeps_what_nobody_has_taken_over(tmp_path: Path) -> None:
    clock = Clock()

    async def body(cache: SqliteCache) -> None:
        await cache.claim_many(KEYS, owner=1)
        clock.now += 100.0
        await cache.claim_many([], owner=1)
        assert (await cache.claim_many(KEYS, owner=2)).elsewhere == set(KEYS)

    on(SqliteCache(tmp_path / "c.sqlite", clock=clock), body)


def test_a_lease_from_a_clock_far_ahead_keeps_nobody_waiting(tmp_path: Path) -> None:
    clock = Clock()

    async def body(cache: SqliteCache) -> None:
        clock.now += 3600.0
        await cache.claim_many(KEYS, owner=1)
        clock.now -= 3600.0
        assert not (await cache.claim_many(KEYS, owner=2)).elsewhere

    on(SqliteCache(tmp_path / "c.sqlite", clock=clock), body)


def test_the_leases_of_a_killed_process_end_at_once(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert owner.stdout is not None
    assert owner.stdin is not None
    assert owner.stdout.readline() == "leased\n"

    async def body(cache: SqliteCache) -> None:
        # The owner's stamp is fresh for LEASE_S: it is taken for dead only because its process is gone.
        stamp = sqlite3.connect(path).execute("SELECT seen FROM owners").fetchone()[0]
        clock.now = stamp
        assert (await cache.claim_many(KEYS, owner=2)).elsewhere == set(KEYS)
        owner.kill()
        owner.wait()
        assert not (await cache.claim_many(KEYS, owner=2)).elsewhere

    clock = Clock()
    on(SqliteCache(path, clock=clock), body)
    owner.stdin.close()
    owner.stdout.close()


def test_a_new_run_clears_away_what_dead_ones_have_left(tmp_path: Path) -> None:
    clock, path = Clock(), tmp_path / "c.sqlite"

    async def body(cache: SqliteCache) -> None:
        await cache.claim_many(KEYS, owner=1)
        clock.now += 100.0
        await cache.claim_many([digest(9)], owner=2)

    on(SqliteCache(path, clock=clock), body)
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT key, owner FROM leases").fetchall() == [(digest(9), 2)]
    assert connection.execute("SELECT owner FROM owners").fetchall() == [(2,)]
    connection.close()


@pytest.mark.parametrize("end", ["claim", "release", "release of one"])
def test_no_lease_on_a_stored_verdict_stays_after_the_next_claim_or_release(tmp_path: Path, end: str) -> None:
    path = tmp_path / "c.sqlite"

    async def body(cache: SqliteCache) -> None:
        await cache.claim_many([*KEYS, digest(9)], owner=1)
        await cache.put_many([(key, b"value") for key in KEYS])
        assert (await cache.claim_many(KEYS, owner=2)).values.keys() == set(KEYS)  # nobody waits for it
        if end == "claim":
            await cache.claim_many([], owner=1)
        else:
            await cache.release_many(None if end == "release" else [digest(9)], owner=1)

    on(SqliteCache(path), body)
    connection = sqlite3.connect(path)
    left = [digest(9)] if end == "claim" else []
    assert [key for (key,) in connection.execute("SELECT key FROM leases")] == left
    connection.close()


def test_a_verdict_stored_by_one_who_leases_nothing_ends_the_leases_on_it(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"

    async def claims(cache: SqliteCache) -> None:
        await cache.claim_many(KEYS, owner=1)

    async def stores(cache: SqliteCache) -> None:
        await cache.put_many([(key, b"value") for key in KEYS])

    on(SqliteCache(path), claims)
    on(SqliteCache(path), stores)
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT count(*) FROM leases").fetchone() == (0,)
    connection.close()


def test_a_file_of_an_earlier_version_gets_its_leases_in_place(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    without_leases(path)

    async def body(cache: SqliteCache) -> None:
        claim = await cache.claim_many(KEYS, owner=1)
        assert claim.values == {digest(0): b"old"}
        assert (await cache.claim_many(KEYS, owner=2)).elsewhere == {digest(1), digest(2)}
        await cache.put_many([(digest(1), b"new")])

    on(SqliteCache(path, on_trouble=pytest.fail), body)
    assert tables(path) == {"verdicts", "owners", "leases"}
    assert [file.name for file in tmp_path.iterdir()] == ["c.sqlite"]


@pytest.mark.parametrize("is_old", [True, False])
def test_a_file_that_can_only_be_read_is_read_without_leases(tmp_path: Path, is_old: bool) -> None:
    path = tmp_path / "c.sqlite"
    without_leases(path)
    if not is_old:
        on(SqliteCache(path), lambda cache: cache.put_many([(digest(1), b"new")]))

    def read_only(path: Path) -> sqlite3.Connection:
        connection = connect(path)
        connection.execute("PRAGMA query_only = ON")
        return connection

    async def body(cache: SqliteCache) -> None:
        for owner in (1, 2):
            claim = await cache.claim_many(KEYS, owner=owner)
            assert claim.values[digest(0)] == b"old"
            assert not claim.elsewhere
        await cache.release_many(KEYS, owner=1)
        await cache.release_many(None, owner=2)

    on(SqliteCache(path, on_trouble=pytest.fail, connect=read_only), body)


def test_a_file_that_another_program_keeps_locked_is_read_without_leases(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    on(SqliteCache(path), lambda cache: cache.put_many([(digest(0), b"old")]))
    other = connect(path)
    other.execute("BEGIN IMMEDIATE")

    def impatient(path: Path) -> sqlite3.Connection:
        return sqlite3.connect(path, isolation_level=None, timeout=0.0)

    async def body(cache: SqliteCache) -> None:
        assert await cache.claim_many(KEYS, owner=1) == Claim({digest(0): b"old"})
        other.execute("ROLLBACK")
        await cache.claim_many(KEYS, owner=1)
        assert (await cache.claim_many(KEYS, owner=2)).elsewhere == {digest(1), digest(2)}

    on(SqliteCache(path, connect=impatient), body)
    other.close()


def test_torn_rows_of_owners_end_leases_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"

    async def body(cache: SqliteCache) -> None:
        await cache.claim_many(KEYS, owner=1)
        with connect(path) as other:
            for pid, seen in ((b"x", "y"), (2**62, b"")):
                other.execute("UPDATE owners SET pid = ?, seen = ?", (pid, seen))
                assert not (await cache.claim_many(KEYS, owner=2)).elsewhere
                await cache.release_many(KEYS, owner=2)
        other.close()

    on(SqliteCache(path, on_trouble=pytest.fail), body)


def test_leases_cost_a_look_up_and_a_store_no_transaction_of_their_own(tmp_path: Path) -> None:
    statements: list[str] = []

    def traced(path: Path) -> sqlite3.Connection:
        connection = connect(path)
        connection.set_trace_callback(statements.append)
        return connection

    async def body(cache: SqliteCache) -> None:
        await cache.claim_many(KEYS, owner=1)
        statements.clear()
        await cache.claim_many([digest(8)], owner=1)
        await cache.put_many([(key, b"value") for key in [*KEYS, digest(8)]])
        assert [sql for sql in statements if sql.startswith(("BEGIN", "COMMIT"))] == [
            "BEGIN", "COMMIT", "BEGIN IMMEDIATE", "COMMIT"
        ]  # fmt: skip
        statements.clear()
        await cache.claim_many(KEYS, owner=1)  # all known: nothing is written
        assert {sql.split()[0] for sql in statements} == {"BEGIN", "SELECT", "COMMIT"}

    on(SqliteCache(tmp_path / "c.sqlite", connect=traced), body)
