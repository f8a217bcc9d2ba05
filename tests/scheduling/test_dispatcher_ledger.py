"""A budget is spent once, though the engine dies: what may be spent is written down before it is."""

from __future__ import annotations

import asyncio

import pytest
from dispatching import FakeServer, good, numbered, question

from plaudit.config import Endpoint, EngineConfig, Price
from plaudit.errors import BudgetSpent
from plaudit.scheduling.call import Call, Outcome
from plaudit.scheduling.dispatcher import Dispatcher
from plaudit.scheduling.lane import Lane
from plaudit.testing import run
from plaudit.types import Reply, Usage

PRICE = Price(prompt=1.0, completion=10.0)


class Engine:
    """A dispatcher that ends as it is told to: closed, or gone from one moment to the next."""

    def __init__(self, server: FakeServer, budget: float, written: list[float]) -> None:
        before = written[-1]
        lane = Lane(Endpoint("http://priced/v1", model="m", price=PRICE), server)
        config = EngineConfig(budget=budget - before, hedge=False)
        self.dispatcher = Dispatcher([lane], config, ledger=lambda dollars: written.append(before + dollars))
        self.outcomes: dict[str, Outcome] = {}

    def ask(self, *texts: str) -> None:
        self.dispatcher.enqueue(
            Call(question(text), key=text.encode().ljust(32), on_done=self._on_done) for text in texts
        )

    def _on_done(self, call: Call, outcome: Outcome) -> None:
        self.outcomes[call.key.decode()] = outcome


def paid(server: FakeServer) -> float:
    return PRICE.cost(prompt_tokens=40, completion_tokens=300) * len(server.asked)


def test_engines_that_die_one_after_the_other_spend_the_budget_once() -> None:
    async def main() -> None:
        server = FakeServer(Reply("7", usage=Usage(40, 300)))
        written = [0.0]
        for seconds in (0.5, 1.5, 0.1, 30.0):
            engine = Engine(server, 0.12, written)
            engine.ask(*numbered(60, name=f"{seconds} "))
            await asyncio.sleep(seconds)
            assert paid(server) <= written[-1] + 1e-9 <= 0.12 + 2e-9
            for lane in engine.dispatcher.lanes:  # as kill -9 leaves it: nothing is said or settled
                lane.flights.clear()
            engine.dispatcher.queue.clear()
        assert 0.06 < paid(server) <= 0.12

    run(main())


def test_an_engine_that_is_closed_leaves_no_more_than_was_spent() -> None:
    async def main() -> None:
        server = FakeServer(Reply("7", usage=Usage(40, 300)))
        written = [0.0]
        engine = Engine(server, 1.0, written)
        engine.ask(*numbered(20))
        await asyncio.sleep(10.0)
        assert good(engine.outcomes) == 20
        await engine.dispatcher.close()
        assert written[-1] == pytest.approx(paid(server))

    run(main())


def test_few_entries_are_enough() -> None:
    async def main() -> None:
        server = FakeServer(Reply("7", usage=Usage(40, 300)))
        written = [0.0]
        engine = Engine(server, 5.0, written)
        engine.ask(*numbered(1500))
        await asyncio.sleep(1000.0)
        assert good(engine.outcomes) > 1400
        assert len(written) < 150
        await engine.dispatcher.close()

    run(main())


def test_nothing_is_sent_that_cannot_be_written_down() -> None:
    def refuse(_: float) -> None:
        raise BudgetSpent("the disk is full")

    async def main() -> None:
        server = FakeServer(Reply("7", usage=Usage(40, 300)))
        engine = Engine(server, 1.0, [0.0])
        lanes = engine.dispatcher.lanes
        engine.dispatcher = Dispatcher(lanes, EngineConfig(budget=1.0), ledger=refuse)
        engine.ask(*numbered(3))
        assert {str(outcome) for outcome in engine.outcomes.values()} == {"the disk is full"}
        assert not server.asked
        engine.dispatcher.queue.clear()

    run(main())
