"""For tests, ours and yours: an event loop on virtual time, and a transport that plays a script.

The loop's clock jumps to the next timer: an hour of backoff costs a millisecond. A program that waits for
nothing at all is a deadlock here, and raises instead of hanging.
"""

from __future__ import annotations

import asyncio
import selectors
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from contextvars import Context
from typing import Any, TypeVar, TypeVarTuple

from plaudit.types import Reply, Request

__all__ = ["Deadlock", "ScriptedTransport", "VirtualLoop", "run"]

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class Deadlock(RuntimeError):
    """Every task waits, and no timer will ever wake one."""


class _JumpingSelector(selectors.DefaultSelector):
    """Polls its sockets without waiting; time that would have been slept is added to the clock."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> Any:
        ready = super().select(0)
        if ready:
            return ready
        if timeout is None:
            raise Deadlock("all tasks wait for something that no timer will bring")
        self.now += max(timeout, 0.0)
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop on virtual time, starting at 0.0. Use `run`, or pass it as a loop factory."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now

    def call_at(
        self, when: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return super().call_at(when, self._at, when, callback, args, context=context)

    def _at(self, when: float, callback: Callable[[*Ts], object], args: tuple[*Ts]) -> None:
        """Run a timer's callback. asyncio may do so a hair early; to who looks, its time has come.

        Else a callback that waits for the rest of the hair would wait for ever: no time passes meanwhile.
        """
        self._jumping.now = max(self._jumping.now, when)
        callback(*args)


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end under virtual time, then cancel what it left behind."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)


Step = Reply | Exception | float
"""A reply to give, an error to raise, or seconds to wait before the step after it."""


class ScriptedTransport:
    """Answers each call with the next step of its script; the last step repeats for ever."""

    def __init__(self, script: Iterable[Step], *, latency: float = 0.0) -> None:
        self._script = deque(script)
        self._latency = latency
        self.sent: list[Request] = []
        self.sent_at: list[float] = []
        self.closed = False

    async def send(self, request: Request) -> Reply:
        self.sent.append(request)
        self.sent_at.append(asyncio.get_running_loop().time())
        wait = self._latency
        step = self._next()
        while isinstance(step, (int, float)):
            wait += step
            step = self._next()
        if wait:
            await asyncio.sleep(wait)
        if isinstance(step, Exception):
            raise step
        return step

    async def close(self) -> None:
        self.closed = True

    def _next(self) -> Step:
        return self._script.popleft() if len(self._script) > 1 else self._script[0]
