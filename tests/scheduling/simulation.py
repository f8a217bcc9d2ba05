"""Whole batches on simulated servers, under virtual time: how long they took, against the best possible."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from plaudit.config import Endpoint, EngineConfig
from plaudit.events import CallFinished, CallStarted, Event
from plaudit.policy.limit import LimitConfig
from plaudit.scheduling.call import Call, Outcome
from plaudit.scheduling.dispatcher import Dispatcher
from plaudit.scheduling.lane import Lane
from plaudit.simulator import Scenario, SimulatedTransport, ideal_makespan_of, works_of
from plaudit.testing import run
from plaudit.types import ChatRequest, Reply

SAMPLES = 1024


@dataclass(slots=True)
class Result:
    """One batch, in numbers."""

    seconds: float
    ideal: float
    limits: list[int]
    outcomes: list[list[Outcome]]
    events: list[Event] = field(default_factory=list)
    peak: list[int] = field(default_factory=list)
    """Most requests at once that each server saw."""

    @property
    def over_ideal(self) -> float:
        return self.seconds / self.ideal

    @property
    def calls(self) -> int:
        return sum(isinstance(event, CallFinished) for event in self.events)

    @property
    def hedges(self) -> int:
        return sum(isinstance(event, CallStarted) and event.is_hedge for event in self.events)

    @property
    def reject_share(self) -> float:
        rejected = [e for e in self.events if isinstance(e, CallFinished) and e.outcome == "rate_limited"]
        return len(rejected) / max(self.calls, 1)

    @property
    def failures(self) -> int:
        return sum(not isinstance(outcome, Reply) for outcomes in self.outcomes for outcome in outcomes)


def seeded(scenario: Scenario, seed: int) -> Scenario:
    return scenario.replace(seed=seed)


def score_batches(
    scenarios: Sequence[Scenario],
    *,
    batches: int = 1,
    samples: int = SAMPLES,
    config: EngineConfig | None = None,
    start: LimitConfig | None = None,
) -> list[Result]:
    """Send batches one after another to servers that stay the same, and measure each."""
    return run(_score_batches(scenarios, batches, samples, config, start))


async def _score_batches(
    scenarios: Sequence[Scenario],
    batches: int,
    samples: int,
    config: EngineConfig | None,
    start: LimitConfig | None,
) -> list[Result]:
    loop = asyncio.get_running_loop()
    events: list[Event] = []
    transports = [SimulatedTransport(scenario) for scenario in scenarios]
    ceiling = config.max_concurrent if config is not None else None
    lanes = [
        Lane(Endpoint(f"http://server{n}/v1", model="m"), transport, start=start, ceiling=ceiling)
        for n, transport in enumerate(transports)
    ]
    dispatcher = Dispatcher(lanes, config, emit=events.append)
    results = []
    for batch in range(batches):
        began = loop.time()
        texts = [f"batch {batch} question {n}" for n in range(samples)]
        requests = [ChatRequest(({"role": "user", "content": text},)) for text in texts]
        outcomes = await _answers(dispatcher, requests, texts)
        unchanging = [scenario if batch == 0 else scenario.replace(schedule=()) for scenario in scenarios]
        results.append(
            Result(
                seconds=loop.time() - began,
                ideal=ideal_makespan_of([(server, works_of(server, requests)) for server in unchanging]),
                limits=[lane.limit.limit for lane in lanes],
                outcomes=outcomes,
                events=list(events),
                peak=[transport.server.stats.peak_in_flight for transport in transports],
            )
        )
        events.clear()
    await dispatcher.close()
    return results


async def _answers(
    dispatcher: Dispatcher, requests: Sequence[ChatRequest], texts: Sequence[str]
) -> list[list[Outcome]]:
    outcomes: list[list[Outcome]] = [[] for _ in requests]
    done = asyncio.Event()
    missing = len(requests)

    def collect(call: Call, outcome: Outcome) -> None:
        nonlocal missing
        outcomes[calls[call]].append(outcome)
        missing -= 1
        if not missing:
            done.set()

    calls = {
        Call(request, key=hashlib.sha256(text.encode()).digest(), on_done=collect): index
        for index, (request, text) in enumerate(zip(requests, texts, strict=True))
    }
    dispatcher.enqueue(calls)
    await done.wait()
    return outcomes
