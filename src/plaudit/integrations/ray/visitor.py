"""A process that comes to the shared engine: what it waits for, and what lies ready for it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import islice

from plaudit.integrations.ray.parcel import Answers, Ask
from plaudit.judges.base import Judge, Panel
from plaudit.pending import Pending
from plaudit.types import Sample, Source, Status, Verdict


class Visitor:
    """One process: what it waits for, and what lies ready for it."""

    def __init__(self) -> None:
        self.has_news = asyncio.Event()
        self.alarm: asyncio.TimerHandle | None = None
        self.calls = 0
        """Visits under way."""
        self.rounds: list[Round] = []
        self._meetings: set[asyncio.Task[None]] = set()
        self._answers = Answers([], [])

    def keep(self, meeting: asyncio.Task[None]) -> None:
        self._meetings.add(meeting)
        meeting.add_done_callback(self._meetings.discard)

    def drop(self, ask: int) -> None:
        for batch in self.rounds:
            batch.drop(ask)

    def harvest(self) -> None:
        is_over = False
        for batch in self.rounds:
            self.tell(batch.news())
            is_over = is_over or batch.is_over
        if is_over:
            self.rounds = [batch for batch in self.rounds if not batch.is_over]

    def tell(self, verdicts: list[tuple[int, int, Verdict]]) -> None:
        if verdicts:
            self._answers.verdicts.extend(verdicts)
            self.has_news.set()

    def tell_meeting(self, join: int, found: dict[str, bytes] | str) -> None:
        self._answers.meetings.append((join, found))
        self.has_news.set()

    def refuse(self, ask: Ask, error: str) -> None:
        verdict = Verdict(None, Status.FAILED, error=error, source=Source.RULE)
        self.tell([(ask.id, place, verdict) for place in ask.places])

    def take(self) -> Answers:
        taken, self._answers = self._answers, Answers([], [])
        self.has_news.clear()
        return taken

    def leave(self) -> None:
        """Nobody comes any more: nothing is sent on its behalf; what is under way still fills the cache."""
        if self.alarm is not None:
            self.alarm.cancel()
        for meeting in self._meetings:
            meeting.cancel()
        for batch in self.rounds:
            batch.cancel()
        self.has_news.set()  # should it be waiting after all


class Round:
    """What goes to the engine together: the samples of one or more Asks with one judge."""

    def __init__(self, host: Visitor, judge: Judge | Panel) -> None:
        self.judge = judge
        self.samples: list[Sample] = []
        self.is_over = False
        self._host = host
        self._pending: Pending | None = None
        self._asks: dict[int, Ask] = {}
        self._seats: list[tuple[int, int]] = []

        host.rounds.append(self)

    @property
    def is_wanted(self) -> bool:
        """Whether anybody still waits for any of it."""
        return bool(self._asks)

    def add(self, ask: Ask, samples: Sequence[Sample]) -> None:
        self.samples.extend(samples)
        self._asks[ask.id] = ask
        self._seats.extend((ask.id, place) for place in ask.places)

    def start(self, pending: Pending) -> None:
        self._pending = pending
        self._stream = pending.as_completed()
        self._taken = 0

    def refuse(self, error: str) -> None:
        self.is_over = True
        for ask in self._asks.values():
            self._host.refuse(ask, error)

    def news(self) -> list[tuple[int, int, Verdict]]:
        """Verdicts that have become final since the last time. As many as are there: never waits."""
        if self._pending is None:
            return []
        ready = len(self._pending) - self._pending.remaining - self._taken
        self._taken += ready
        self.is_over = self._taken == len(self._pending)
        return [(*self._seats[index], verdict) for index, verdict in islice(self._stream, ready)]

    def drop(self, ask: int) -> None:
        """One caller waits no more; once none does, nothing more is sent."""
        if self._asks.pop(ask, None) is not None and not self._asks:
            self.cancel()

    def cancel(self) -> None:
        self._asks.clear()
        if self._pending is None:
            self.is_over = True
        else:
            self._pending.cancel()
