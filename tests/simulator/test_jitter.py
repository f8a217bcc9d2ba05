"""Requests that leave together arrive in any order, and in the same one each time."""

from __future__ import annotations

import asyncio

from plaudit import ChatRequest
from plaudit.errors import RateLimited
from plaudit.simulator import Latency, Reject, Scenario, SimulatedTransport
from plaudit.testing import run


def refused(jitter: float) -> list[int]:
    """Of twenty requests sent together to five slots, those that find none."""
    scenario = Scenario(latency=Latency(jitter=jitter), capacity=Reject(slots=5), seed=3)

    async def main() -> list[int]:
        transport = SimulatedTransport(scenario)
        asks = (ChatRequest(({"role": "user", "content": f"question {n}"},)) for n in range(20))
        found = await asyncio.gather(*map(transport.send, asks), return_exceptions=True)
        return [n for n, outcome in enumerate(found) if isinstance(outcome, RateLimited)]

    return run(main())


def test_without_jitter_those_sent_first_are_let_in() -> None:
    assert refused(0.0) == list(range(5, 20))


def test_with_jitter_the_same_few_of_all_are_let_in_each_time() -> None:
    found = refused(0.01)
    assert len(found) == 15
    assert found != list(range(5, 20))
    assert found == refused(0.01)
