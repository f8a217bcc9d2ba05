"""How long 1,024 verdicts take to look up and to store: in memory, in a small file, in one of a million.

    python benchmarks/cache_lookup.py [--entries 1000000] [--folder DIR]

The store is built in key order, which is quick; values are 300 bytes. "Cold" asks the system to forget the
file first (it may keep some of it): every verdict then costs a read from the disk.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import statistics
import tempfile
import time
from collections.abc import Awaitable, Sequence
from hashlib import sha256
from pathlib import Path

import uvloop

from plaudit.caches import Cache, MemoryCache, SqliteCache
from plaudit.caches.store import Store

BATCH = 1024
REPEATS = 15
VALUE = b'{"score":7.0,"reason":"' + b"x" * 275 + b'"}'


def key(number: int) -> bytes:
    return sha256(b"%d" % number).digest()


def build(path: Path, entries: int) -> None:
    """Fill a file, in the order of its pages: first those keys that count as negative numbers."""
    keys = sorted((key(number) for number in range(entries)), key=lambda key: (key[0] < 128, key))
    store = Store(path, on_trouble=print)
    for start in range(0, entries, 50_000):
        store.put([(key, VALUE) for key in keys[start : start + 50_000]])
    store.close()


def forget(path: Path) -> None:
    """Ask the system to drop the file from its page cache."""
    os.sync()
    handle = os.open(path, os.O_RDONLY)
    os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(handle)


async def timed(work: Awaitable[object]) -> float:
    start = time.perf_counter()
    await work
    return 1000 * (time.perf_counter() - start)


def batches(seed: int, *, below: int, count: int) -> list[list[bytes]]:
    draw = random.Random(seed)
    return [[key(draw.randrange(below)) for _ in range(BATCH)] for _ in range(count)]


def say(what: str, times: Sequence[float]) -> None:
    print(f"{what:<46} {statistics.median(times):8.1f} ms   worst {max(times):8.1f} ms", flush=True)


async def measure(name: str, cache: Cache, entries: int) -> None:
    first, *known = batches(1, below=entries, count=REPEATS + 1)
    await cache.get_many(first)
    say(f"{name}: 1,024 found", [await timed(cache.get_many(keys)) for keys in known])
    unknown = [[os.urandom(32) for _ in range(BATCH)] for _ in range(REPEATS)]
    say(f"{name}: 1,024 not found", [await timed(cache.get_many(keys)) for keys in unknown])
    writes = [[(key, VALUE) for key in keys] for keys in unknown]
    say(f"{name}: 1,024 stored", [await timed(cache.put_many(items)) for items in writes])


async def main(entries: int, folder: Path) -> None:
    memory = MemoryCache()
    await memory.put_many([(key(number), VALUE) for number in range(10_000)])
    await measure("memory, 10,000", memory, 10_000)
    for count in (10_000, entries):
        path = folder / f"verdicts-{count}.sqlite"
        start = time.perf_counter()
        await asyncio.to_thread(build, path, count)
        size = path.stat().st_size / 1e6
        print(f"built {count:,} entries, {size:,.0f} MB, in {time.perf_counter() - start:.1f} s", flush=True)
        cache = SqliteCache(path)
        await measure(f"file, {count:,}", cache, count)
        await cache.close()
        if hasattr(os, "posix_fadvise"):
            await measure_cold(f"file, {count:,}, cold", path, count)


async def measure_cold(name: str, path: Path, entries: int) -> None:
    times = []
    for keys in batches(2, below=entries, count=3):
        forget(path)
        cache = SqliteCache(path)
        times.append(await timed(cache.get_many(keys)))
        await cache.close()
    say(f"{name}: opened, 1,024 found", times)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Time look-ups in the caches.")
    parser.add_argument("--entries", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path, help="where to build the files [default: a temporary one]")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as scratch:
        uvloop.run(main(arguments.entries, Path(scratch)))
