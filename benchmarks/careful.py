"""The loop that a careful engineer writes: so many at once, a few tries, Retry-After, backoff, a timeout."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator, Sequence

from workload import JUDGE

from plaudit import Sample
from plaudit.errors import JudgeError, TransientError
from plaudit.transports import Transport

AT_ONCE = 60
TRIES = 6
TIMEOUT = 120.0
LONGEST_WAIT = 60.0


async def judged(transport: Transport, batch: Sequence[Sample]) -> int:
    """Judge every sample; the answer is how many got a verdict."""
    waiting = iter(batch)
    jitter = random.Random(0)
    async with asyncio.TaskGroup() as group:
        workers = [group.create_task(_work(transport, waiting, jitter)) for _ in range(AT_ONCE)]
    return sum(worker.result() for worker in workers)


async def _work(transport: Transport, waiting: Iterator[Sample], jitter: random.Random) -> int:
    return sum([await _judge(transport, sample, jitter) for sample in waiting])


async def _judge(transport: Transport, sample: Sample, jitter: random.Random) -> bool:
    request = JUDGE.render(sample)
    for attempt in range(TRIES):
        wait = None
        try:
            async with asyncio.timeout(TIMEOUT):
                reply = await transport.send(request)  # type: ignore[arg-type]
            if JUDGE.parse(reply, sample).score is not None:
                return True
        except (TransientError, TimeoutError) as error:
            wait = getattr(error, "retry_after", None)
        except JudgeError:  # no verdict in it: worth another try, like anything that broke
            pass
        if wait is None:
            wait = 0.5 * 2**attempt * (0.5 + jitter.random())
        if attempt < TRIES - 1:
            await asyncio.sleep(min(wait, LONGEST_WAIT))
    return False
