"""Files that are torn, truncated, foreign, too new, moved away: set aside or refused, never overwritten."""

from __future__ import annotations

import asyncio
import random
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cache_contract import digest

from plaudit.caches import SqliteCache
from plaudit.caches.sqlite_file import APPLICATION_ID, set_aside
from plaudit.caches.store import Store, connect
from plaudit.errors import CacheError

PAGE = 4096


def make_file(path: Path, count: int = 200) -> None:
    store = Store(path, on_trouble=pytest.fail)
    store.put([(digest(number), b"value %d" % number) for number in range(count)])
    store.close()


def use(path: Path) -> tuple[dict[bytes, bytes], list[str]]:
    """Look up, write, look up the written: what a run does with its cache, and what it is told."""
    troubles: list[str] = []

    async def main() -> dict[bytes, bytes]:
        cache = SqliteCache(path, on_trouble=troubles.append)
        try:
            found = await cache.get_many([digest(number) for number in range(200)])
            await cache.put_many([(digest(1000), b"new")])
            assert await cache.get_many([digest(1000)]) == {digest(1000): b"new"}
            return found
        finally:
            await cache.close()

    return asyncio.run(main()), troubles


def overwrite(path: Path, start: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(start)
        file.write(data)


def replace(path: Path, data: bytes) -> None:
    path.write_bytes(data)


def truncate(path: Path, size: int) -> None:
    with path.open("r+b") as file:
        file.truncate(size)


NOISE = random.Random(7).randbytes(3 * PAGE)
DAMAGES: dict[str, Callable[[Path], None]] = {
    "garbage": lambda path: (path.write_bytes(NOISE) and None) or None,
    "text": lambda path: (path.write_text("this is no database\n" * 100) and None) or None,
    "torn header": lambda path: overwrite(path, 0, bytes(60)),
    "first page lost": lambda path: overwrite(path, 0, bytes(PAGE)),
    "first page torn": lambda path: overwrite(path, 100, NOISE[: PAGE - 100]),
    "pages torn": lambda path: overwrite(path, PAGE, NOISE),
    "pages lost": lambda path: overwrite(path, PAGE, bytes(3 * PAGE)),
    "truncated": lambda path: truncate(path, 2 * PAGE),
    "truncated in a page": lambda path: truncate(path, 2 * PAGE + 100),
    "truncated to a stub": lambda path: truncate(path, 50),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_file_is_set_aside_and_the_run_goes_on(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    path = tmp_path / "verdicts.sqlite"
    make_file(path)
    damage(path)
    before = path.read_bytes()
    found, troubles = use(path)
    assert found == {}
    [trouble] = troubles
    assert f"{path} is damaged" in trouble
    assert "set aside as verdicts.sqlite.damaged-1" in trouble
    assert (tmp_path / "verdicts.sqlite.damaged-1").read_bytes() == before
    assert use(path) == ({}, [])


def test_each_damaged_file_gets_a_name_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "verdicts.sqlite"
    for _ in range(3):
        path.write_bytes(NOISE)
        use(path)
    assert {file.name for file in tmp_path.iterdir()} == {
        path.name,
        *(f"{path.name}.damaged-{number}" for number in (1, 2, 3)),
    }


def test_companions_are_set_aside_with_their_file(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    for suffix in ("", "-wal", "-shm"):
        Path(f"{path}{suffix}").write_text(suffix)
    found = path.stat()
    assert set_aside(path, (found.st_dev, found.st_ino)) == tmp_path / "c.sqlite.damaged-1"
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == {
        f"c.sqlite.damaged-1{suffix}": suffix for suffix in ("", "-wal", "-shm")
    }


def test_a_file_that_took_the_place_of_the_damaged_one_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    path.write_text("damaged")
    found = path.stat()
    path.rename(tmp_path / "elsewhere")
    path.write_text("fresh")
    assert set_aside(path, (found.st_dev, found.st_ino)) is None
    assert path.read_text() == "fresh"


@pytest.mark.parametrize("replaced_by", [None, b""])
def test_a_damaged_file_that_another_process_sets_aside_first_is_no_trouble(
    tmp_path: Path, replaced_by: bytes | None
) -> None:
    path = tmp_path / "verdicts"  # a name that would not do for one of ours
    path.write_bytes(NOISE)

    class Preempted(sqlite3.Connection):
        def execute(self, *arguments: Any) -> sqlite3.Cursor:
            try:
                return super().execute(*arguments)
            except sqlite3.DatabaseError:
                path.rename(tmp_path / "aside")
                if replaced_by is not None:
                    path.write_bytes(replaced_by)
                raise

    def preempted(path: Path) -> sqlite3.Connection:
        return sqlite3.connect(path, isolation_level=None, factory=Preempted)

    store = Store(path, on_trouble=pytest.fail, connect=preempted)
    store.put([(digest(1), b"one")])
    assert store.get([digest(1)]) == {digest(1): b"one"}
    store.close()
    assert [file.name for file in tmp_path.glob("*damaged*")] == []


def test_damage_in_mid_run_is_survived_by_look_ups_and_writes(tmp_path: Path) -> None:
    path = tmp_path / "verdicts.sqlite"
    make_file(path, 20_000)  # more than the connection keeps in memory
    for number, is_write in enumerate((False, True), start=1):
        troubles: list[str] = []

        async def main(is_write: bool = is_write, troubles: list[str] = troubles) -> None:
            cache = SqliteCache(path, on_trouble=troubles.append)
            assert await cache.get_many([digest(1)]) == {digest(1): b"value 1"}
            overwrite(path, PAGE, bytes(path.stat().st_size - PAGE))
            if is_write:
                await cache.put_many([(digest(number), b"new") for number in range(20_000)])
            else:
                assert len(await cache.get_many([digest(number) for number in range(20_000)])) < 20_000
            await cache.put_many([(digest(1), b"value 1")])
            assert await cache.get_many([digest(1)]) == {digest(1): b"value 1"}
            await cache.close()

        asyncio.run(main())
        assert f"verdicts.sqlite.damaged-{number}" in troubles[0]
        make_file(path, 20_000)


def test_an_entry_whose_bytes_changed_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    make_file(path)
    whole = path.read_bytes()
    place = whole.index(b"value 77")
    overwrite(path, place, b"value 99")
    troubles: list[str] = []
    store = Store(path, on_trouble=troubles.append)
    found = store.get([digest(number) for number in range(200)])
    assert len(found) == 199
    assert digest(77) not in found
    assert "1 entries" in troubles[0]
    store.put([(digest(77), b"judged again")])
    assert store.get([digest(77)]) == {digest(77): b"judged again"}
    store.close()


@pytest.mark.parametrize("seed", range(20))
def test_no_scribble_on_the_file_crashes_it_or_gives_a_wrong_value(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    path = tmp_path / "verdicts.sqlite"
    make_file(path)
    for _ in range(draw.randint(1, 30)):
        overwrite(path, draw.randrange(100, path.stat().st_size), draw.randbytes(draw.randint(1, 40)))
    found, _ = use(path)
    assert found.items() <= {digest(number): b"value %d" % number for number in range(200)}.items()


def test_a_table_that_is_gone_counts_as_damage(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    make_file(path)
    connection = connect(path)
    connection.execute("DROP TABLE verdicts")
    connection.close()
    found, troubles = use(path)
    assert found == {}
    assert "no such table" in troubles[0]


def test_a_file_deleted_in_mid_run_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "home" / "c.sqlite"
    troubles: list[str] = []

    async def main() -> None:
        cache = SqliteCache(path, on_trouble=troubles.append)
        await cache.put_many([(digest(1), b"one")])
        for file in path.parent.iterdir():
            file.unlink()
        path.parent.rmdir()
        await cache.put_many([(digest(2), b"two")])
        await cache.close()

    asyncio.run(main())
    [trouble] = troubles
    assert "was moved or deleted while in use" in trouble
    assert use(path)[0] == {digest(2): b"two"}


def refused(path: Path) -> str:
    """The message for a file that must stay as it is, to the byte, with nothing beside it."""
    before = path.read_bytes()
    with pytest.raises(CacheError) as caught:
        use(path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]
    return str(caught.value)


def test_a_newer_file_is_refused_with_the_remedy(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    make_file(path)
    connection = connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    message = refused(path)
    assert "newer plaudit (layout 99, this one knows 1)" in message
    assert "upgrade plaudit" in message


def test_an_older_file_is_set_aside(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    connection = connect(path)
    connection.execute("CREATE TABLE of_old (x)")
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.close()
    _, [trouble] = use(path)
    assert "layout 0 is older" in trouble
    assert (tmp_path / "c.sqlite.damaged-1").exists()


@pytest.mark.parametrize("name", ["theirs.db", "verdicts.sqlite"])
def test_another_programs_database_is_refused_and_untouched(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE precious (x)")
    connection.commit()
    connection.close()
    assert "another program's database and was left alone" in refused(path)


def test_another_programs_damaged_database_is_refused_too(tmp_path: Path) -> None:
    path = tmp_path / "theirs.db"
    connection = sqlite3.connect(path)
    connection.executescript("CREATE TABLE precious (x); CREATE TABLE more (y);")
    connection.close()
    truncate(path, PAGE)
    assert "is not a plaudit cache" in refused(path)


@pytest.mark.parametrize("name", ["answers.jsonl", "notes.txt", "model"])
def test_a_file_named_by_mistake_is_refused_and_untouched(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text('{"prompt": "p", "response": "r"}\n' * 100)
    assert "is not a plaudit cache" in refused(path)


def test_an_empty_file_becomes_a_cache(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    path.touch()
    assert use(path) == ({}, [])
    assert use(path)[0] == {}
