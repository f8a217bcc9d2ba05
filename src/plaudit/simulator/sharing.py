"""Processor sharing: everyone in service advances at the same speed, which depends on how many there are.

Exact, and cheap: work is measured on a clock of its own that runs at the common speed, on which a request's
end is fixed when it starts, however often the speed changes afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from heapq import heappop, heappush
from typing import Generic, TypeVar

Job = TypeVar("Job", bound=Hashable)


class Sharing(Generic[Job]):
    """The requests in service. The caller moves time on, and never past `next_end()`."""

    def __init__(self, speed: Callable[[int], float]) -> None:
        self._speed = speed
        self._now = 0.0
        self._served = 0.0
        """Seconds of full-speed service that one request present from the start would have had."""
        self._ends: list[tuple[float, int, Job]] = []
        self._numbers: dict[Job, int] = {}
        self._count = 0

    def __len__(self) -> int:
        return len(self._numbers)

    def move(self, now: float) -> None:
        """Let time pass at the present speed."""
        if now > self._now:
            if self._numbers:
                self._served += (now - self._now) * self._speed(len(self._numbers))
            self._now = now

    def start(self, job: Job, *, work: float) -> None:
        """Take a request into service: so many seconds at full speed."""
        self._count += 1
        self._numbers[job] = self._count
        heappush(self._ends, (self._served + work, self._count, job))

    def drop(self, job: Job) -> bool:
        """Take a request out before its end; False when it is not in service."""
        return self._numbers.pop(job, None) is not None

    def next_end(self) -> float:
        """When the next request would end if nothing else happened; infinity for never."""
        while self._ends and self._numbers.get(self._ends[0][2]) != self._ends[0][1]:
            heappop(self._ends)
        if not self._ends:
            return float("inf")
        speed = self._speed(len(self._numbers))
        return self._now + max(0.0, self._ends[0][0] - self._served) / speed if speed else float("inf")

    def finish(self) -> Job:
        """Take out the request whose end has come (`next_end()` was the moment, and time is there)."""
        end, _, job = heappop(self._ends)
        self._served = max(self._served, end)
        del self._numbers[job]
        return job
