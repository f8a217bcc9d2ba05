"""What happens to a call that is turned away, breaks, hangs, or asks for what will never pass."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest
from dispatching import GOOD, NEVER, Asked, Bench, FakeServer, good, numbered

from plaudit.config import EngineConfig
from plaudit.errors import PlauditError, RateLimited, RequestRefused, TransportFailed
from plaudit.events import CallFinished, RetryPlanned
from plaudit.policy.limit import LimitConfig
from plaudit.policy.retry import RetryPolicy
from plaudit.testing import ScriptedTransport, run
from plaudit.types import Reply


def fails_first(times: int, error: PlauditError) -> FakeServer:
    """Every question gets the error so many times before its answer."""
    return FakeServer(lambda asked: error if asked.nth <= times else GOOD)


@pytest.mark.parametrize("asked", [None, 0.0, 1.0, 60.0, 3600.0])
def test_what_a_refusal_asks_for_is_tested_by_an_early_call_and_spends_no_attempt(
    asked: float | None,
) -> None:
    async def main() -> None:
        transport = ScriptedTransport([RateLimited("slow down", retry_after=asked), Reply("7")])
        async with Bench(transport) as bench:
            outcomes = await bench.ask_all("a")
            assert isinstance(outcomes["a"], Reply)
            assert bench.calls["a"].attempts == 1
            assert bench.calls["a"].rejections == 1
            first, second = transport.sent_at
            assert first == 0.0
            assert second <= 2.0

    run(main())


def test_a_rejection_without_a_header_is_tried_again_soon() -> None:
    async def main() -> None:
        async with Bench(fails_first(1, RateLimited("slow down"))) as bench:
            assert good(await bench.ask_all("a")) == 1
            assert bench.ended_at["a"] < 5.0

    run(main())


def test_rejections_are_outwaited_however_many_there_are() -> None:
    async def main() -> None:
        async with Bench(fails_first(6, RateLimited("slow down"))) as bench:
            assert good(await bench.ask_all("a", "b", "c")) == 3
            assert bench.calls["a"].attempts == 1
            assert bench.calls["a"].rejections == 6

    run(main())


def test_an_endpoint_that_only_ever_rejects_is_given_up_after_minutes_not_never() -> None:
    async def main() -> None:
        async with Bench(FakeServer(RateLimited("not now"))) as bench:
            outcome = (await bench.ask_all("a"))["a"]
            assert isinstance(outcome, RateLimited)
            assert 300.0 < bench.ended_at["a"] < 1200.0

    run(main())


def test_an_endpoint_that_turns_everything_away_is_not_hammered() -> None:
    async def main() -> None:
        server = FakeServer(lambda a: RateLimited("not now") if a.at < 60.0 else GOOD, latency=0.001)
        async with Bench(server) as bench:
            assert good(await bench.ask_all(*numbered(500))) == 500
            assert sum(10.0 <= at < 60.0 for at in server.sent_at) <= 100
            assert max(bench.ended_at.values()) < 75.0

    run(main())


def test_a_call_that_breaks_is_tried_again_with_growing_waits() -> None:
    async def main() -> None:
        server = fails_first(3, TransportFailed("reset"))
        async with Bench(server) as bench:
            assert good(await bench.ask_all("a")) == 1
            assert bench.calls["a"].attempts == 4
            gaps = [later - earlier - server.latency for earlier, later in pairwise(server.sent_at)]
            assert all(0.0 < gap <= 31.0 for gap in gaps)
            assert gaps[2] > gaps[0]
            assert [event.attempt for event in bench.seen(RetryPlanned)] == [1, 2, 3]

    run(main())


def test_the_only_call_left_is_not_lost_to_an_outage_of_twenty_seconds() -> None:
    async def main() -> None:
        def behave(asked: Asked) -> tuple[float, Reply | Exception]:
            if 10.0 <= asked.at < 30.0:
                return 0.01, TransportFailed("reset")
            return 1.0, GOOD

        async with Bench(FakeServer(behave)) as bench:
            assert good(await bench.ask_all(*numbered(20))) == 20
            await asyncio.sleep(10.0 - asyncio.get_running_loop().time())
            assert good(await bench.ask_all("last")) == 21
            assert bench.ended_at["last"] < 40.0

    run(main())


def test_the_only_call_left_fails_within_a_minute_where_it_always_does() -> None:
    async def main() -> None:
        server = FakeServer(lambda asked: TransportFailed("reset") if asked.text == "last" else GOOD)
        async with Bench(server) as bench:
            assert good(await bench.ask_all(*numbered(20))) == 20
            assert isinstance((await bench.ask_all("last"))["last"], TransportFailed)
            assert bench.ended_at["last"] < 60.0

    run(main())


def test_when_attempts_are_used_up_the_last_error_is_the_outcome() -> None:
    async def main() -> None:
        server = FakeServer(lambda asked: TransportFailed(f"reset number {asked.nth}"))
        async with Bench(server, retry=RetryPolicy(attempts=3)) as bench:
            outcome = (await bench.ask_all("a"))["a"]
            assert str(outcome) == "reset number 3"
            assert bench.calls["a"].attempts == 3
            assert len(server.asked) == 3

    run(main())


def test_a_call_is_not_held_back_for_as_long_as_a_broken_endpoint_asks() -> None:
    async def main() -> None:
        server = fails_first(1, TransportFailed("503", retry_after=45.0))
        async with Bench(server) as bench:
            assert good(await bench.ask_all("a")) == 1
            first, second = server.sent_at
            assert second - first <= server.latency + 2.0


def test_where_it_stays_shut_for_as_long_as_it_asked_few_calls_find_out() -> None:
    def behave(asked: Asked) -> Reply | Exception:
        return RateLimited("slow down", retry_after=60.0 - asked.at) if asked.at < 60.0 else GOOD

    async def main() -> None:
        server = FakeServer(behave, latency=0.1)
        async with Bench(server, start=LimitConfig(start=8)) as bench:
            assert good(await bench.ask_all(*numbered(50))) == 50
            assert len(server.asked) <= 8 + 50 + 20
            assert max(bench.ended_at.values()) < 65.0

    run(main())


def test_a_few_refusals_that_ask_for_an_hour_delay_nobody_else() -> None:
    def behave(asked: Asked) -> Reply | Exception:
        return RateLimited("slow down", retry_after=3600.0) if asked.arrival in (3, 20, 33, 60, 90) else GOOD

    async def main() -> None:
        server = FakeServer(behave)
        async with Bench(server, start=LimitConfig(start=16)) as bench:
            assert good(await bench.ask_all(*numbered(200))) == 200
            assert max(bench.ended_at.values()) < 1.5 * 200 / 16
            assert {call.attempts for call in bench.calls.values()} == {1}

    run(main())

    run(main())


def test_a_refused_request_fails_alone_and_at_once() -> None:
    def behave(asked: Asked) -> Reply | Exception:
        return RequestRefused("400: too long") if asked.text == "q3" else GOOD

    async def main() -> None:
        server = FakeServer(behave)
        async with Bench(server) as bench:
            outcomes = await bench.ask_all(*numbered(8))
            assert good(outcomes) == 7
            assert isinstance(outcomes["q3"], RequestRefused)
            assert server.texts().count("q3") == 1
            assert bench.calls["q3"].attempts == 1

    run(main())


def test_a_call_that_hangs_is_given_up_on_time_and_tried_again() -> None:
    async def main() -> None:
        server = FakeServer(lambda asked: (NEVER if asked.nth == 1 else 1.0, GOOD))
        async with Bench(server, config=EngineConfig(timeout=20.0, hedge=False)) as bench:
            assert good(await bench.ask_all(*numbered(5))) == 5
            timeouts = [event.at for event in bench.seen(CallFinished) if event.outcome == "failed"]
            assert len(timeouts) == 5
            assert all(20.0 <= at <= 21.0 for at in timeouts)
            assert server.cancelled == 5
            assert server.gauge.now == 0

    run(main())


def test_the_error_of_a_hang_says_who_and_how_long() -> None:
    async def main() -> None:
        config = EngineConfig(timeout=20.0)
        once = RetryPolicy(attempts=1)
        async with Bench(FakeServer(lambda _: (NEVER, GOOD)), config=config, retry=once) as bench:
            outcome = (await bench.ask_all("a"))["a"]
            assert isinstance(outcome, TransportFailed)
            assert "http://server0/v1" in str(outcome)
            assert "20 s" in str(outcome)

    run(main())


def test_a_call_that_waits_to_be_tried_again_holds_no_permit() -> None:
    async def main() -> None:
        def behave(asked: Asked) -> Reply | Exception:
            return TransportFailed("503") if (asked.text, asked.nth) == ("a", 1) else GOOD

        patient = RetryPolicy(first_wait=200.0, max_wait=200.0)
        config = EngineConfig(max_concurrent=1)
        async with Bench(FakeServer(behave), config=config, retry=patient) as bench:
            assert good(await bench.ask_all("a", "b", "c")) == 3
            assert bench.ended_at["b"] < 5.0
            assert bench.ended_at["c"] < 5.0
            assert bench.ended_at["a"] >= 100.0

    run(main())


def breaking(one_in: int, *, good: bool) -> FakeServer:
    """When it first comes, one call in so many breaks, or one in so many is good."""

    def behave(asked: Asked) -> Reply | Exception:
        is_one = int(asked.text[1:]) % one_in == 0
        return TransportFailed("reset") if asked.nth == 1 and is_one is not good else GOOD

    return FakeServer(behave, latency=0.1)


def retry_waits(server: FakeServer) -> list[float]:
    """Seconds from each call's first sending to its second."""
    first = {asked.text: asked.at for asked in server.asked if asked.nth == 1}
    return [asked.at - first[asked.text] for asked in server.asked if asked.nth == 2]


def test_where_nearly_everything_breaks_retries_are_late_but_never_lost() -> None:
    async def main() -> None:
        server = breaking(10, good=True)
        async with Bench(server) as bench:
            assert good(await bench.ask_all(*numbered(800))) == 800
            waits = retry_waits(server)
            assert len(waits) == 720
            assert 0.8 < max(waits) < 1.5

    run(main())


def test_where_half_breaks_retries_wait_for_no_budget() -> None:
    async def main() -> None:
        server = breaking(2, good=False)
        async with Bench(server) as bench:
            assert good(await bench.ask_all(*numbered(800))) == 800
            waits = retry_waits(server)
            assert len(waits) == 400
            assert max(waits) < 0.3

    run(main())


@pytest.mark.parametrize("bug", [ValueError("oops"), KeyError("x"), AssertionError()], ids=repr)
def test_a_bug_in_a_transport_costs_its_own_call_only(
    bug: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    def behave(asked: Asked) -> Reply | Exception:
        return bug if asked.text == "q2" else GOOD

    async def main() -> None:
        async with Bench(FakeServer(behave)) as bench:
            outcomes = await bench.ask_all(*numbered(6))
            assert good(outcomes) == 5
            assert isinstance(outcomes["q2"], PlauditError)
            assert "bug" in str(outcomes["q2"])

    run(main())
    assert "a bug in the transport" in caplog.text


def test_a_reply_says_what_it_cost_in_attempts_sends_and_time() -> None:
    async def main() -> None:
        server = fails_first(1, TransportFailed("reset"))
        async with Bench(server) as bench:
            await bench.ask_all("a")
            call = bench.calls["a"]
            assert (call.attempts, call.sends, call.rejections) == (2, 2, 0)
            assert call.latency == pytest.approx(1.0)
            finished = bench.seen(CallFinished)
            assert [event.outcome for event in finished] == ["failed", "ok"]
            assert finished[0].error == "reset"
            assert finished[1].usage.completion_tokens == 5

    run(main())
