"""MemoryCache: the contract, its bounds, and who goes first when it is full."""

from __future__ import annotations

import asyncio
import tracemalloc
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cache_contract import CacheContract, digest
from complaints import about
from hypothesis import given
from hypothesis import strategies as st

from plaudit.caches import MemoryCache
from plaudit.caches.memory import ENTRY_BYTES
from plaudit.errors import ConfigError
from plaudit.testing import run

SMALL_ENTRY = 32 + 10 + ENTRY_BYTES


class TestMemoryCacheContract(CacheContract):
    def make_cache(self, folder: Path) -> MemoryCache:
        return MemoryCache()


def found(cache: MemoryCache, numbers: Sequence[int]) -> set[int]:
    values = run(cache.get_many([digest(number) for number in numbers]))
    return {number for number in numbers if digest(number) in values}


def put(cache: MemoryCache, *numbers: int, size: int = 10) -> None:
    run(cache.put_many([(digest(number), bytes(size)) for number in numbers]))


def test_the_oldest_goes_when_there_are_too_many() -> None:
    cache = MemoryCache(max_entries=3)
    put(cache, 1, 2, 3, 4)
    assert found(cache, [1, 2, 3, 4]) == {2, 3, 4}


def test_what_was_looked_up_stays_longer() -> None:
    cache = MemoryCache(max_entries=3)
    put(cache, 1, 2, 3)
    assert found(cache, [1]) == {1}
    put(cache, 4)
    assert found(cache, [1, 2, 3, 4]) == {1, 3, 4}


def test_the_oldest_go_when_they_take_too_much_room() -> None:
    cache = MemoryCache(max_bytes=3 * SMALL_ENTRY)
    put(cache, 1, 2, 3)
    put(cache, 4, size=10 + SMALL_ENTRY)
    assert found(cache, [1, 2, 3, 4]) == {3, 4}


def test_a_value_too_big_for_the_cache_is_not_kept() -> None:
    cache = MemoryCache(max_bytes=3 * SMALL_ENTRY)
    put(cache, 1, size=3 * SMALL_ENTRY)
    assert len(cache) == 0
    put(cache, 2)
    assert found(cache, [2]) == {2}


def test_writing_a_key_again_takes_no_more_room() -> None:
    cache = MemoryCache(max_bytes=2 * SMALL_ENTRY)
    put(cache, 1)
    for _ in range(10):
        put(cache, 2)
    assert found(cache, [1, 2]) == {1, 2}


@pytest.mark.parametrize("bounds", [{"max_entries": 0}, {"max_bytes": -1}])
def test_a_cache_without_room_is_refused(bounds: dict[str, int]) -> None:
    with pytest.raises(ConfigError, check=about(next(iter(bounds)))):
        MemoryCache(**bounds)


def test_memory_stays_within_the_bound() -> None:
    bound = 2_000_000
    cache = MemoryCache(max_bytes=bound)
    tracemalloc.start()
    try:
        for start in range(0, 30_000, 1000):
            put(cache, *range(start, start + 1000), size=100)
        used = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert 0.5 * bound < used < 1.1 * bound


def test_threads_may_share_it() -> None:
    cache = MemoryCache(max_entries=50)

    async def hammer(offset: int) -> None:
        for number in range(300):
            await cache.put_many([(digest(offset + number), b"v")])
            await cache.get_many([digest(n) for n in range(offset, offset + number)])

    with ThreadPoolExecutor(3) as pool:
        for done in [pool.submit(asyncio.run, hammer(offset)) for offset in (0, 100, 200)]:
            done.result()
    assert len(cache) == 50


Move = tuple[str, int, int]
move = st.tuples(st.sampled_from(["put", "get"]), st.integers(0, 9), st.integers(0, 400))


@given(moves=st.lists(move, max_size=60), max_entries=st.integers(1, 6), max_bytes=st.integers(1, 1500))
def test_it_agrees_with_a_list_kept_in_order_of_use(
    moves: list[Move], max_entries: int, max_bytes: int
) -> None:
    cache = MemoryCache(max_entries=max_entries, max_bytes=max_bytes)
    model: list[tuple[int, int]] = []  # (key, size), the least recently used first

    async def play() -> None:
        nonlocal model
        for name, key, size in moves:
            entry = next((entry for entry in model if entry[0] == key), None)
            if name == "get":
                assert (digest(key) in await cache.get_many([digest(key)])) == (entry is not None)
                if entry:
                    model = [other for other in model if other != entry] + [entry]
                continue
            await cache.put_many([(digest(key), bytes(size))])
            model = [other for other in model if other[0] != key] + [(key, size)]
            while len(model) > max_entries or sum(32 + s + ENTRY_BYTES for _, s in model) > max_bytes:
                model.pop(0)
            assert len(cache) == len(model)

    run(play())
