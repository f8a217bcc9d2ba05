"""A request that has to be sent again costs no attempt, and passes every limit like any other."""

from __future__ import annotations

import asyncio

import pytest
from dispatching import GOOD, Answer, Asked, Bench, FakeServer, good, numbered
from freezing import most_in_a_window

from plaudit.config import Endpoint, EngineConfig, Price
from plaudit.errors import OutOfFiles, SendAgain
from plaudit.events import BreakerChanged, CallFinished
from plaudit.policy.retry import RetryPolicy
from plaudit.scheduling.call import MAX_RESENDS
from plaudit.testing import run
from plaudit.types import Reply

UNKNOWN = SendAgain("400: unknown parameter", is_answered=True)
STALE = SendAgain("closed", is_answered=False)


@pytest.mark.parametrize("error", [UNKNOWN, STALE])
def test_it_leaves_again_at_once_and_costs_no_attempt(error: SendAgain) -> None:
    async def main() -> None:
        server = FakeServer(lambda asked: error if asked.nth == 1 else GOOD, latency=0.1)
        config = EngineConfig(hedge=False)
        async with Bench(server, config=config, retry=RetryPolicy(attempts=1)) as bench:
            assert good(await bench.ask_all(*numbered(64))) == 64
            assert len(server.asked) == 128
            assert {call.attempts for call in bench.calls.values()} == {1}
            assert asyncio.get_running_loop().time() < 1.0
            assert not bench.seen(BreakerChanged)
            ended = [event.outcome for event in bench.seen(CallFinished)]
            assert sorted(ended) == ["ok"] * 64 + ["sent_again"] * 64
            assert [lane.failed for lane in bench.lanes] == [0]

    run(main())


@pytest.mark.parametrize("error", [UNKNOWN, STALE])
def test_requests_a_minute_count_the_second_send_as_well(error: SendAgain) -> None:
    async def main() -> None:
        server = FakeServer(lambda asked: error if asked.nth == 1 else GOOD, latency=0.1)
        async with Bench(server, config=EngineConfig(rpm=30, hedge=False)) as bench:
            assert good(await bench.ask_all(*numbered(60))) == 60
        assert len(server.asked) == 120
        assert most_in_a_window(server.sent_at) <= 30

    run(main())


def test_what_met_a_stale_connection_may_have_been_billed() -> None:
    async def main(error: SendAgain) -> int:
        server = FakeServer(lambda asked: error if asked.nth == 1 else GOOD, latency=0.1)
        endpoint = Endpoint("http://priced/v1", model="m", price=Price(1.0, 10.0))
        config = EngineConfig(budget=0.0075, hedge=False)
        async with Bench(server, config=config, endpoints=[endpoint]) as bench:
            return good(await bench.ask_all("a"))

    assert run(main(UNKNOWN)) == 1
    assert run(main(STALE)) == 0


def test_a_server_that_asks_for_it_for_ever_fails_in_the_ordinary_way() -> None:
    async def main() -> None:
        server = FakeServer(STALE, latency=0.01)
        config = EngineConfig(hedge=False)
        async with Bench(server, config=config, retry=RetryPolicy(attempts=3)) as bench:
            outcome = (await bench.ask_all("a"))["a"]
            assert isinstance(outcome, SendAgain)
            assert bench.calls["a"].attempts == 3
            assert len(server.asked) == 3 * (MAX_RESENDS + 1)

    run(main())


class FewFiles(FakeServer):
    """Reached from a process that can open only so many connections."""

    def __init__(self, files: int) -> None:
        super().__init__(self._answer, latency=1.0)
        self._files = files

    def _answer(self, asked: Asked) -> Answer | tuple[float, Answer]:
        return GOOD if self.gauge.now < self._files else (0.0, OutOfFiles("too many open files"))


def test_a_process_out_of_files_has_fewer_calls_at_once_and_loses_none() -> None:
    async def main() -> None:
        server = FewFiles(8)
        config = EngineConfig(hedge=False)
        async with Bench(server, config=config, retry=RetryPolicy(attempts=1)) as bench:
            outcomes = await bench.ask_all(*numbered(200))
            assert good(outcomes) == 200
            assert {call.attempts for call in bench.calls.values()} == {1}
            assert not bench.seen(BreakerChanged)
        assert asyncio.get_running_loop().time() < 2 * 200 / 8

    run(main())


def test_a_process_that_gets_no_file_at_all_does_not_wait_for_ever() -> None:
    async def main() -> None:
        async with Bench(FewFiles(0)) as bench:
            outcomes = await bench.ask_all(*numbered(3))
            assert all(isinstance(outcome, OutOfFiles) for outcome in outcomes.values())
            assert not any(isinstance(outcome, Reply) for outcome in outcomes.values())

    run(main())
