"""A batch in flight, from the caller's side: collect it, stream it, await it, call it off."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from complaints import about
from held import GOOD, Held
from loopback import JUDGE, PROMPT, samples

from plaudit import Engine, Sample, Source, Status, Verdict
from plaudit.errors import ConfigError, TransportFailed
from plaudit.events import BatchFinished, Event
from plaudit.testing import ScriptedTransport

DEADLINE = 0.05


@contextmanager
def engine_over(transport: Held | ScriptedTransport, cache: str | None = None) -> Iterator[Engine]:
    with Engine("http://held/v1", model="m", cache=cache, transport=lambda _: transport) as engine:
        yield engine


def status_of(verdicts: list[Verdict]) -> set[Status]:
    return {verdict.status for verdict in verdicts}


def in_thread(work: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=work)
    thread.start()
    return thread


def test_result_can_be_asked_for_again_and_by_several_threads() -> None:
    held = Held()
    with engine_over(held) as engine:
        pending = engine.submit(samples(20), JUDGE)
        results: list[list[Verdict]] = []
        threads = [in_thread(lambda: results.append(pending.result())) for _ in range(3)]
        assert not pending.done()
        assert pending.remaining == len(pending) == 20
        held.all.set()
        first = pending.result()
        for thread in threads:
            thread.join()
        assert pending.done()
        assert pending.remaining == 0
        assert pending.result() == first
        assert results == [first] * 3
        assert first is not pending.result()  # a caller may change what it was given


def test_a_result_stays_when_the_engine_is_gone() -> None:
    with engine_over(ScriptedTransport([GOOD])) as engine:
        pending = engine.submit(samples(3), JUDGE)
        first = pending.result()
    assert pending.result() == first
    assert [index for index, _ in sorted(pending.as_completed())] == [0, 1, 2]
    assert asyncio.run(awaited(pending)) == first
    pending.cancel()
    assert pending.result() == first


async def awaited(pending: object) -> list[Verdict]:
    return await pending  # type: ignore[misc, no-any-return]


def test_verdicts_stream_as_they_become_final() -> None:
    held = Held()
    with engine_over(held) as engine:
        pending = engine.submit(samples(6), JUDGE)
        stream = pending.as_completed()
        for number in (4, 0, 5):
            held.some.add(f"Paris {number}")
            index, verdict = next(stream)
            assert (index, verdict.score) == (number, 7.0)
        held.all.set()
        assert sorted(index for index, _ in stream) == [1, 2, 3]


def test_a_group_streams_once_it_is_complete_and_in_order() -> None:
    held = Held()
    with engine_over(held) as engine:
        groups = ["a", "b", "a", "b", None]
        batch = [Sample(PROMPT, f"Paris {number}", group=group) for number, group in enumerate(groups)]
        pending = engine.submit(batch, JUDGE)
        stream = pending.as_completed(by="group")
        held.some |= {"Paris 3", "Paris 0", "Paris 1"}
        group, members = next(stream)
        assert (group, [index for index, _ in members]) == ("b", [1, 3])
        assert pending.remaining == 2
        held.all.set()
        assert {(group, len(members)) for group, members in stream} == {("a", 2), (None, 1)}


def test_two_threads_stream_one_batch_and_both_get_all_of_it() -> None:
    with engine_over(ScriptedTransport([GOOD], latency=0.001)) as engine:
        pending = engine.submit(samples(200), JUDGE)
        seen: list[list[int]] = []
        threads = [
            in_thread(lambda: seen.append([index for index, _ in pending.as_completed()])) for _ in range(2)
        ]
        for thread in threads:
            thread.join()
    assert seen[0] == seen[1]
    assert sorted(seen[0]) == list(range(200))


def test_an_unknown_way_of_streaming_is_refused_by_name() -> None:
    with engine_over(ScriptedTransport([GOOD])) as engine:
        pending = engine.submit(samples(1), JUDGE)
        with pytest.raises(ConfigError, check=about("by", "prompt", "sample")):
            pending.as_completed(by="prompt")  # type: ignore[call-overload]


def test_after_the_timeout_what_is_missing_says_deadline_and_the_rest_is_kept() -> None:
    held = Held()
    held.some.add("Paris 1")
    with engine_over(held, cache="memory") as engine:
        pending = engine.submit(samples(3), JUDGE)
        next(pending.as_completed())
        verdicts = pending.result(timeout=DEADLINE)
        assert [verdict.status for verdict in verdicts] == [Status.DEADLINE, Status.OK, Status.DEADLINE]
        assert [verdict.score for verdict in verdicts] == [None, 7.0, None]
        assert pending.result() == verdicts  # final: what comes later changes nothing
        held.all.set()
        again = engine.score(samples(3), JUDGE)
        assert {verdict.score for verdict in again} == {7.0}
        assert len(held.sent) == 3  # the late replies served: nothing was asked for again


def test_a_timeout_of_any_length_is_taken() -> None:
    with engine_over(ScriptedTransport([GOOD])) as engine:
        for timeout in (float("inf"), 1e12, 5, None):
            assert status_of(engine.submit(samples(2), JUDGE).result(timeout)) == {Status.OK}
        for deadline in (float("inf"), 1e12, 5):
            assert status_of(engine.score(samples(2), JUDGE, deadline=deadline)) == {Status.OK}


def test_a_cancelled_batch_ends_at_once_and_sends_nothing_more() -> None:
    held = Held()
    with Engine(
        "http://held/v1", model="m", cache=None, max_concurrent=2, transport=lambda _: held
    ) as engine:
        pending = engine.submit(samples(50), JUDGE)
        while len(held.sent) < 2:
            threading.Event().wait(0.001)
        pending.cancel()
        pending.cancel()
        verdicts = pending.result()
        assert {(verdict.status, verdict.error) for verdict in verdicts} == {(Status.FAILED, "cancelled")}
        held.all.set()
        assert status_of(engine.score(samples(1, "Rome"), JUDGE)) == {Status.OK}
        assert len(held.sent) == 3


def test_the_summary_counts_what_came_so_far() -> None:
    held = Held()
    held.some |= {"Paris 0", "Paris 1"}
    with engine_over(held) as engine:
        pending = engine.submit([*samples(4), Sample(PROMPT, " ")], JUDGE)
        stream = pending.as_completed()
        for _ in range(3):
            next(stream)
        summary = pending.summary
        assert summary.by_status == {"ok": 2, "empty": 1}
        assert summary.samples == 5
        held.all.set()
        pending.result()
        assert pending.summary.by_source == {"call": 4, "rule": 1}


def test_a_batch_can_be_awaited_while_the_callers_loop_stays_free() -> None:
    held = Held()

    async def main() -> tuple[list[Verdict], int]:
        with engine_over(held) as engine:
            turns = 0

            async def tick() -> None:
                nonlocal turns
                while True:
                    turns += 1
                    if turns == 5:
                        held.all.set()
                    await asyncio.sleep(0)

            ticking = asyncio.create_task(tick())
            verdicts = await engine.submit(samples(3), JUDGE)
            ticking.cancel()
            return verdicts, turns

    verdicts, turns = asyncio.run(main())
    assert status_of(verdicts) == {Status.OK}
    assert turns >= 5


def test_an_awaiting_loop_that_is_closed_early_harms_nobody() -> None:
    held = Held()
    events: list[Event] = []
    with Engine(
        "http://held/v1", model="m", cache=None, observers=[events.append], transport=lambda _: held
    ) as engine:
        pending = engine.submit(samples(2), JUDGE)

        async def give_up() -> None:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(awaited(pending), 0.01)

        asyncio.run(give_up())
        held.all.set()
        assert status_of(pending.result()) == {Status.OK}
    assert isinstance(events[-1], BatchFinished)


def test_a_failure_is_a_verdict_without_a_score() -> None:
    script = ScriptedTransport([TransportFailed("it broke")])
    with engine_over(script) as engine:
        pending = engine.submit(samples(1), JUDGE, deadline=DEADLINE)
        (verdict,) = pending.result()
    assert verdict.score is None
    assert verdict.status is Status.DEADLINE


def test_twins_in_one_batch_share_one_call() -> None:
    held = Held()
    held.all.set()
    with engine_over(held) as engine:
        verdicts = engine.score([Sample(PROMPT, "Paris")] * 10, JUDGE)
    assert len(held.sent) == 1
    assert {verdict.score for verdict in verdicts} == {7.0}
    assert sum(verdict.source is Source.CALL for verdict in verdicts) == 1
