"""Who runs the chains of several environments: started in any order, handed back as they finish.

A chain is a coroutine. On a thread of its own it goes on while the trainer computes; on a loop of the
caller's it goes on while the caller waits, which is what virtual time needs.
"""

from __future__ import annotations

import asyncio
import functools
import queue
from collections import deque
from collections.abc import Coroutine
from typing import Any, Protocol

from plaudit.blocking import LoopThread
from plaudit.errors import EngineClosed

Work = Coroutine[Any, Any, Any]
_CLOSE_WITHIN = 10.0


class Conductor(Protocol):
    """Starts chains under a number, and hands their results back."""

    def start(self, number: int, work: Work) -> None:
        """Begin a chain; returns at once."""
        ...

    def finished(self) -> tuple[int, Any]:
        """The next chain to finish: its number and its result. Waits; raises what the chain raised."""
        ...

    def close(self) -> None:
        """Call off what is under way. Safe to call twice."""
        ...


class ThreadConductor:
    """Runs chains on a thread of its own, which the first of them starts."""

    def __init__(self) -> None:
        self._thread: LoopThread | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._done: queue.SimpleQueue[tuple[int, asyncio.Task[Any]]] = queue.SimpleQueue()

    def start(self, number: int, work: Work) -> None:
        if self._thread is None or not self._thread.is_alive:
            self._thread = LoopThread("plaudit-chains")
        self._thread.post(functools.partial(self._begin, number, work))

    def finished(self) -> tuple[int, Any]:
        number, task = self._done.get()
        return number, task.result()

    def close(self) -> None:
        if self._thread is not None:
            self._thread.end(self._call_off, within=_CLOSE_WITHIN)
            self._thread = None

    def _begin(self, number: int, work: Work) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(functools.partial(self._end, number))

    def _end(self, number: int, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        self._done.put((number, task))

    async def _call_off(self) -> None:
        under_way = asyncio.all_tasks() - {asyncio.current_task()}  # also what chains have begun ahead
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)


class LoopConductor:
    """Runs chains on a loop that turns only while `finished` waits: for virtual time."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._tasks: set[asyncio.Task[Any]] = set()
        self._done: deque[tuple[int, asyncio.Task[Any]]] = deque()

    def start(self, number: int, work: Work) -> None:
        task = self.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(functools.partial(self._end, number))

    def finished(self) -> tuple[int, Any]:
        while not self._done:
            if not self._tasks:
                raise EngineClosed("no chain is under way, so none will finish; start one first")
            self.loop.run_until_complete(asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED))
        number, task = self._done.popleft()
        return number, task.result()

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks and not self.loop.is_closed():
            self.loop.run_until_complete(asyncio.gather(*self._tasks, return_exceptions=True))

    def _end(self, number: int, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        self._done.append((number, task))
