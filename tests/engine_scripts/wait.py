"""Waits in four ways for batches that never come, until each is interrupted. URL"""

import asyncio
import sys
import threading
from collections.abc import Callable

from plaudit import Engine, Rubric, Sample

batch = [Sample("What is 1 + 1?", str(number)) for number in range(100)]
judge = Rubric("Is it right?")
ways: list[Callable[[Engine], object]] = [
    lambda engine: engine.submit(batch, judge).result(),
    lambda engine: next(engine.submit(batch, judge).as_completed()),
    lambda engine: engine.score(batch, judge),
    lambda engine: asyncio.run(engine.ascore(batch, judge)),
]
for wait in ways:
    try:
        with Engine(sys.argv[1], model="m") as engine:
            print("waiting", flush=True)
            wait(engine)
    except KeyboardInterrupt:
        print("closed", [thread.name for thread in threading.enumerate()], flush=True)
