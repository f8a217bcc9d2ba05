"""The loop that a careful engineer writes: so many at once, a few tries, Retry-After, backoff, a timeout."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator, Sequence

from workload import JUDGE

from plaudit import ChatRequest, Sample, Verdict
from plaudit.errors import JudgeError, TransientError
from plaudit.transports import Transport

AT_ONCE = 60
TRIES = 6
TIMEOUT = 120.0
LONGEST_WAIT = 60.0


async def judge_all(transport: Transport, batch: Sequence[Sample], verdicts: list[Verdict | None]) -> None:
    """Fill in the verdict of every sample that gets one."""
    waiting = iter(enumerate(batch))
    jitter = random.Random(0)
    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(_work(transport, waiting, verdicts, jitter))


async def _work(
    transport: Transport,
    waiting: Iterator[tuple[int, Sample]],
    verdicts: list[Verdict | None],
    jitter: random.Random,
) -> None:
    for index, sample in waiting:
        for attempt in range(TRIES):
            verdict, wait = await _try(transport, sample)
            if verdict is not None:
                verdicts[index] = verdict
                break
            if attempt < TRIES - 1:
                backoff = 0.5 * 2**attempt * (0.5 + jitter.random())
                await asyncio.sleep(min(backoff if wait is None else wait, LONGEST_WAIT))


async def _try(transport: Transport, sample: Sample) -> tuple[Verdict | None, float | None]:
    """A verdict, or none and the wait that the server asks for, if it does."""
    request = JUDGE.render(sample)
    assert isinstance(request, ChatRequest)
    try:
        async with asyncio.timeout(TIMEOUT):
            reply = await transport.send(request)
        return JUDGE.parse(reply, sample), None
    except (TransientError, TimeoutError) as error:
        return None, getattr(error, "retry_after", None)
    except JudgeError:  # no verdict in it: worth another try, like anything that broke
        return None, None
