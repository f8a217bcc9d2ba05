"""A simulated server under an event loop's clock, virtual or real."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable

from plaudit.simulator.ask import Ask, Outcome
from plaudit.simulator.scenario import Scenario
from plaudit.simulator.server import Job, SimulatedServer


class LiveServer:
    """Wakes the state machine when something is due. `speed` is simulated seconds per second of the loop."""

    def __init__(self, server: SimulatedServer, *, speed: float = 1.0) -> None:
        self.server = server
        self.speed = speed
        self._timer: asyncio.Handle | None = None
        self._armed_for = math.inf
        self._awaited: set[asyncio.Future[Outcome]] = set()

    def submit(self, ask: Ask, deliver: Callable[[Outcome], None], *, api_key: str | None = None) -> Job:
        """Hand a request in; `deliver` is called on the loop with its outcome."""
        job = self.server.submit(ask, now=self._now(), deliver=deliver, api_key=api_key)
        self._arm()
        return job

    def withdraw(self, job: Job) -> None:
        """The client has left; nothing happens when its reply was there first."""
        if job.has_left:
            return
        self.server.withdraw(job, now=self._now())
        self._arm()

    def become(self, scenario: Scenario) -> None:
        """Follow another scenario from now on."""
        self.server.become(scenario, now=self._now())
        self._arm()

    async def answer(self, ask: Ask, *, api_key: str | None = None) -> Outcome:
        """Send a request and wait for its outcome; cancelling leaves the server."""
        if late := self.server.lateness(ask):
            await asyncio.sleep(late / self.speed)
        done: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()

        def deliver(outcome: Outcome) -> None:
            if not done.done():  # cancelled in this very turn of the loop
                done.set_result(outcome)

        job = self.submit(ask, deliver, api_key=api_key)
        self._awaited.add(done)
        try:
            return await done
        finally:
            self._awaited.discard(done)
            self.withdraw(job)

    def end(self, error: Exception) -> None:
        """Let every `answer` that is waited for raise this error, and leave the server."""
        for done in self._awaited:
            if not done.done():
                done.set_exception(error)

    def _now(self) -> float:
        return asyncio.get_running_loop().time() * self.speed

    def _arm(self) -> None:
        """Keep one timer, at or before the next moment something is due: an early one only looks again."""
        due = self.server.next_due()
        if due is None or self._armed_for <= due:
            return
        if self._timer is not None:
            self._timer.cancel()
        loop = asyncio.get_running_loop()
        self._armed_for = due
        if due <= self._now():
            self._timer = loop.call_soon(self._wake, due)
        else:
            self._timer = loop.call_at(due / self.speed, self._wake, due)

    def _wake(self, due: float) -> None:
        # A loop may fire a timer a hair early; the server must then still see the moment as reached.
        self._timer, self._armed_for = None, math.inf
        self.server.deliver_due(max(due, self._now()))
        self._arm()
