"""Any mixture of trouble, settings and timing: nobody waits for ever, and no ceiling is crossed."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace

import pytest
from dispatching import GOOD, NEVER, Answer, Asked, Behaviour, Bench, FakeServer, Gauge, numbered
from scoring import Desk, SlowCache, expected, final, marks_of, samples, verdicts_of
from test_dispatcher_ceilings import PRICE, billed, busiest_minute

from plaudit.config import Endpoint, EngineConfig
from plaudit.errors import KeyRefused, RateLimited, RequestRefused, TransportFailed, Unreachable
from plaudit.events import BatchFinished
from plaudit.policy.retry import RetryPolicy
from plaudit.scheduling.batch import Batch
from plaudit.testing import run
from plaudit.types import Reply, Status, Usage


def any_server(chance: random.Random) -> Behaviour:
    """A server with a temper of its own, drawn once; what it does depends on the question and the time."""
    temper = {
        "reset": chance.choice([0.0, 0.05, 0.4]),
        "429": chance.choice([0.0, 0.1, 0.5]),
        "hang": chance.choice([0.0, 0.03]),
        "400": chance.choice([0.0, 0.05]),
        "slow": chance.choice([0.0, 0.05]),
        "401": chance.choice([0.0, 0.0, 0.01]),
    }
    down = chance.uniform(0.0, 60.0) if chance.random() < 0.4 else NEVER
    downtime = chance.uniform(1.0, 120.0)
    asks_for = chance.choice([None, 0.5, 20.0])
    seed = chance.random()

    def behave(asked: Asked) -> Reply | Exception | tuple[float, Reply | Exception]:
        if down <= asked.at < down + downtime:
            return 0.01, Unreachable("refused")
        draw = random.Random(f"{seed} {asked.text} {asked.nth}")
        what = draw.choices([*temper, "ok"], [*temper.values(), 1.0])[0]
        match what:
            case "reset":
                return draw.uniform(0.0, 2.0), TransportFailed("reset")
            case "429":
                return 0.1, RateLimited("slow down", retry_after=asks_for)
            case "hang":
                return NEVER, GOOD
            case "400":
                return 0.2, RequestRefused("400")
            case "slow":
                return 40.0, GOOD
            case "401":
                return 0.1, KeyRefused("401")
        return draw.uniform(0.5, 3.0), Reply("7", usage=Usage(20, draw.randrange(400)))

    return behave


def any_config(chance: random.Random) -> EngineConfig:
    return EngineConfig(
        timeout=chance.choice([10.0, 60.0]),
        max_concurrent=chance.choice([None, 1, 3, 20]),
        rpm=chance.choice([None, None, 40]),
        tpm=chance.choice([None, None, 20_000]),
        budget=chance.choice([None, None, 0.1]),
        hedge=chance.choice([True, True, False]),
    )


def any_retry(chance: random.Random) -> RetryPolicy:
    return RetryPolicy(attempts=chance.choice([1, 3, 5]))


@pytest.mark.parametrize("seed", range(30))
def test_every_call_ends_and_every_ceiling_holds(seed: int) -> None:
    chance = random.Random(seed)
    config, retry = any_config(chance), any_retry(chance)
    gauge = Gauge()
    servers = [FakeServer(any_server(chance), gauge=gauge) for _ in range(chance.choice([1, 1, 2, 3]))]
    endpoints = [Endpoint(f"http://server{n}/v1", model="m", price=PRICE) for n in range(len(servers))]

    async def main() -> None:
        async with Bench(*servers, config=config, retry=retry, endpoints=endpoints) as bench:
            for wave in range(3):
                bench.ask(*numbered(chance.choice([1, 10, 60]), name=f"wave{wave}-"))
                await asyncio.sleep(chance.choice([0.0, 1.0, 30.0, 200.0]))
            await bench.answers()  # or this raises Deadlock

    run(main())
    sent = sorted((at, 1) for server in servers for at in server.sent_at)
    if config.max_concurrent is not None:
        assert gauge.peak <= config.max_concurrent
    if config.rpm is not None:
        assert busiest_minute(sent) <= config.rpm
    if config.budget is not None:
        assert billed(servers) <= config.budget


@pytest.mark.parametrize("seed", range(20))
def test_every_sample_of_every_batch_gets_one_verdict_and_the_right_one(seed: int) -> None:
    """Duplicates, deadlines, cancels, a slow cache, late joiners, a close at any moment: all at once."""
    chance = random.Random(seed)
    trouble = any_server(chance)

    def behave(asked: Asked) -> Answer | tuple[float, Answer]:
        answer = trouble(asked)
        latency, reply = answer if isinstance(answer, tuple) else (1.0, answer)
        if not isinstance(reply, Reply):
            return latency, reply
        babbles = asked.nth == 1 and len(asked.text) % 17 == 0
        return latency, Reply("well...") if babbles else marks_of(asked.text)

    cache = SlowCache(get=chance.choice([0.0, 0.3]), put=chance.choice([0.0, 2.0]))
    config, retry = replace(any_config(chance), budget=None), any_retry(chance)
    batches: list[Batch] = []

    async def main() -> None:
        async with Desk(
            FakeServer(behave), cache=chance.choice([cache, None]), config=config, retry=retry
        ) as desk:
            for _ in range(chance.choice([1, 4, 8])):
                pool = samples(chance.choice([5, 50, 400]))
                picked = [chance.choice(pool) for _ in range(chance.choice([0, 1, 30, 300]))]
                batches.append(desk.submit(picked, deadline=chance.choice([None, None, 3.0, 100.0])))
                await asyncio.sleep(chance.choice([0.0, 0.5, 10.0]))
                if chance.random() < 0.3:
                    desk.scorer.cancel(chance.choice(batches))
            if chance.random() < 0.5:
                for batch in batches:
                    await verdicts_of(batch)  # or this raises Deadlock
        finished = [event.batch for event in desk.seen(BatchFinished)]
        assert sorted(finished) == sorted(batch.id for batch in batches)

    run(main())
    for batch in batches:
        for verdict, score in zip(final(batch), expected(batch.samples), strict=True):
            assert verdict.score == (score if verdict.status is Status.OK else None)
        summary = batch.summary()
        assert sum(summary.by_status.values()) == summary.samples == len(batch.samples)
