"""What every cache must do, as a suite for pytest.

Subclass CacheContract in a test module and say how to make a cache; LeasingCacheContract for one with leases.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

from plaudit.caches.base import Cache, Claim, LeasingCache

C = TypeVar("C", bound=Cache)


def digest(number: int) -> bytes:
    """The n-th of as many keys as a test may want."""
    return sha256(b"%d" % number).digest()


def with_cache(cache: C, body: Callable[[C], Awaitable[None]]) -> None:
    """Run a test's body on a loop of its own, and close the cache in any case."""

    async def main() -> None:
        try:
            await body(cache)
        finally:
            await cache.close()

    asyncio.run(main())


class CacheContract:
    """Holds for any Cache with room for a few thousand small entries."""

    def make_cache(self, folder: Path) -> Cache:
        """A new, empty cache; `folder` is an empty directory."""
        raise NotImplementedError

    def test_what_was_put_is_found_and_nothing_else(self, tmp_path: Path) -> None:
        async def body(cache: Cache) -> None:
            await cache.put_many([(digest(1), b"one"), (digest(2), b"two")])
            assert dict(await cache.get_many([digest(1), digest(3), digest(2)])) == {
                digest(1): b"one",
                digest(2): b"two",
            }

        with_cache(self.make_cache(tmp_path), body)

    def test_an_empty_cache_finds_nothing(self, tmp_path: Path) -> None:
        async def body(cache: Cache) -> None:
            assert dict(await cache.get_many([digest(1)])) == {}
            assert dict(await cache.get_many([])) == {}
            await cache.put_many([])

        with_cache(self.make_cache(tmp_path), body)

    def test_the_later_value_of_a_key_stays(self, tmp_path: Path) -> None:
        async def body(cache: Cache) -> None:
            await cache.put_many([(digest(1), b"old"), (digest(2), b"other")])
            await cache.put_many([(digest(1), b"newer"), (digest(1), b"newest")])
            assert dict(await cache.get_many([digest(1)])) == {digest(1): b"newest"}

        with_cache(self.make_cache(tmp_path), body)

    def test_any_bytes_come_back_as_they_were(self, tmp_path: Path) -> None:
        values = [b"", b"\0", bytes(range(256)), "é\u200b".encode(), b"x" * 1_000_000]

        async def body(cache: Cache) -> None:
            items = [(digest(number), value) for number, value in enumerate(values)]
            await cache.put_many(items)
            assert dict(await cache.get_many([key for key, _ in items])) == dict(items)

        with_cache(self.make_cache(tmp_path), body)

    def test_a_key_asked_for_twice_is_found(self, tmp_path: Path) -> None:
        async def body(cache: Cache) -> None:
            await cache.put_many([(digest(1), b"one")])
            assert dict(await cache.get_many([digest(1), digest(1)])) == {digest(1): b"one"}

        with_cache(self.make_cache(tmp_path), body)

    def test_thousands_of_keys_go_in_one_call(self, tmp_path: Path) -> None:
        items = [(digest(number), b"%d" % number) for number in range(3000)]

        async def body(cache: Cache) -> None:
            await cache.put_many(items[::2])
            assert dict(await cache.get_many([key for key, _ in items])) == dict(items[::2])

        with_cache(self.make_cache(tmp_path), body)

    def test_keys_that_differ_only_at_the_end_are_different(self, tmp_path: Path) -> None:
        async def body(cache: Cache) -> None:
            near = digest(1)[:-1] + bytes([digest(1)[-1] ^ 1])
            await cache.put_many([(digest(1), b"one")])
            assert dict(await cache.get_many([near])) == {}

        with_cache(self.make_cache(tmp_path), body)

    def test_what_is_no_digest_is_refused(self, tmp_path: Path) -> None:
        async def body(cache: Cache) -> None:
            for attempt in (cache.get_many([b"short"]), cache.put_many([(b"short", b"value")])):
                try:
                    await attempt
                except ValueError as error:
                    assert "32 bytes, not 5" in str(error)
                else:
                    raise AssertionError("a key of 5 bytes was taken")

        with_cache(self.make_cache(tmp_path), body)

    def test_many_tasks_at_once_lose_nothing(self, tmp_path: Path) -> None:
        async def body(cache: Cache) -> None:
            async def write_then_read(number: int) -> None:
                await cache.put_many([(digest(number), b"%d" % number)])
                assert dict(await cache.get_many([digest(number)])) == {digest(number): b"%d" % number}

            await asyncio.gather(*(write_then_read(number) for number in range(200)))
            assert len(await cache.get_many([digest(number) for number in range(200)])) == 200

        with_cache(self.make_cache(tmp_path), body)

    def test_closing_twice_is_safe(self, tmp_path: Path) -> None:
        async def body(cache: Cache) -> None:
            await cache.put_many([(digest(1), b"one")])
            await cache.close()
            await cache.close()

        with_cache(self.make_cache(tmp_path), body)

    def test_a_cache_never_used_can_be_closed(self, tmp_path: Path) -> None:
        async def body(cache: Cache) -> None:
            await cache.close()

        with_cache(self.make_cache(tmp_path), body)

    def test_it_works_on_one_loop_after_another(self, tmp_path: Path) -> None:
        cache = self.make_cache(tmp_path)
        asyncio.run(cache.put_many([(digest(1), b"one")]))

        async def body(cache: Cache) -> None:
            assert dict(await cache.get_many([digest(1)])) == {digest(1): b"one"}

        with_cache(cache, body)


class LeasingCacheContract(CacheContract):
    """Holds for any LeasingCache; 1, 2 and 3 are owners."""

    def make_cache(self, folder: Path) -> LeasingCache:
        """A new, empty cache; `folder` is an empty directory."""
        raise NotImplementedError

    def test_it_is_known_for_a_cache_with_leases(self, tmp_path: Path) -> None:
        async def body(cache: LeasingCache) -> None:
            assert isinstance(cache, LeasingCache)

        with_cache(self.make_cache(tmp_path), body)

    def test_a_key_is_leased_to_whoever_claims_it_first(self, tmp_path: Path) -> None:
        async def body(cache: LeasingCache) -> None:
            first = await cache.claim_many([digest(1), digest(2)], owner=1)
            assert first == Claim({}, frozenset(), frozenset())
            second = await cache.claim_many([digest(2), digest(3)], owner=2)
            assert second == Claim({}, frozenset({digest(2)}))
            again = await cache.claim_many([digest(1), digest(2), digest(3)], owner=1)
            assert again.elsewhere == {digest(3)}

        with_cache(self.make_cache(tmp_path), body)

    def test_what_is_stored_is_found_by_all_and_leased_to_nobody(self, tmp_path: Path) -> None:
        async def body(cache: LeasingCache) -> None:
            await cache.claim_many([digest(1), digest(2)], owner=1)
            await cache.put_many([(digest(1), b"one")])
            claim = await cache.claim_many([digest(1), digest(2)], owner=2)
            assert claim == Claim({digest(1): b"one"}, frozenset({digest(2)}))

        with_cache(self.make_cache(tmp_path), body)

    def test_looking_keys_up_leases_nothing(self, tmp_path: Path) -> None:
        async def body(cache: LeasingCache) -> None:
            await cache.claim_many([digest(9)], owner=1)
            await cache.get_many([digest(1)])
            assert not (await cache.claim_many([digest(1)], owner=2)).elsewhere

        with_cache(self.make_cache(tmp_path), body)

    def test_what_is_released_can_be_claimed_by_another(self, tmp_path: Path) -> None:
        async def body(cache: LeasingCache) -> None:
            keys = [digest(number) for number in range(1500)]
            await cache.claim_many(keys, owner=1)
            await cache.release_many(keys[:700], owner=2)  # not its own: nothing happens
            assert (await cache.claim_many(keys, owner=2)).elsewhere == set(keys)
            await cache.release_many(keys[:700], owner=1)
            assert (await cache.claim_many(keys, owner=2)).elsewhere == set(keys[700:])
            await cache.release_many(None, owner=1)
            assert not (await cache.claim_many(keys, owner=2)).elsewhere
            assert (await cache.claim_many(keys, owner=3)).elsewhere == set(keys)

        with_cache(self.make_cache(tmp_path), body)

    def test_an_idle_run_is_given_what_it_waits_for(self, tmp_path: Path) -> None:
        async def body(cache: LeasingCache) -> None:
            keys = [digest(1), digest(2), digest(3)]
            await cache.claim_many(keys, owner=1)
            await cache.claim_many(keys[:2], owner=2, is_idle=True)
            assert (await cache.claim_many([], owner=1)).wanted == set(keys[:2])
            await cache.release_many([digest(1), digest(3)], owner=1)
            assert (await cache.claim_many(keys, owner=3)).elsewhere == set(keys[:2])
            assert (await cache.claim_many(keys, owner=2)).elsewhere == {digest(2), digest(3)}

        with_cache(self.make_cache(tmp_path), body)

    def test_a_busy_run_is_given_nothing_and_a_wish_can_be_withdrawn(self, tmp_path: Path) -> None:
        async def body(cache: LeasingCache) -> None:
            await cache.claim_many([digest(1), digest(2)], owner=1)
            await cache.claim_many([digest(1)], owner=2)
            await cache.claim_many([digest(2)], owner=2, is_idle=True)
            await cache.release_many([digest(2)], owner=2)
            assert not (await cache.claim_many([], owner=1)).wanted
            await cache.release_many(None, owner=1)
            assert not (await cache.claim_many([digest(1), digest(2)], owner=3)).elsewhere

        with_cache(self.make_cache(tmp_path), body)

    def test_of_two_owners_that_claim_at_once_one_gets_each_key(self, tmp_path: Path) -> None:
        async def body(cache: LeasingCache) -> None:
            keys = [digest(number) for number in range(200)]
            claims = await asyncio.gather(
                *(cache.claim_many([key], owner=owner) for key in keys for owner in (1, 2))
            )
            assert sum(len(claim.elsewhere) for claim in claims) == len(keys)

        with_cache(self.make_cache(tmp_path), body)

    def test_a_lease_on_what_is_no_digest_is_refused(self, tmp_path: Path) -> None:
        async def body(cache: LeasingCache) -> None:
            for attempt in (cache.claim_many([b"short"], owner=1), cache.release_many([b"short"], owner=1)):
                try:
                    await attempt
                except ValueError as error:
                    assert "32 bytes, not 5" in str(error)
                else:
                    raise AssertionError("a key of 5 bytes was taken")

        with_cache(self.make_cache(tmp_path), body)
