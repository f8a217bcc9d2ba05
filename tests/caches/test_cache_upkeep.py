"""Counting, pruning, clearing and exporting a verdict file."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from cache_contract import digest
from hypothesis import given
from hypothesis import strategies as st

from plaudit.caches import CacheStats, SqliteCache
from plaudit.caches.sqlite_file import adopt
from plaudit.caches.store import ENTRY_BYTES, Store, connect, prune


class Clock:
    """Stands still until told otherwise."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def with_aged_cache(path: Path, body: Callable[[SqliteCache], Awaitable[None]]) -> None:
    """Ten entries of 100 bytes, written at 0, 1, ... 9 s; it is now 9 s."""

    async def main() -> None:
        clock = Clock()
        cache = SqliteCache(path, clock=clock, on_trouble=pytest.fail)
        for number in range(10):
            clock.now = float(number)
            await cache.put_many([(digest(number), bytes(100))])
        await body(cache)
        await cache.close()

    asyncio.run(main())


def on_disk(path: Path) -> int:
    return path.stat().st_size + Path(f"{path}-wal").stat().st_size


async def left(cache: SqliteCache) -> list[int]:
    found = await cache.get_many([digest(number) for number in range(10)])
    return [number for number in range(10) if digest(number) in found]


def test_stats_count_everything(tmp_path: Path) -> None:
    async def body(cache: SqliteCache) -> None:
        found = await cache.stats()
        assert found == CacheStats(
            entries=10,
            bytes=10 * (100 + ENTRY_BYTES),
            oldest=0.0,
            newest=9.0,
            file_bytes=on_disk(cache.path),
            schema_version=1,
        )

    with_aged_cache(tmp_path / "c.sqlite", body)


def test_prune_by_age(tmp_path: Path) -> None:
    async def body(cache: SqliteCache) -> None:
        assert await cache.prune(older_than=3.0) == 6
        assert await left(cache) == [6, 7, 8, 9]

    with_aged_cache(tmp_path / "c.sqlite", body)


def test_prune_by_number_keeps_the_newest(tmp_path: Path) -> None:
    async def body(cache: SqliteCache) -> None:
        assert await cache.prune(max_entries=3) == 7
        assert await left(cache) == [7, 8, 9]
        assert await cache.prune(max_entries=3) == 0

    with_aged_cache(tmp_path / "c.sqlite", body)


def test_prune_by_size_keeps_the_newest(tmp_path: Path) -> None:
    async def body(cache: SqliteCache) -> None:
        assert await cache.prune(max_bytes=2 * (100 + ENTRY_BYTES) + 50) == 8
        assert await left(cache) == [8, 9]

    with_aged_cache(tmp_path / "c.sqlite", body)


def test_prune_without_a_bound_drops_nothing(tmp_path: Path) -> None:
    async def body(cache: SqliteCache) -> None:
        assert await cache.prune() == 0
        assert len(await left(cache)) == 10

    with_aged_cache(tmp_path / "c.sqlite", body)


def test_clear_gives_the_space_back(tmp_path: Path) -> None:
    async def main() -> None:
        cache = SqliteCache(tmp_path / "c.sqlite")
        await cache.put_many([(digest(number), bytes(2000)) for number in range(500)])
        before = (await cache.stats()).file_bytes
        assert await cache.clear() == 500
        after = await cache.stats()
        assert (after.entries, after.bytes, after.oldest) == (0, 0, None)
        assert after.file_bytes < 30_000 < before
        await cache.close()

    asyncio.run(main())


def test_a_rewritten_entry_counts_as_new(tmp_path: Path) -> None:
    clock = Clock()
    store = Store(tmp_path / "c.sqlite", on_trouble=pytest.fail, clock=clock)
    store.put([(digest(1), b"old"), (digest(2), b"old")])
    clock.now = 5.0
    store.put([(digest(1), b"new")])
    assert store.run(lambda connection: prune(connection, created_before=5.0)) == 1
    assert store.get([digest(1), digest(2)]) == {digest(1): b"new"}
    store.close()


def test_export_does_not_stop_the_cache_from_working(tmp_path: Path) -> None:
    async def body(cache: SqliteCache) -> None:
        out = io.BytesIO()
        count, found = await asyncio.gather(cache.export(out), cache.get_many([digest(1)]))
        assert count == len(out.getvalue().splitlines()) == 10
        assert len(found) == 1

    with_aged_cache(tmp_path / "c.sqlite", body)


def test_an_export_that_cannot_be_written_fails_where_it_is_awaited(tmp_path: Path) -> None:
    class Broken(io.BytesIO):
        def write(self, data: object) -> int:
            raise BrokenPipeError("nobody reads")

    async def body(cache: SqliteCache) -> None:
        with pytest.raises(BrokenPipeError):
            await cache.export(Broken())
        assert len(await left(cache)) == 10

    with_aged_cache(tmp_path / "c.sqlite", body)


sizes = st.lists(st.integers(0, 300), max_size=12)


@given(sizes=sizes, max_entries=st.none() | st.integers(0, 12), max_bytes=st.none() | st.integers(0, 2500))
def test_prune_keeps_the_longest_newest_run_that_fits(
    sizes: list[int], max_entries: int | None, max_bytes: int | None
) -> None:
    connection = connect(Path(":memory:"))
    adopt(connection, Path(":memory:"))
    connection.executemany(
        "INSERT INTO verdicts (id, key, created, crc, value) VALUES (?, ?, ?, 0, ?)",
        [(number, digest(number), float(number), bytes(size)) for number, size in enumerate(sizes)],
    )
    gone = prune(connection, max_entries=max_entries, max_bytes=max_bytes)
    kept: list[int] = []
    room = float("inf") if max_bytes is None else max_bytes
    for number in reversed(range(len(sizes))):
        room -= sizes[number] + ENTRY_BYTES
        if room < 0 or (max_entries is not None and len(kept) == max_entries):
            break
        kept.insert(0, number)
    assert [row[0] for row in connection.execute("SELECT id FROM verdicts ORDER BY id")] == kept
    assert gone == len(sizes) - len(kept)
    connection.close()
