"""One verdict file, many processes: writers beside readers, kill -9 in mid-write, forks, shared damage."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from cache_contract import digest
from until import PATIENCE_S

from plaudit.caches import SqliteCache
from plaudit.errors import CacheError

WRITER = """
import asyncio, sys
from hashlib import sha256
from plaudit.caches import SqliteCache
from plaudit.errors import CacheError

async def main(path, first, count):
    cache = SqliteCache(path)
    for start in range(first, first + count, 10):
        numbers = range(start, min(start + 10, first + count))
        keys = [sha256(b"%d" % number).digest() for number in numbers]
        await cache.put_many([(key, b"v" * 300) for key in keys])
        print(numbers[0], len(numbers), flush=True)      # acknowledged
        assert len(await cache.get_many(keys)) == len(keys)
    await cache.close()

asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
"""


def start_writer(path: Path, first: int, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, str(path), str(first), str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def lookup(path: Path, numbers: range | list[int]) -> tuple[int, list[str]]:
    troubles: list[str] = []

    async def main() -> int:
        cache = SqliteCache(path, on_trouble=troubles.append)
        found = await cache.get_many([digest(number) for number in numbers])
        await cache.close()
        return len(found)

    return asyncio.run(main()), troubles


def test_four_processes_write_while_others_read(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"  # made by whoever comes first
    writers = [start_writer(path, 1000 * number, 300) for number in range(4)]

    async def read_until_done() -> None:
        cache = SqliteCache(path, on_trouble=pytest.fail)
        while any(writer.poll() is None for writer in writers):
            found = await cache.get_many([digest(number) for number in range(4000)])
            assert set(found.values()) <= {b"v" * 300}
            await asyncio.sleep(0)
        await cache.close()

    asyncio.run(read_until_done())
    for writer in writers:
        _, errors = writer.communicate(timeout=PATIENCE_S)
        assert (writer.returncode, errors) == (0, "")
    everything = [1000 * number + step for number in range(4) for step in range(300)]
    assert lookup(path, everything) == (1200, [])


def test_kill_9_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    acknowledged: list[int] = []
    for turn in range(4):
        writer = start_writer(path, 100_000 * turn, 90_000)
        assert writer.stdout is not None
        said = "".join(writer.stdout.readline() for _ in range(3 + 7 * turn))
        os.kill(writer.pid, signal.SIGKILL)
        said += writer.communicate()[0]  # what it had said by then, though nobody had read it yet
        for line in said.splitlines():
            first, count = line.split()
            acknowledged += range(int(first), int(first) + int(count))
    assert lookup(path, acknowledged) == (len(acknowledged), [])


def test_processes_that_find_damage_together_agree_on_one_fresh_file(tmp_path: Path) -> None:
    path = tmp_path / "verdicts.sqlite"
    path.write_bytes(b"rubbish" * 5000)
    writers = [start_writer(path, 1000 * number, 20) for number in range(4)]
    for writer in writers:
        writer.communicate(timeout=PATIENCE_S)
        assert writer.returncode == 0
    assert [file.name for file in tmp_path.glob("*.damaged-*")] == ["verdicts.sqlite.damaged-1"]
    assert lookup(path, [1000 * number + step for number in range(4) for step in range(20)]) == (80, [])


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
quiet_fork = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


def in_child(work: Callable[[], object]) -> int:
    """Fork, run, and give the child's exit status: 0 when it ran to its end."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
        finally:
            os._exit(0 if sys.exc_info()[0] is None else 1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@needs_fork
@quiet_fork
def test_parent_and_forked_child_use_one_cache_side_by_side(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    cache = SqliteCache(path, on_trouble=pytest.fail)
    asyncio.run(cache.put_many([(digest(1), b"one")]))

    def child() -> None:
        assert asyncio.run(cache.get_many([digest(1)])) == {digest(1): b"one"}
        asyncio.run(cache.put_many([(digest(2), b"two")]))
        asyncio.run(cache.close())

    assert in_child(child) == 0
    asyncio.run(cache.put_many([(digest(3), b"three")]))
    asyncio.run(cache.close())
    assert lookup(path, [1, 2, 3]) == (3, [])


@needs_fork
@quiet_fork
def test_a_child_that_closes_its_parents_cache_takes_nothing_from_it(tmp_path: Path) -> None:
    cache = SqliteCache(tmp_path / "c.sqlite", on_trouble=pytest.fail)
    asyncio.run(cache.put_many([(digest(1), b"one")]))
    assert in_child(lambda: asyncio.run(cache.close())) == 0
    assert asyncio.run(cache.get_many([digest(1)])) == {digest(1): b"one"}
    asyncio.run(cache.close())


@needs_fork
@quiet_fork
@pytest.mark.skipif(not Path("/proc/locks").exists(), reason="needs /proc/locks")
def test_a_forked_child_holds_locks_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    cache = SqliteCache(path)
    asyncio.run(cache.put_many([(digest(1), b"one")]))

    def child() -> None:
        asyncio.run(cache.get_many([digest(1)]))
        locks = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
        assert any(fields[4] == str(os.getpid()) for fields in locks)

    assert in_child(child) == 0
    asyncio.run(cache.close())


@needs_fork
@quiet_fork
def test_a_place_without_permission_is_refused(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)

    def child() -> None:
        if os.geteuid() == 0:
            os.seteuid(65534)  # root may write anywhere: be nobody
        with pytest.raises(CacheError, match=r"c\.sqlite cannot be used.*name another"):
            lookup(closed / "c.sqlite", [1])

    assert in_child(child) == 0


@needs_fork
@quiet_fork
def test_a_fork_amid_writes_loses_none(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"

    async def main() -> None:
        cache = SqliteCache(path, on_trouble=pytest.fail)
        for turn in range(5):
            writes = [
                asyncio.ensure_future(cache.put_many([(digest(100 * turn + number), b"v")]))
                for number in range(50)
            ]
            await asyncio.sleep(0)
            assert in_child(lambda: None) == 0
            await asyncio.gather(*writes)
        await cache.close()

    asyncio.run(main())
    assert lookup(path, [100 * turn + number for turn in range(5) for number in range(50)]) == (250, [])
