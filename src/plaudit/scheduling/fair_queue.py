"""A queue in which jobs take turns: one item each, and within a job first come, first served.

So a job with thousands of calls in the queue holds up another one's by no more than a call for each job.
Where slots are scarce, a job of slow calls would still fill nearly all of them at one call a turn: it is
passed over while it has far more than its share.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Generic, Protocol, TypeVar

FAR_MORE = 1.5
"""Times its share of the slots that a job may have before it is passed over."""
LOOKS = 16
"""Jobs that are looked at to find one that has not: there may be thousands of jobs."""


class OfJob(Protocol):
    """Something that is queued for a job, and equal to nothing but itself."""

    @property
    def job(self) -> str: ...


T = TypeVar("T", bound=OfJob)


class FairQueue(Generic[T]):
    """Items of several jobs, which take turns."""

    def __init__(self) -> None:
        self._jobs: OrderedDict[str, OrderedDict[T, None]] = OrderedDict()
        """What waits, by job; the first job is next. Nothing is kept of a job without an item."""
        self.size = 0
        """What `len` says, without a call."""

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[T]:
        for items in self._jobs.values():
            yield from items

    def __contains__(self, item: T) -> bool:
        return item in self._jobs.get(item.job, ())

    def append(self, item: T) -> None:
        """Let an item wait; a job that has none yet comes after all the others."""
        items = self._jobs.get(item.job)
        if items is None:
            items = self._jobs[item.job] = OrderedDict()
        items[item] = None
        self.size += 1

    def extend(self, items: Iterable[T]) -> None:
        """Let items wait, in this order."""
        for item in items:
            self.append(item)

    def appendleft(self, item: T) -> None:
        """Let an item wait before all others of its job; a job that has none is next."""
        is_new = item.job not in self._jobs
        self.append(item)
        self._jobs[item.job].move_to_end(item, last=False)
        if is_new:
            self._jobs.move_to_end(item.job, last=False)

    def peek(self, under_way: Mapping[str, int] | None = None) -> T:
        """The item that is next.

        Args:
            under_way: Slots that each job has, where slots are scarce.
        """
        if under_way and len(self._jobs) > 1:
            most = 1 + FAR_MORE * sum(under_way.values()) / max(len(under_way), len(self._jobs))
            for job, items in islice(self._jobs.items(), LOOKS):
                if under_way.get(job, 0) <= most:
                    return next(iter(items))
        return next(iter(next(iter(self._jobs.values()))))

    def take(self, item: T) -> None:
        """Take out an item as its job's turn: the job comes last then."""
        self.remove(item)
        if len(self._jobs) > 1 and item.job in self._jobs:
            self._jobs.move_to_end(item.job)

    def remove(self, item: T) -> None:
        """Take out an item, wherever it is, without a turn."""
        items = self._jobs[item.job]
        del items[item]
        self.size -= 1
        if not items:
            del self._jobs[item.job]

    def clear(self) -> None:
        self._jobs.clear()
        self.size = 0
