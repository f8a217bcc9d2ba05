"""SqliteCache: the contract, durability, group commits, threads that end, and files that cannot be used."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from cache_contract import LeasingCacheContract, digest
from until import PATIENCE_S

from plaudit.caches import MemoryCache, SqliteCache, default_path, open_cache
from plaudit.caches.store import Store, connect
from plaudit.errors import CacheError


class TestSqliteCacheContract(LeasingCacheContract):
    def make_cache(self, folder: Path) -> SqliteCache:
        return SqliteCache(folder / "verdicts.sqlite")


class TestSqliteCacheWithRowsInTheOrderOfTheirKeys(LeasingCacheContract):
    """Files are used as they are, also those in which the keys are the rows' own numbers."""

    def make_cache(self, folder: Path) -> SqliteCache:
        path = folder / "verdicts.sqlite"
        if not path.exists():
            with contextlib.closing(Store(path, on_trouble=print)) as store:
                store.run(self.lay_out_by_key)
        return SqliteCache(path)

    @staticmethod
    def lay_out_by_key(connection: sqlite3.Connection) -> None:
        [sql] = connection.execute("SELECT sql FROM sqlite_master WHERE name = 'verdicts'").fetchone()
        connection.execute("DROP TABLE verdicts")
        connection.execute(sql.decode().replace("NOT NULL UNIQUE", "PRIMARY KEY"))


def cache_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "plaudit-cache"]


async def fill(path: Path, numbers: range) -> None:
    cache = SqliteCache(path)
    await cache.put_many([(digest(number), b"value %d" % number) for number in numbers])
    await cache.close()


def counting(commits: list[int]) -> Callable[[Path], sqlite3.Connection]:
    """A way to connect that counts commits."""

    def connect_and_count(path: Path) -> sqlite3.Connection:
        connection = connect(path)
        connection.set_trace_callback(lambda sql: commits.append(1) if sql == "COMMIT" else None)
        return connection

    return connect_and_count


def test_entries_outlive_the_cache_that_wrote_them(tmp_path: Path) -> None:
    async def main() -> dict[bytes, bytes]:
        await fill(tmp_path / "c.sqlite", range(3))
        again = SqliteCache(tmp_path / "c.sqlite")
        found = await again.get_many([digest(2), digest(9)])
        await again.close()
        return found

    assert asyncio.run(main()) == {digest(2): b"value 2"}


def test_making_one_touches_nothing(tmp_path: Path) -> None:
    before = cache_threads()
    SqliteCache(tmp_path / "new" / "c.sqlite")
    assert not (tmp_path / "new").exists()
    assert cache_threads() == before


def test_missing_folders_are_made(tmp_path: Path) -> None:
    asyncio.run(fill(tmp_path / "some" / "new" / "folder" / "c.sqlite", range(1)))
    assert (tmp_path / "some" / "new" / "folder" / "c.sqlite").is_file()


def test_closing_ends_the_thread_and_leaves_one_file(tmp_path: Path) -> None:
    before = cache_threads()
    asyncio.run(fill(tmp_path / "c.sqlite", range(5)))
    assert cache_threads() == before
    assert [file.name for file in tmp_path.iterdir()] == ["c.sqlite"]


def test_a_closed_cache_says_so(tmp_path: Path) -> None:
    async def main() -> None:
        cache = SqliteCache(tmp_path / "c.sqlite")
        await cache.close()
        await cache.get_many([digest(1)])

    with pytest.raises(CacheError, match=r"c\.sqlite is closed"):
        asyncio.run(main())


def test_closing_waits_for_writes_that_nobody_awaits(tmp_path: Path) -> None:
    async def main() -> None:
        cache = SqliteCache(tmp_path / "c.sqlite")
        writing = asyncio.ensure_future(cache.put_many([(digest(1), b"one")]))
        await asyncio.sleep(0)
        await cache.close()
        await writing
        again = SqliteCache(tmp_path / "c.sqlite")
        assert await again.get_many([digest(1)]) == {digest(1): b"one"}
        await again.close()

    asyncio.run(main())


def test_an_abandoned_cache_takes_its_thread_with_it(tmp_path: Path) -> None:
    before = cache_threads()
    cache = SqliteCache(tmp_path / "c.sqlite", on_trouble=lambda message: None)
    asyncio.run(cache.put_many([(digest(1), b"one")]))
    [thread] = [thread for thread in cache_threads() if thread not in before]
    del cache
    gc.collect()
    thread.join(timeout=PATIENCE_S)
    assert not thread.is_alive()


def test_an_interpreter_that_forgot_to_close_exits(tmp_path: Path) -> None:
    script = (
        "import asyncio, sys; from plaudit.caches import SqliteCache\n"
        "cache = SqliteCache(sys.argv[1])\n"
        "asyncio.run(cache.put_many([(bytes(32), b'one')]))\n"
    )
    path = tmp_path / "c.sqlite"
    done = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
    assert asyncio.run(SqliteCache(path).get_many([bytes(32)])) == {bytes(32): b"one"}


def test_writes_that_pile_up_are_committed_together(tmp_path: Path) -> None:
    commits: list[int] = []

    async def main() -> None:
        cache = SqliteCache(tmp_path / "c.sqlite", connect=counting(commits))
        await cache.get_many([digest(0)])  # open, so that only the writes below count
        commits.clear()
        await asyncio.gather(*(cache.put_many([(digest(number), b"v")]) for number in range(500)))
        assert len(await cache.get_many([digest(number) for number in range(500)])) == 500
        await cache.close()

    asyncio.run(main())
    assert 1 <= len(commits) <= 20


def test_a_write_that_is_cancelled_does_not_harm_its_neighbours(tmp_path: Path) -> None:
    async def main() -> None:
        cache = SqliteCache(tmp_path / "c.sqlite")
        writes = [asyncio.ensure_future(cache.put_many([(digest(number), b"v")])) for number in range(3)]
        await asyncio.sleep(0)
        writes[1].cancel()
        await asyncio.gather(writes[0], writes[2])
        assert {digest(0), digest(2)} <= set(await cache.get_many([digest(number) for number in range(3)]))
        await cache.close()

    asyncio.run(main())


def test_two_loops_may_share_it(tmp_path: Path) -> None:
    cache = SqliteCache(tmp_path / "c.sqlite")

    async def work(offset: int) -> int:
        for number in range(offset, offset + 50):
            await cache.put_many([(digest(number), b"v")])
        return len(await cache.get_many([digest(number) for number in range(offset, offset + 50)]))

    counts: list[int] = []
    threads = [
        threading.Thread(target=lambda o=offset: counts.append(asyncio.run(work(o)))) for offset in (0, 100)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    asyncio.run(cache.close())
    assert counts == [50, 50]


def test_a_file_under_write_by_another_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"

    async def main() -> None:
        await fill(path, range(1))
        other = connect(path)
        other.execute("BEGIN IMMEDIATE")
        cache = SqliteCache(path)
        writing = asyncio.ensure_future(cache.put_many([(digest(5), b"five")]))
        assert await cache.get_many([digest(0)]) == {digest(0): b"value 0"}  # look-ups go on meanwhile
        assert not writing.done()
        other.execute("ROLLBACK")
        other.close()
        await writing
        await cache.close()

    asyncio.run(main())


def test_a_wait_for_another_writer_is_told_before_it_ends(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    told: list[str] = []

    async def main() -> None:
        await fill(path, range(1))
        other = connect(path)
        other.execute("BEGIN IMMEDIATE")
        cache = SqliteCache(path, patience=5.0, on_trouble=told.append)
        writing = asyncio.ensure_future(cache.put_many([(digest(5), b"five")]))
        while not told:
            await cache.get_many([digest(0)])
        assert not writing.done()
        other.close()
        await writing
        await cache.close()

    asyncio.run(main())
    assert len(told) == 1 and "locked by another process; waiting for it, for up to 5 s" in told[0]


def test_patience_with_another_writer_ends(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"

    async def main() -> None:
        await fill(path, range(1))
        other = connect(path)
        other.execute("BEGIN IMMEDIATE")
        cache = SqliteCache(path, patience=0.01)
        try:
            await cache.put_many([(digest(5), b"five")])
        finally:
            await cache.close()
            other.close()

    with pytest.raises(CacheError, match=r"locked by another process for 0\.01 s; end that process"):
        asyncio.run(main())


def test_a_full_disk_is_an_error_that_names_the_remedy_and_keeps_what_was_there(tmp_path: Path) -> None:
    def connect_small(path: Path) -> sqlite3.Connection:
        connection = connect(path)
        connection.execute("PRAGMA max_page_count = 16")
        return connection

    async def main() -> str:
        cache = SqliteCache(tmp_path / "c.sqlite", connect=connect_small)
        await cache.put_many([(digest(1), b"one")])
        with pytest.raises(CacheError) as caught:
            await cache.put_many([(digest(2), bytes(100_000))])
        assert await cache.get_many([digest(1), digest(2)]) == {digest(1): b"one"}
        await cache.put_many([(digest(3), b"three")])  # room for this one
        await cache.close()
        return str(caught.value)

    message = asyncio.run(main())
    assert "database or disk is full; free some space" in message
    assert str(tmp_path / "c.sqlite") in message


def refused(path: Path) -> str:
    async def main() -> None:
        cache = SqliteCache(path)
        try:
            await cache.put_many([(digest(1), b"one")])
        finally:
            await cache.close()

    with pytest.raises(CacheError) as caught:
        asyncio.run(main())
    return str(caught.value)


def test_a_folder_is_no_cache_file(tmp_path: Path) -> None:
    assert "is a folder; name a file in it" in refused(tmp_path)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make links of other users")
def test_a_cache_that_is_another_users_link_is_refused(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "c.sqlite"
    link.symlink_to(target)
    os.lchown(link, 65534, 65534)
    assert "is a link that another user has made" in refused(link)
    assert not target.exists()


def test_a_path_through_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text")
    assert "cannot be used" in refused(tmp_path / "file" / "c.sqlite")


def test_a_file_that_may_not_be_written_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    asyncio.run(fill(path, range(1)))

    def connect_read_only(path: Path) -> sqlite3.Connection:
        return sqlite3.connect(f"file:{path}?mode=ro", uri=True, isolation_level=None)

    async def main() -> None:
        cache = SqliteCache(path, connect=connect_read_only)
        try:
            await cache.put_many([(digest(1), b"one")])
        finally:
            await cache.close()

    with pytest.raises(CacheError, match="make the file and its folder writable"):
        asyncio.run(main())


def test_without_write_ahead_log_it_works_and_says_so_once(tmp_path: Path) -> None:
    troubles: list[str] = []

    def connect_plain(path: Path) -> sqlite3.Connection:
        return sqlite3.connect(f"file:{path}?vfs=unix-dotfile", uri=True, isolation_level=None)

    async def main() -> dict[bytes, bytes]:
        path = tmp_path / "c.sqlite"
        cache = SqliteCache(path, connect=connect_plain, on_trouble=troubles.append)
        await cache.put_many([(digest(1), b"one")])
        found = await cache.get_many([digest(1)])
        await cache.close()
        return found

    assert asyncio.run(main()) == {digest(1): b"one"}
    [trouble] = troubles
    assert "no write-ahead log" in trouble


def test_trouble_is_told_on_the_loop_that_waits(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    path.write_bytes(b"rubbish" * 1000)
    told: list[int] = []

    async def main() -> None:
        cache = SqliteCache(path, on_trouble=lambda message: told.append(threading.get_ident()))
        await cache.get_many([digest(1)])
        assert told == [threading.get_ident()]
        await cache.close()

    asyncio.run(main())


def test_a_key_with_the_same_first_bytes_is_never_taken_for_another(tmp_path: Path) -> None:
    store = Store(tmp_path / "c.sqlite", on_trouble=pytest.fail)
    one, two = bytes(8) + b"1" * 24, bytes(8) + b"2" * 24
    store.put([(one, b"one")])
    assert store.get([two]) == {}
    store.put([(two, b"two")])
    assert store.get([one, two]) == {two: b"two"}
    store.close()


@pytest.mark.parametrize("where", [None, "off"])
def test_no_cache_can_be_asked_for(where: str | None) -> None:
    assert open_cache(where) is None


def test_a_setting_names_memory_or_a_file(tmp_path: Path) -> None:
    assert isinstance(open_cache("memory"), MemoryCache)
    cache = open_cache(tmp_path / "c.sqlite")
    assert isinstance(cache, SqliteCache)
    assert cache.path == tmp_path / "c.sqlite"


def test_the_default_file_is_in_plaudits_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PLAUDIT_HOME", str(tmp_path))
    assert default_path() == tmp_path / "verdicts.sqlite"
    monkeypatch.delenv("PLAUDIT_HOME")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert default_path() == tmp_path / "xdg" / "plaudit" / "verdicts.sqlite"
