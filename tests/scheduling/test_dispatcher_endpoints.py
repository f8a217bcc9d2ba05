"""Endpoints that fail: what the breaker does, where calls go, who is given up and looked at again."""

from __future__ import annotations

import asyncio

import pytest
from dispatching import GOOD, Asked, Bench, FakeServer, good, numbered

from plaudit.config import EngineConfig
from plaudit.errors import (
    EndpointRefused,
    KeyRefused,
    ModelNotFound,
    PlauditError,
    RateLimited,
    RequestRefused,
    TransportFailed,
    Unreachable,
)
from plaudit.events import BreakerChanged, EndpointLost
from plaudit.policy.limit import LimitConfig
from plaudit.policy.retry import RetryPolicy
from plaudit.scheduling.dispatcher import REFUSALS
from plaudit.testing import run
from plaudit.types import Reply

CAREFUL = EngineConfig(max_concurrent=8)


@pytest.mark.parametrize(
    "error", [KeyRefused("401: set OPENAI_API_KEY"), ModelNotFound("404: no model 'm'")], ids=repr
)
def test_a_refusal_of_every_call_fails_the_whole_queue_at_once_with_one_message(error: PlauditError) -> None:
    async def main() -> None:
        server = FakeServer(error, latency=0.2)
        async with Bench(server, config=CAREFUL) as bench:
            outcomes = await bench.ask_all(*numbered(500))
            assert {str(outcome) for outcome in outcomes.values()} == {str(error)}
            assert len(server.asked) <= 8  # what was under way already, and nothing after it
            assert max(bench.ended_at.values()) < 1.0
            assert len(bench.seen(EndpointLost)) == 1

    run(main())


@pytest.mark.parametrize("error", [KeyRefused("403: flagged"), ModelNotFound("404: no backend")], ids=repr)
def test_an_endpoint_that_answers_others_is_not_given_up_for_the_calls_that_a_replica_refuses(
    error: PlauditError,
) -> None:
    async def main() -> None:
        server = FakeServer(lambda asked: error if asked.arrival % 3 == 0 else GOOD, latency=0.2)
        async with Bench(server) as bench:
            assert good(await bench.ask_all(*numbered(300))) == 300
            assert not bench.seen(EndpointLost)

    run(main())


def test_a_call_that_is_refused_each_time_fails_alone() -> None:
    async def main() -> None:
        server = FakeServer(lambda asked: KeyRefused("403: flagged") if asked.text == "q7" else GOOD)
        async with Bench(server) as bench:
            outcomes = await bench.ask_all(*numbered(100))
            assert {text for text, outcome in outcomes.items() if outcome is not GOOD} == {"q7"}

    run(main())


def test_a_key_that_is_revoked_meanwhile_ends_the_run_after_few_more_calls() -> None:
    async def main() -> None:
        server = FakeServer(lambda asked: GOOD if asked.arrival < 100 else KeyRefused("401"), latency=0.2)
        async with Bench(server, config=CAREFUL) as bench:
            assert good(await bench.ask_all(*numbered(500))) == 100
            assert len(server.asked) <= 100 + REFUSALS + 8
            assert len(bench.seen(EndpointLost)) == 1

    run(main())


def test_an_endpoint_is_lost_once_though_many_calls_were_under_way() -> None:
    async def main() -> None:
        server = FakeServer(lambda asked: (300.0 if 0 < asked.arrival < 40 else 0.1, TransportFailed("500")))
        patient = EngineConfig(timeout=10_000.0, hedge=False)
        async with Bench(server, config=patient, retry=RetryPolicy(attempts=99)) as bench:
            assert good(await bench.ask_all(*numbered(40))) == 0
            assert len(bench.seen(EndpointLost)) == 1

    run(main())


def test_other_lanes_go_on_and_take_the_calls_of_a_lost_one() -> None:
    async def main() -> None:
        wrong, right = FakeServer(KeyRefused("401")), FakeServer(GOOD)
        async with Bench(wrong, right, config=CAREFUL) as bench:
            assert good(await bench.ask_all(*numbered(100))) == 100
            assert len(wrong.asked) <= 8
            lost = bench.seen(EndpointLost)
            assert [event.endpoint for event in lost] == [bench.lanes[0].name]

    run(main())


def test_a_failure_that_comes_in_after_the_loss_is_not_tried_again() -> None:
    def behave(asked: Asked) -> tuple[float, Exception]:
        return (0.1, EndpointRefused("402")) if asked.text == "q0" else (0.5, TransportFailed("reset"))

    async def main() -> None:
        server = FakeServer(behave)
        async with Bench(server) as bench:
            outcomes = await bench.ask_all(*numbered(12))
            assert good(outcomes) == 0
            assert max(bench.ended_at.values()) < 1.0
            assert len(server.asked) == 12

    run(main())


def test_a_rejection_that_comes_in_after_the_loss_fails_too_instead_of_waiting_for_ever() -> None:
    def behave(asked: Asked) -> tuple[float, Exception]:
        return (0.1, KeyRefused("401")) if asked.text == "a" else (0.5, RateLimited("slow down"))

    async def main() -> None:
        async with Bench(FakeServer(behave)) as bench:
            outcomes = await bench.ask_all("a", "b")
            assert good(outcomes) == 0
            assert max(bench.ended_at.values()) < 10.0

    run(main())


def test_a_call_waiting_for_its_retry_fails_with_the_endpoint() -> None:
    def behave(asked: Asked) -> tuple[float, Exception]:
        return (1.0, KeyRefused("401")) if asked.text == "a" else (0.1, TransportFailed("x"))

    async def main() -> None:
        async with Bench(FakeServer(behave), retry=RetryPolicy(first_wait=50.0)) as bench:
            outcomes = await bench.ask_all("a", "b")
            assert isinstance(outcomes["b"], KeyRefused)
            assert bench.ended_at["b"] == pytest.approx(1.0)

    run(main())


def test_an_outage_opens_the_breaker_a_probe_finds_its_end_and_closes_it() -> None:
    async def main() -> None:
        server = FakeServer(lambda asked: TransportFailed("502") if 5.0 <= asked.at < 25.0 else GOOD)
        async with Bench(server, config=CAREFUL) as bench:
            assert good(await bench.ask_all(*numbered(200))) == 200
            states = [event.state for event in bench.seen(BreakerChanged)]
            assert states[0] == "open"
            assert states[-2:] == ["half-open", "closed"]
            during = [asked.at for asked in server.asked if 7.0 <= asked.at < 25.0]
            assert len(during) <= 30  # probes, not a stampede
            assert max(bench.ended_at.values()) < 25.0 + 3.0 + 25.0
            assert max(call.attempts for call in bench.calls.values()) <= 4

    run(main())


def test_while_one_endpoint_is_down_its_calls_go_to_the_other() -> None:
    async def main() -> None:
        down = FakeServer(lambda asked: TransportFailed("502") if asked.at >= 3.0 else GOOD)
        up = FakeServer(GOOD)
        async with Bench(down, up, config=CAREFUL) as bench:
            assert good(await bench.ask_all(*numbered(400))) == 400
            assert len([asked for asked in down.asked if asked.at > 5.0]) <= 60
            assert max(bench.ended_at.values()) < 90.0

    run(main())


def test_a_call_that_broke_on_one_endpoint_is_tried_on_another() -> None:
    async def main() -> None:
        bad = FakeServer(TransportFailed("502"))
        fine = FakeServer(GOOD)
        async with Bench(bad, fine) as bench:
            assert good(await bench.ask_all(*numbered(4))) == 4
            assert {asked.nth for asked in bad.asked} == {1}

    run(main())


def test_a_call_turned_away_by_one_endpoint_goes_to_another_with_room() -> None:
    async def main() -> None:
        full = FakeServer(RateLimited("slow down", retry_after=300.0), latency=0.1)
        free = FakeServer(GOOD)
        async with Bench(full, free) as bench:
            assert good(await bench.ask_all(*numbered(40))) == 40
            assert max(bench.ended_at.values()) < 20.0

    run(main())


def test_the_last_retry_goes_back_to_a_fast_endpoint_rather_than_nowhere() -> None:
    """Both idle, the call broke on the fast one, and the slow one is not worth it: it must still leave."""

    def behave(asked: Asked) -> tuple[float, Reply | Exception]:
        if asked.text.startswith("last") and asked.nth == 1:
            return 0.5, TransportFailed("reset")
        return 1.0, GOOD

    async def main() -> None:
        fast, slow = FakeServer(behave), FakeServer(GOOD, latency=60.0)
        async with Bench(fast, slow, config=EngineConfig(max_concurrent=64, hedge=False)) as bench:
            await bench.ask_all(*numbered(400))
            assert good(await bench.ask_all(*numbered(6, name="last"), *numbered(6, name="fine"))) == 412
            assert any(asked.nth == 2 for asked in fast.asked)

    run(main())


def test_nobody_there_is_said_after_a_minute_with_one_message() -> None:
    async def main() -> None:
        server = FakeServer(Unreachable("connection refused: is a server running?"), latency=0.001)
        async with Bench(server) as bench:
            outcomes = await bench.ask_all(*numbered(1000))
            assert good(outcomes) == 0
            assert 30.0 < max(bench.ended_at.values()) < 90.0
            assert len(server.asked) < 200
            assert {str(outcome) for outcome in outcomes.values()} == {
                "connection refused: is a server running?"
            }

    run(main())


@pytest.mark.parametrize("endpoints", [1, 2])
def test_an_endpoint_that_starts_late_is_waited_for_and_costs_no_attempt(endpoints: int) -> None:
    def behave(asked: Asked) -> tuple[float, Reply | Exception]:
        return (0.001, Unreachable("connection refused")) if asked.at < 20.0 else (1.0, GOOD)

    async def main() -> None:
        servers = [FakeServer(behave) for _ in range(endpoints)]
        async with Bench(*servers) as bench:
            assert good(await bench.ask_all(*numbered(500))) == 500
            assert {call.attempts for call in bench.calls.values()} == {1}
            assert max(bench.ended_at.values()) < 20.0 + 2.0 + 1.5 * 500 / 64
            assert sum(asked.at >= 2.0 and asked.at < 20.0 for s in servers for asked in s.asked) < 60

    run(main())


@pytest.mark.parametrize(
    "error", [TransportFailed("502"), RateLimited("503", retry_after=1.0, is_quota=False)], ids=repr
)
def test_after_an_outage_as_many_leave_at_once_as_before(error: PlauditError) -> None:
    async def main() -> None:
        server = FakeServer(lambda asked: (0.02, error) if 4.5 <= asked.at < 8.0 else (0.4, GOOD))
        known = LimitConfig(start=100, is_known=True, refuses=True)
        async with Bench(server, start=known, config=EngineConfig(max_concurrent=100)) as bench:
            assert good(await bench.ask_all(*numbered(3000))) == 3000
            soon = sum(8.0 <= asked.at < 9.5 for asked in server.asked)
            assert soon >= 150  # in a second and a half, where 375 could leave
            assert max(bench.ended_at.values()) < 1.5 * (3000 / 100 * 0.4 + 3.5)
            assert max(call.attempts for call in bench.calls.values()) <= 4
            assert bench.lanes[0].limit.limit >= 80

    run(main())


def test_when_all_are_lost_later_work_looks_again() -> None:
    async def main() -> None:
        server = FakeServer(lambda asked: KeyRefused("401") if asked.at < 10.0 else GOOD)
        async with Bench(server) as bench:
            assert good(await bench.ask_all(*numbered(20, name="early"))) == 0
            asked = len(server.asked)
            assert good(await bench.ask_all(*numbered(20, name="soon"))) == 0
            assert len(server.asked) <= asked + 1  # at most one probe, which speaks for all
            await asyncio.sleep(10.0)
            outcomes = await bench.ask_all(*numbered(20, name="late"))
            assert good(outcomes) == 20

    run(main())


def test_a_lost_endpoint_is_looked_at_again_later_though_others_are_at_hand() -> None:
    async def main() -> None:
        gone = FakeServer(lambda asked: KeyRefused("401") if asked.at < 30.0 else GOOD)
        fine = FakeServer(GOOD)
        async with Bench(gone, fine, config=CAREFUL) as bench:
            await bench.ask_all(*numbered(20, name="early"))
            await asyncio.sleep(3600.0)
            asked = len(gone.asked)
            assert good(await bench.ask_all(*numbered(200, name="late"))) == 220
            assert len(gone.asked) - asked > 50

    run(main())


def test_a_refused_request_shows_that_the_endpoint_is_alive() -> None:
    def behave(asked: Asked) -> Reply | Exception:
        if asked.at < 2.0:
            return TransportFailed("502")
        return RequestRefused("400") if asked.at < 9.0 else GOOD

    async def main() -> None:
        async with Bench(FakeServer(behave), config=CAREFUL) as bench:
            await bench.ask_all(*numbered(40))
            assert bench.seen(BreakerChanged)[-1].state == "closed"

    run(main())


def test_losing_one_of_two_is_no_reason_to_fail_anything() -> None:
    async def main() -> None:
        first = FakeServer(EndpointRefused("402: no credit"), latency=0.1)
        second = FakeServer(Unreachable("refused"), latency=0.1)
        async with Bench(first, second) as bench:
            outcomes = await bench.ask_all(*numbered(50))
            assert good(outcomes) == 0
            assert len(bench.seen(EndpointLost)) == 2
            assert max(bench.ended_at.values()) < 90.0

    run(main())
