"""Twins: they cut the tail, stay within the budget, and never make two outcomes of one call."""

from __future__ import annotations

import asyncio

import pytest
from dispatching import GOOD, NEVER, Asked, Bench, FakeServer, good, numbered, question
from scoring import Desk
from simulation import score_batches, seeded

from plaudit.config import EngineConfig
from plaudit.errors import RateLimited, RequestRefused, TransportFailed
from plaudit.events import CallFinished, CallStarted
from plaudit.policy.hedge import hedge_age
from plaudit.policy.retry import RetryPolicy
from plaudit.service.relay import Relay, sample_of
from plaudit.simulator import PRESETS, Queue, Scenario
from plaudit.testing import run
from plaudit.types import RawRequest, Reply, Request, Sample

BODY = Reply("", body=b"{}")
ROOM = Scenario(capacity=Queue(slots=64))


def straggling(slow: str) -> FakeServer:
    """Answers in a second, but one question in a minute when it first comes."""
    return FakeServer(lambda asked: (60.0 if asked.text == slow and asked.nth == 1 else 1.0, GOOD))


def test_hedging_halves_the_tail_where_a_second_endpoint_has_room() -> None:
    servers = [seeded(PRESETS["straggler"], 3), seeded(ROOM, 4)]
    with_twins = score_batches(servers)[0]
    without = score_batches(servers, config=EngineConfig(hedge=False))[0]
    assert with_twins.seconds <= without.seconds / 2
    assert with_twins.failures == without.failures == 0
    assert 0 < with_twins.hedges <= 64 + 0.25 * with_twins.calls


def test_a_straggler_is_answered_by_its_twin_and_then_cut_off() -> None:
    async def main() -> None:
        slow, fine = FakeServer(lambda asked: (60.0 if asked.arrival == 30 else 1.0, GOOD)), FakeServer(GOOD)
        async with Bench(slow, fine) as bench:
            assert good(await bench.ask_all(*numbered(120))) == 120
            odd = slow.asked[30].text
            assert odd in fine.texts()
            assert bench.calls[odd].latency < 5.0
            assert bench.calls[odd].sends == 2
            assert slow.cancelled == 1
            assert slow.gauge.now == 0
            assert len(bench.outcomes[odd]) == 1
            assert bench.lanes[1].name in [e.endpoint for e in bench.seen(CallStarted) if e.is_hedge]
            assert "cancelled" in {event.outcome for event in bench.seen(CallFinished)}

    run(main())


def test_a_single_endpoint_gets_its_twins_itself() -> None:
    async def main() -> None:
        server = straggling("q70")
        async with Bench(server) as bench:
            assert good(await bench.ask_all(*numbered(80))) == 80
            assert max(bench.ended_at.values()) < 20.0
            assert server.texts().count("q70") == 2

    run(main())


def test_hedging_can_be_turned_off() -> None:
    async def main() -> None:
        server = straggling("q70")
        async with Bench(server, config=EngineConfig(hedge=False)) as bench:
            assert good(await bench.ask_all(*numbered(80))) == 80
            assert len(server.asked) == 80

    run(main())


def test_a_twin_never_takes_a_slot_that_a_waiting_call_needs() -> None:
    async def main() -> None:
        server = FakeServer(lambda asked: (2.5 if asked.text in ("q30", "q39") else 1.0, GOOD))
        config = EngineConfig(max_concurrent=4, timeout=300.0)
        async with Bench(server, config=config) as bench:
            await bench.ask_all(*numbered(100))
            last_first_send = max(asked.at for asked in server.asked if asked.nth == 1)
            assert all(asked.at >= last_first_send for asked in server.asked if asked.nth > 1)

    run(main())


def hanging(*arrivals: int, twins: int = 0) -> FakeServer:
    """Answers in half a second, except the calls of these numbers, and so many twins of each."""
    hung: set[str] = set()

    def behave(asked: Asked) -> tuple[float, Reply]:
        if asked.arrival in arrivals:
            hung.add(asked.text)
        return (NEVER if asked.text in hung and asked.nth <= 1 + twins else 0.5), GOOD

    return FakeServer(behave)


def test_a_call_that_hangs_gets_its_twin_though_others_wait() -> None:
    async def main() -> None:
        server = hanging(30, 31)
        async with Bench(server, config=EngineConfig(max_concurrent=4, timeout=600.0)) as bench:
            bench.ask(*numbered(400))
            await asyncio.sleep(20.0)
            assert bench.dispatcher.backlog > 100
            assert {server.asked[30].text, server.asked[31].text} <= bench.outcomes.keys()
            assert good(await bench.answers()) == 400

    run(main())


def test_a_call_that_hangs_gets_its_twin_though_the_budget_of_retries_is_spent() -> None:
    async def main() -> None:
        server = hanging(70)
        async with Bench(server, config=EngineConfig(timeout=600.0)) as bench:
            budget = bench.dispatcher._retries
            while budget.can_hedge(now=0.0):
                budget.take(now=0.0)
            for _ in range(10_000):
                budget.take(now=0.0)
            assert good(await bench.ask_all(*numbered(100))) == 100
            assert max(bench.ended_at.values()) < 30.0

    run(main())


def test_a_call_that_hangs_gets_its_twin_where_nothing_but_one_reply_is_known() -> None:
    async def main() -> None:
        server = hanging(1)
        async with Bench(server, config=EngineConfig(timeout=600.0)) as bench:
            assert good(await bench.ask_all("a", "b")) == 2
            assert max(bench.ended_at.values()) < 60.0

    run(main())


def test_a_twin_that_hangs_as_well_gets_another() -> None:
    async def main() -> None:
        server = hanging(70, twins=1)
        async with Bench(server, config=EngineConfig(timeout=600.0)) as bench:
            assert good(await bench.ask_all(*numbered(100))) == 100
            assert max(bench.ended_at.values()) < 60.0
            assert bench.calls[server.asked[70].text].sends == 3
            assert server.cancelled == 2

    run(main())


def test_a_hung_call_whose_twins_fail_in_an_outage_gets_another_after_it() -> None:
    async def main() -> None:
        def behave(asked: Asked) -> tuple[float, Reply | Exception]:
            if asked.text == "q50" and asked.nth == 1:
                return NEVER, GOOD
            return (0.5, GOOD) if asked.text != "q50" or asked.nth > 8 else (0.01, TransportFailed("500"))

        async with Bench(FakeServer(behave), config=EngineConfig(timeout=600.0)) as bench:
            assert good(await bench.ask_all(*numbered(100))) == 100
            assert max(bench.ended_at.values()) < 60.0

    run(main())


def test_the_last_call_gets_its_twin_where_the_limit_has_fallen_to_the_calls_under_way() -> None:
    async def main() -> None:
        def behave(asked: Asked) -> tuple[float, Reply | Exception]:
            if asked.text == "q39" and asked.nth == 1:
                return NEVER, GOOD
            return (0.02, RateLimited("429")) if server.gauge.now > 0 and not is_last(asked) else (0.5, GOOD)

        def is_last(asked: Asked) -> bool:
            return asked.text == "q39"

        server = FakeServer(behave)
        async with Bench(server, config=EngineConfig(timeout=600.0)) as bench:
            assert good(await bench.ask_all(*numbered(39))) == 39
            asked_at = asyncio.get_running_loop().time()
            assert bench.lanes[0].limit.limit == 1
            assert good(await bench.ask_all("q39")) == 40
            assert bench.ended_at["q39"] - asked_at < 15.0

    run(main())


def test_a_call_that_hangs_is_asked_again_in_its_own_place_where_no_other_may_be_sent_beside_it() -> None:
    async def main() -> None:
        server = hanging(70, twins=1)
        async with Bench(server, config=EngineConfig(max_concurrent=1, timeout=600.0)) as bench:
            assert good(await bench.ask_all(*numbered(100))) == 100
            assert max(bench.ended_at.values()) < 50.0 + 30.0
            assert server.gauge.peak == 1
            assert server.cancelled == 2

    run(main())


def test_a_hung_call_whose_twin_is_refused_gets_another_soon() -> None:
    async def main() -> None:
        def behave(asked: Asked) -> tuple[float, Reply | Exception]:
            if asked.text != "q70" or asked.nth == 4:
                return 5.0, GOOD
            return (NEVER, GOOD) if asked.nth == 1 else (0.1, RateLimited("429"))

        async with Bench(FakeServer(behave), config=EngineConfig(timeout=600.0)) as bench:
            assert good(await bench.ask_all(*numbered(100))) == 100
            assert max(bench.ended_at.values()) < 50.0  # a call that takes 20 s hangs

    run(main())


def test_a_question_that_always_hangs_has_three_twins_and_no_more() -> None:
    async def main() -> None:
        server = hanging(70, twins=99)
        once = RetryPolicy(attempts=1)
        async with Bench(server, config=EngineConfig(timeout=100.0), retry=once) as bench:
            assert good(await bench.ask_all(*numbered(100))) == 99
            assert bench.calls[server.asked[70].text].sends == 4

    run(main())


def test_a_call_that_hangs_gets_its_twin_from_another_endpoint_first() -> None:
    async def main() -> None:
        stuck, fine = hanging(40), hanging()
        async with Bench(stuck, fine, config=EngineConfig(max_concurrent=8, timeout=600.0)) as bench:
            assert good(await bench.ask_all(*numbered(400))) == 400
            assert stuck.asked[40].text in fine.texts()

    run(main())


def test_twins_stay_within_the_budget_of_retries() -> None:
    async def main() -> None:
        slow = FakeServer(lambda asked: (500.0 if asked.at > 20.0 else 1.0, GOOD))
        fine = FakeServer(lambda asked: (400.0 if asked.at > 20.0 else 1.0, GOOD))
        async with Bench(slow, fine, config=EngineConfig(timeout=1000.0)) as bench:
            await bench.ask_all(*numbered(50, name="early"))
            await asyncio.sleep(30.0)
            await bench.ask_all(*numbered(100, name="late"))
            twins = [event.at for event in bench.seen(CallStarted) if event.is_hedge]
            assert twins
            for count, at in enumerate(sorted(twins), start=1):
                assert count <= 20 + 0.2 * 150 + 10 * (at - 30.0)

    run(main())


@pytest.mark.parametrize(
    "error", [TransportFailed("reset"), RateLimited("slow down"), RequestRefused("400")], ids=repr
)
def test_a_twin_that_fails_leaves_the_call_to_the_other(error: Exception) -> None:
    def behave(asked: Asked) -> tuple[float, Reply | Exception]:
        if asked.text != "q70":
            return 1.0, GOOD
        return (3.0, GOOD) if asked.nth == 1 else (0.1, error)

    async def main() -> None:
        server = FakeServer(behave)
        async with Bench(server) as bench:
            assert good(await bench.ask_all(*numbered(80))) == 80
            assert server.texts().count("q70") == 2  # the first one goes on, and needs no third

    run(main())


def test_a_twin_turned_away_elsewhere_is_not_sent_a_third_time() -> None:
    async def main() -> None:
        slow = FakeServer(lambda asked: (3.0 if asked.arrival == 30 else 1.0, GOOD))
        full = FakeServer(lambda asked: RateLimited("slow down") if asked.text in slow.texts() else GOOD)
        async with Bench(slow, full) as bench:
            assert good(await bench.ask_all(*numbered(120))) == 120
            assert slow.asked[30].text in full.texts()
            assert bench.calls[slow.asked[30].text].sends == 2

    run(main())


def test_when_both_twins_fail_the_call_is_tried_again() -> None:
    def behave(asked: Asked) -> tuple[float, Reply | Exception]:
        if asked.text != "q70" or asked.nth > 2:
            return 1.0, GOOD
        return 2.5 + asked.nth / 10, TransportFailed("reset")

    async def main() -> None:
        server = FakeServer(behave)
        async with Bench(server) as bench:
            assert good(await bench.ask_all(*numbered(80))) == 80
            assert bench.calls["q70"].attempts == 3

    run(main())


def test_a_call_that_hangs_does_not_wait_for_its_timeout() -> None:
    async def main() -> None:
        server = FakeServer(lambda asked: (NEVER if asked.text == "q70" and asked.nth == 1 else 1.0, GOOD))
        async with Bench(server, config=EngineConfig(timeout=600.0)) as bench:
            assert good(await bench.ask_all(*numbered(80))) == 80
            assert max(bench.ended_at.values()) < 30.0

    run(main())


def test_a_call_whose_twin_hangs_as_well_gets_another_before_both_count_as_hung() -> None:
    async def main() -> None:
        server = FakeServer(lambda asked: (NEVER if asked.text == "q70" and asked.nth < 3 else 1.0, GOOD))
        async with Bench(server, config=EngineConfig(timeout=600.0)) as bench:
            assert good(await bench.ask_all(*numbered(80))) == 80
            sent = [asked.at for asked in server.asked if asked.text == "q70"]
            assert sent[1] - sent[0] < 2.0  # a call is an outlier at one and a half times what others take
            assert sent[2] - sent[1] < 4.0  # twice as long for the twin; four times that it would hang

    run(main())


def queueing(slots: int, *, slow: str, seconds: float) -> FakeServer:
    """Takes any number of calls, works on so many at a time for a second each, and on one for longer."""
    return FakeServer(
        lambda asked: (
            seconds if asked.text == slow and asked.nth == 1 else 1.0 + asked.arrival // slots,
            GOOD,
        )
    )


def test_a_straggler_in_a_deep_queue_is_known_by_those_that_overtook_it() -> None:
    async def main() -> None:
        server = queueing(4, slow="q30", seconds=500.0)
        async with Bench(server, config=EngineConfig(timeout=600.0)) as bench:
            assert good(await bench.ask_all(*numbered(240))) == 240
            # All of them took up to 60 s, so that by its age alone it would be one after 90 s.
            again = next(asked.at for asked in server.asked if asked.text == "q30" and asked.nth == 2)
            assert again < 70.0
            assert len(server.asked) <= 1.05 * 240

    run(main())


def test_the_last_calls_of_a_slow_endpoint_that_are_nearly_done_get_no_twins() -> None:
    async def main() -> None:
        slow, fast = FakeServer(GOOD, latency=4.0), FakeServer(GOOD, latency=2.0)
        async with Bench(slow, fast) as bench:
            assert good(await bench.ask_all(*numbered(400))) == 400
            for event in bench.seen(CallStarted):
                if event.is_hedge:
                    assert event.endpoint == bench.lanes[1].name
            sent = {asked.text: asked.at for asked in slow.asked}
            twins = [asked for asked in fast.asked if asked.text in sent]
            assert all(asked.at - sent[asked.text] < 2.0 for asked in twins)

    run(main())


def test_a_twin_cut_off_in_the_moment_it_was_sent_gives_its_slot_back() -> None:
    """The reply and the twin fall on the same instant: the twin's task is cancelled before its first step."""

    async def main() -> None:
        probe = FakeServer(GOOD)
        async with Bench(probe) as bench:
            await bench.ask_all(*numbered(80))
            age = hedge_age(bench.lanes[0].latencies)
            assert age is not None
        exact = FakeServer(lambda asked: (age if asked.text == "q70" and asked.nth == 1 else 1.0, GOOD))
        async with Bench(exact) as bench:  # which checks that no flight is left behind
            assert good(await bench.ask_all(*numbered(80))) == 80
            await asyncio.sleep(0.0)
            assert bench.lanes[0].in_flight == 0

    run(main())


@pytest.mark.parametrize(("is_draw", "seconds", "sends"), [(False, 3.0, 2), (True, 3.0, 1), (True, 60.0, 2)])
def test_a_draw_gets_no_twin_unless_it_hangs_for_the_faster_one_would_be_the_shorter(
    is_draw: bool, seconds: float, sends: int
) -> None:
    class Passing(FakeServer):
        async def send(self, request: Request) -> Reply:
            assert isinstance(request, RawRequest)
            return await super().send(question(request.body.decode()))

    def asked(text: str) -> Sample:
        return sample_of(RawRequest("/chat/completions", text.encode(), text.encode(), 10, is_draw))

    async def main() -> None:
        server = Passing(lambda asked: (seconds if asked.text == "q70" and asked.nth == 1 else 1.0, BODY))
        async with Desk(server) as desk:
            verdicts = await desk.score([asked(text) for text in numbered(80)], Relay())
            assert all(verdict.is_valid for verdict in verdicts)
            assert server.texts().count("q70") == sends

    run(main())
