"""Forks while an engine is at work: the child starts afresh, the parent notices nothing. URL"""

import asyncio
import gc
import os
import sys
import warnings
from collections.abc import Callable

from plaudit import Engine, Pending, Rubric, Sample, Verdict
from plaudit.errors import EngineClosed

judge = Rubric("Is it right?")


def batch(word: str) -> list[Sample]:
    return [Sample("What is 1 + 1?", f"{word} {number}") for number in range(16)]


async def awaited(pending: Pending) -> list[Verdict]:
    return await pending


def expect_closed(act: Callable[[], object]) -> None:
    try:
        act()
    except EngineClosed as error:
        assert "parent" in str(error), error
    else:
        raise AssertionError("it should have raised EngineClosed")


def scored(engine: Engine, word: str) -> None:
    assert all(verdict.is_valid for verdict in engine.score(batch(word), judge))


def in_child(engine: Engine, done: Pending, pending: Pending, *, is_idle: bool) -> None:
    assert len(done.result()) == len(list(done.as_completed())) == 16
    if not is_idle:
        assert not pending.done()
        waits = (pending.result, pending.as_completed, pending.cancel, lambda: asyncio.run(awaited(pending)))
        for wait in waits:
            expect_closed(wait)
        expect_closed(lambda: pending.result(timeout=0.01))
    scored(engine, f"child {is_idle}")
    if is_idle:
        engine.close()


warnings.simplefilter("ignore", DeprecationWarning)  # from 3.12 on, Python warns of any fork with threads
engine = Engine(sys.argv[1], model="m", hedge=False)
scored(engine, "warm")
done = engine.submit(batch("warm"), judge)
done.result()
for is_idle in (True, False):
    pending = engine.submit(batch(f"before {is_idle}"), judge)
    if is_idle:
        pending.result()
    else:
        assert not pending.done()
    child = os.fork()
    if child == 0:
        in_child(engine, done, pending, is_idle=is_idle)
        del engine, done, pending
        gc.collect()
        sys.exit(0)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert all(verdict.is_valid for verdict in pending.result())
    assert pending.summary.calls == 16, pending.summary
    scored(engine, f"afterwards {is_idle}")
print("fine")
