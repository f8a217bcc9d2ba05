"""One unique request of an engine, with everybody who waits for its verdict and what it has cost so far."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from plaudit.scheduling.batch import Batch
from plaudit.scheduling.call import Call
from plaudit.types import Reply, Source, Usage, Verdict

_NOTHING_USED = Usage()


class Asked:
    """A question that is asked once, however many samples it is asked for."""

    __slots__ = ("attempts", "readings", "usage", "waiters")

    def __init__(self, batch: Batch, index: int) -> None:
        self.waiters = [(batch, index)]
        self.attempts = 0
        self.readings = 0
        """Replies that came, readable or not."""
        self.usage = _NOTHING_USED
        """Of all replies together: an unreadable one is paid for like any other."""

    def is_wanted(self, call: Call) -> bool:  # noqa: ARG002
        """Whether a batch still waits for it."""
        for batch, _ in self.waiters:  # noqa: SIM110 - asked for every call: any() takes twice as long
            if not batch.is_closed:
                return True
        return False

    def count(self, call: Call, reply: Reply | None) -> None:
        """Enter a call that is over into the books of whoever asked first."""
        batch, _ = self.waiters[0]
        batch.calls += call.sends
        batch.retries += max(call.attempts - 1, 0)
        batch.hedges += call.is_hedged
        batch.rate_limited += call.rejections
        self.attempts += call.attempts
        if reply is not None:
            self.readings += 1
            batch.rereads += self.readings > 1
            self.usage = reply.usage if self.readings == 1 else _sum(self.usage, reply.usage)

    def shares(self, verdict: Verdict) -> Iterator[tuple[Batch, tuple[int, Verdict]]]:
        """The verdict for whoever asked first, and its copy for everybody who joined in."""
        (batch, index), *others = self.waiters
        yield batch, (index, verdict)
        if others:
            copy = shared(verdict)
            for other, i in others:
                yield other, (i, copy)


def shared(verdict: Verdict) -> Verdict:
    """A verdict for a twin, which costs nothing more."""
    return replace(verdict, source=Source.SHARED, usage=replace(verdict.usage, cost=0.0))


def _sum(one: Usage, other: Usage) -> Usage:
    costs = [usage.cost for usage in (one, other) if usage.cost is not None]
    return Usage(
        one.prompt_tokens + other.prompt_tokens,
        one.completion_tokens + other.completion_tokens,
        sum(costs) if costs else None,
    )
