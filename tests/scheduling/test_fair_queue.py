"""Jobs take turns, whatever each of them has waiting."""

from __future__ import annotations

import asyncio
from collections import Counter

from dispatching import GOOD, Bench, FakeServer, numbered
from scoring import Desk, good_server, samples, verdicts_of

from plaudit.config import EngineConfig
from plaudit.errors import RateLimited
from plaudit.scheduling.fair_queue import FairQueue
from plaudit.testing import run


class Item:
    def __init__(self, job: str, number: int) -> None:
        self.job = job
        self.name = f"{job}{number}"


def queue_of(*items: Item) -> FairQueue[Item]:
    queue: FairQueue[Item] = FairQueue()
    queue.extend(items)
    return queue


def names_of(queue: FairQueue[Item]) -> list[str]:
    return [took(queue).name for _ in range(len(queue))]


def took(queue: FairQueue[Item], under_way: dict[str, int] | None = None) -> Item:
    item = queue.peek(under_way)
    queue.take(item)
    return item


A, B, C = ([Item(job, number) for number in range(4)] for job in "abc")


def test_items_of_one_job_leave_in_their_order() -> None:
    assert names_of(queue_of(*A)) == ["a0", "a1", "a2", "a3"]


def test_jobs_take_turns() -> None:
    assert names_of(queue_of(*A, *B[:2], C[0])) == ["a0", "b0", "c0", "a1", "b1", "a2", "a3"]


def test_a_job_that_was_away_has_saved_no_turns_up() -> None:
    queue = queue_of(*A)
    took(queue)
    took(queue)
    queue.extend(B)
    assert names_of(queue) == ["a2", "b0", "a3", "b1", "b2", "b3"]


def test_what_comes_back_is_first_of_its_job_and_next_where_that_has_nothing_else() -> None:
    queue = queue_of(*A[:2], *B[1:3])
    queue.appendleft(B[0])
    queue.appendleft(C[0])
    assert names_of(queue) == ["c0", "a0", "b0", "a1", "b1", "b2"]


def test_items_can_be_taken_out_of_the_middle() -> None:
    queue = queue_of(*A, B[0])
    queue.remove(A[1])
    queue.remove(B[0])
    assert A[0] in queue and A[1] not in queue and B[0] not in queue
    assert len(queue) == 3 and [item.name for item in queue] == ["a0", "a2", "a3"]
    queue.clear()
    assert not queue and list(queue) == []


def test_a_job_with_far_more_than_its_share_of_the_slots_is_passed_over() -> None:
    queue = queue_of(*A, *B)
    assert [took(queue, {"a": 20, "b": 4}).name for _ in range(3)] == ["b0", "b1", "b2"]
    assert [took(queue, {"a": 14, "b": 10}).name for _ in range(2)] == ["a0", "b3"]
    assert took(queue, {"a": 24}).name == "a1"  # as none of the others has anything to send


def test_a_job_of_slow_calls_leaves_slots_to_one_of_quick_calls() -> None:
    server = FakeServer(lambda asked: (30.0 if asked.text.startswith("slow") else 0.1, GOOD))

    async def main() -> None:
        async with Bench(server, config=EngineConfig(max_concurrent=16, hedge=False)) as bench:
            bench.ask(*numbered(400, name="slow"), job="slow")
            bench.ask(*numbered(400, name="quick"), job="quick")
            await bench.answers()
            quick = [ended for text, ended in bench.ended_at.items() if text.startswith("quick")]
            assert max(quick) <= 75.0  # at one call a turn it would be as long as the slow ones take

    run(main())


def test_a_job_of_slow_calls_has_its_half_of_a_rate() -> None:
    server = FakeServer(lambda asked: (20.0 if asked.text.startswith("slow") else 0.1, GOOD))

    async def main() -> None:
        async with Bench(server, config=EngineConfig(rpm=60, hedge=False)) as bench:
            bench.ask(*numbered(300, name="quick"), job="quick")
            bench.ask(*numbered(300, name="slow"), job="slow")
            await bench.answers()
            sent = Counter(asked.text[:4] for asked in server.asked if 60.0 < asked.at <= 240.0)
            assert sent["slow"] == sent["quic"]

    run(main())


def test_a_small_job_is_served_at_once_beside_a_large_one() -> None:
    server = FakeServer()

    async def main() -> None:
        async with Bench(server, config=EngineConfig(max_concurrent=4)) as bench:
            bench.ask(*numbered(200, name="large"), job="large")
            bench.ask(*numbered(8, name="small"), job="small")
            await bench.answers()
            ends = [ended for text, ended in bench.ended_at.items() if text.startswith("small")]
            assert max(ends) <= 1.0 + 8 / 2  # after the first four, it has two of four slots

    run(main())


def test_jobs_of_unequal_load_get_equal_shares_in_ordinary_weather() -> None:
    server = FakeServer(lambda asked: RateLimited("busy") if asked.arrival % 7 == 0 else (1.0, GOOD))

    async def main() -> None:
        async with Bench(server, config=EngineConfig(max_concurrent=16)) as bench:
            for job, count in (("a", 1000), ("b", 400), ("c", 400)):
                bench.ask(*numbered(count, name=job), job=job)
            await bench.answers()
            first = sorted(bench.ended_at, key=lambda text: bench.ended_at[text])[:900]
            shares = Counter(text[0] for text in first)
            assert all(abs(count - 300) <= 30 for count in shares.values())

    run(main())


def test_single_samples_overtake_thousands_of_another_job_that_are_not_even_rendered() -> None:
    server = good_server()

    async def main() -> None:
        async with Desk(server, config=EngineConfig(max_concurrent=4)) as desk:
            crowd = [desk.submit(samples(1, name=f"large{n}"), job="large") for n in range(3000)]
            await asyncio.sleep(2.0)
            began = asyncio.get_running_loop().time()
            await verdicts_of(desk.submit(samples(1, name="small"), job="small"))
            assert asyncio.get_running_loop().time() - began <= 3.0
            for batch in crowd:
                desk.scorer.cancel(batch)

    run(main())
