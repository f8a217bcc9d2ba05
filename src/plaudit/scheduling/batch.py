"""A batch on its way: samples in, one verdict for each, handed over as they become final.

Two threads meet here. The engine's loop delivers; any other thread waits, polls or streams. Whoever waits for
the whole batch is woken once, at its end; whoever streams is woken once for each group of verdicts.
"""

from __future__ import annotations

import itertools
import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from plaudit.events import CauseCounter, Summary
from plaudit.journal.base import Exchange
from plaudit.judges.base import Judge
from plaudit.judges.check import could_give
from plaudit.policy.fingerprint import Fingerprinter
from plaudit.scheduling.alarm import LOOK_UP
from plaudit.scheduling.call import Call
from plaudit.types import Reply, Request, Sample, Source, Status, Usage, Verdict

Items = list[tuple[int, Verdict]]

_ids = itertools.count(1)


class Batch:
    """Samples with their judge, and the verdicts that have come so far."""

    def __init__(
        self,
        samples: Sequence[Sample],
        judge: Judge,
        *,
        model: str,
        deadline: float | None = None,
        job: str = "",
    ) -> None:
        self.id = next(_ids)
        self.samples = samples
        self.judge = judge
        self.deadline = deadline
        """Seconds from its start."""
        self.job = job
        """Who it is for: calls of different jobs take turns."""
        self.is_told: bool = getattr(judge, "is_told", True)
        """Whether observers hear of its start and its end; not of a single request that is passed on."""
        self.fingerprint = Fingerprinter(model=model, version=judge.version)
        self.could_give = could_give(judge)
        self.verdicts: list[Verdict | None] = [None] * len(samples)
        self.remaining = len(samples)
        self.seen: dict[bytes, int] = {}
        """The first sample with each fingerprint: a later twin takes its verdict, cache or no cache."""
        self.calls = self.retries = self.hedges = self.rate_limited = self.rereads = self.judge_errors = (
            self.misfits
        ) = 0
        self.unread: dict[int, SharedRequest] = {}
        """Samples whose replies held no verdict, and which were asked about again."""
        self.is_closed = not samples
        """Whether nobody waits for more: done, past its deadline, or cancelled."""
        self.settled: Items = []
        """Verdicts that are final from the start."""
        self.inner: tuple[Batch, ...] = ()
        """Of a panel's batch: the batches of plain judges whose verdicts decide it."""
        self.forward: Callable[[Items], tuple[Batch, Items]] | None = None
        """Of an inner batch: from its news to the panel's batch, and the verdicts now ready there."""
        self.panel = 0
        """Of an inner batch: the number of the panel's batch."""
        self.serves: Sequence[tuple[int, ...]] = ()
        """Of an inner batch: for each question, the samples of the panel's batch that need it."""
        self._started = time.monotonic()
        self._ended: float | None = self._started if not samples else None
        self._order: list[int] = []
        self._changed = threading.Condition()
        self._done = threading.Event()
        if not samples:
            self._done.set()
        self._callbacks: list[Callable[[], None]] = []

    # -- the engine's side --------------------------------------------------------------------------------

    def deliver(self, items: Iterable[tuple[int, Verdict]]) -> list[Verdict]:
        """Make verdicts final; whatever already has one keeps it. The answer is what was new."""
        news: list[Verdict] = []
        with self._changed:
            for index, verdict in items:
                if self.verdicts[index] is None:
                    self.verdicts[index] = verdict
                    self._order.append(index)
                    news.append(verdict)
            self.remaining -= len(news)
            if not self.remaining:
                self.is_closed = True
                if self._ended is None:
                    self._ended = time.monotonic()
                self._done.set()
            self._changed.notify_all()
            callbacks = self._callbacks if self.is_closed else []
            if callbacks:
                self._callbacks = []
        for callback in callbacks:
            callback()
        return news

    @property
    def age_s(self) -> float:
        return time.monotonic() - self._started

    def missing(self) -> list[int]:
        return [index for index, verdict in enumerate(self.verdicts) if verdict is None]

    def with_unread(self, index: int, verdict: Verdict) -> Verdict:
        """The verdict of a sample whose time is over, with what came back for it before."""
        asked = self.unread.get(index)
        if asked is None:
            return verdict
        error = f"{verdict.error}; the reply before that held no verdict: {asked.trouble}"
        return replace(verdict, error=error, attempts=asked.attempts, usage=asked.usage)

    # -- the callers' side --------------------------------------------------------------------------------

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until every sample has its verdict; False when time runs out first."""
        if not self.remaining:
            return True  # without the lock: in a forked child it may be held by nobody, for ever
        until = math.inf if timeout is None else time.monotonic() + timeout
        while not self._done.wait(min(LOOK_UP, until - time.monotonic())):
            if time.monotonic() >= until:
                return False
        return True

    def fresh(self) -> Iterator[int]:
        """Samples in the order in which their verdicts became final, waiting for each; all, every time."""
        taken = 0
        while True:
            if self.remaining:
                with self._changed:
                    while len(self._order) <= taken and self.remaining:
                        self._changed.wait(LOOK_UP)
            news = self._order[taken:]
            if not news:
                return
            taken += len(news)
            yield from news

    def when_done(self, callback: Callable[[], None]) -> None:
        """Call back, on the engine's thread, once every sample has its verdict; at once if that is so."""
        if self.remaining:
            with self._changed:
                if self.remaining:
                    self._callbacks.append(callback)
                    return
        callback()

    def summary(self) -> Summary:
        """Statistics of the batch so far."""
        verdicts = [verdict for verdict in self.verdicts if verdict is not None]
        scores = [verdict.score for verdict in verdicts if verdict.score is not None]
        asked = self.inner or (self,)
        calls = [v for batch in asked for v in batch.verdicts if v is not None and v.source is Source.CALL]
        called = sorted([verdict.latency_s for verdict in calls if verdict.status is Status.OK])
        paid = [verdict.usage for verdict in calls]
        costs = [usage.cost for usage in paid if usage.cost is not None]
        mean = _mean(scores) if scores else None
        causes = CauseCounter()
        for verdict in verdicts:
            if verdict.failure is not None:
                causes.add(verdict)
        return Summary(
            samples=len(self.samples),
            seconds=(self._ended or time.monotonic()) - self._started,
            by_status={one.value: n for one, n in Counter([v.status for v in verdicts]).items()},
            by_source={one.value: n for one, n in Counter([v.source for v in verdicts]).items()},
            causes=causes.commonest(),
            calls=sum(batch.calls for batch in asked),
            retries=sum(batch.retries for batch in asked),
            hedges=sum(batch.hedges for batch in asked),
            rate_limited=sum(batch.rate_limited for batch in asked),
            rereads=sum(batch.rereads for batch in asked),
            latency_p50_s=called[len(called) // 2] if called else None,
            latency_p95_s=called[min(len(called) * 95 // 100, len(called) - 1)] if called else None,
            prompt_tokens=sum([usage.prompt_tokens for usage in paid]),
            completion_tokens=sum([usage.completion_tokens for usage in paid]),
            cached_tokens=sum([usage.cached_tokens for usage in paid]),
            reasoning_tokens=sum([usage.reasoning_tokens for usage in paid]),
            cost=sum(costs) if costs else None,
            score_mean=mean,
            score_std=None if mean is None else math.sqrt(_mean([(score - mean) ** 2 for score in scores])),
        )


def _mean(values: list[float]) -> float:
    return math.fsum(values) / len(values)  # the exact fractions of `statistics` cost more than a call does


_NOTHING_USED = Usage()
_NOBODY: list[tuple[Batch, int]] = []
"""Stays empty: most requests have one sample, and a list for each would be one more thing to collect."""


class SharedRequest:
    """One unique request, with every sample that waits for its verdict, and what it has cost so far."""

    __slots__ = (
        "asked_at",
        "attempts",
        "batch",
        "exchanges",
        "index",
        "others",
        "queued_s",
        "readings",
        "request",
        "trouble",
        "usage",
    )

    def __init__(
        self, batch: Batch, index: int, request: Request | None = None, asked_at: float = 0.0
    ) -> None:
        self.batch = batch
        self.index = index
        """The sample that asked first."""
        self.others: list[tuple[Batch, int]] = _NOBODY
        self.attempts = 0
        self.readings = 0
        """Replies that came, readable or not."""
        self.usage = _NOTHING_USED
        """Of all replies together: an unreadable one is paid for like any other."""
        self.trouble = ""
        """Why the last of them held no verdict."""
        self.request = request
        self.asked_at = asked_at
        self.queued_s = 0.0
        self.exchanges: tuple[Exchange, ...] = ()
        """What came back, for a journal; empty where none is kept."""

    def join(self, batch: Batch, index: int) -> None:
        """Let another sample wait for the same verdict."""
        if not self.others:
            self.others = []
        self.others.append((batch, index))

    @property
    def is_wanted(self) -> bool:
        """Whether a batch still waits for it."""
        return not self.batch.is_closed or any(not batch.is_closed for batch, _ in self.others)

    def count(self, call: Call, reply: Reply | None) -> None:
        """Enter a call that is over into the books of whoever asked first."""
        batch = self.batch
        batch.calls += call.sends
        if call.sends > 1 or call.attempts != 1:
            batch.retries += max(call.attempts - 1, 0)
            batch.hedges += call.is_hedged
            batch.rate_limited += call.rejections
        self.attempts += call.attempts
        if reply is not None:
            self.readings += 1
            self.usage = reply.usage if self.readings == 1 else self.usage + reply.usage

    def asked_again(self, trouble: str) -> None:
        """Note that a reply held no verdict, and that it is asked for again."""
        self.trouble = trouble
        self.batch.rereads += 1
        self.batch.unread[self.index] = self

    def shares(self, verdict: Verdict) -> list[tuple[Batch, tuple[int, Verdict]]]:
        """The verdict for whoever asked first, and its copy for everybody who joined in."""
        shares = [(self.batch, (self.index, verdict))]
        if self.others:
            copy = shared(verdict)
            shares += [(other, (i, copy)) for other, i in self.others]
        return shares


def shared(verdict: Verdict) -> Verdict:
    """A verdict for a twin, which costs nothing more."""
    return replace(verdict, source=Source.SHARED, usage=replace(verdict.usage, cost=0.0))
