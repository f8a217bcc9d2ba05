"""The shared engine's side: many processes come with parcels, one engine judges, all collect their own.

Runs on one event loop and knows nothing of Ray. A process fetches its answers with a call that waits until
there are some; so a slow sample holds up no other, and a thousand quick ones come back in a few calls.
"""

from __future__ import annotations

import asyncio
import logging
import math
import pickle
from collections.abc import Callable, Sequence
from itertools import islice

from plaudit.engine import Engine
from plaudit.errors import PlauditError
from plaudit.events import Event, Observer, Summary, VerdictsReady
from plaudit.integrations.meeting import Meeting
from plaudit.integrations.ray.parcel import Answers, Ask, Drop, Join, Parcel
from plaudit.judges.base import Judge, Panel
from plaudit.observers.tally import Tally
from plaudit.pending import Pending
from plaudit.types import Sample, Source, Status, Verdict

log = logging.getLogger("plaudit")

PATIENCE = 10.0
"""Seconds after which a process that waits in vain hears that there is nothing yet."""
GATHER = 0.005
"""Seconds for which answers are gathered once there is one: nothing to a judge, and many a call saved."""
GONE_AFTER = 60.0
"""Seconds without a visit after which a process is taken to have died, and what it wanted is called off."""
JUDGES_KEPT = 64


class Desk:
    """One engine and one meeting for every process that comes."""

    def __init__(self, open_engine: Callable[[Observer], Engine], *, hold: float = 0.0) -> None:
        """`hold`: seconds from now before which nothing is sent."""
        self._loop = asyncio.get_running_loop()
        self._opens_at = self._loop.time() + hold
        self._tally = Tally()
        self._began = self._loop.time()
        self._engine = open_engine(self._on_event)
        self._meeting = Meeting()
        self._visitors: dict[str, _Visitor] = {}
        self._judges: dict[bytes, tuple[Judge | Panel, bool]] = {}
        self._is_harvest_due = False

    # -- what the processes call --------------------------------------------------------------------------

    def receive(self, visitor: str, parcels: Sequence[Parcel], *, is_all: bool) -> bool:
        """Take parcels on. Whatever is wrong with one becomes its own answer, and costs no other.

        False, and nothing is done: the process is not known here, or no more, and has to send all it lacks.
        """
        if visitor not in self._visitors:
            if not is_all:
                return False
            self._visitors[visitor] = _Visitor()
        host = self._visitors[visitor]
        self._expect(visitor)
        together: dict[tuple[bytes, float | None], _Round] = {}
        for parcel in parcels:
            match parcel:
                case Join():
                    host.keep(self._loop.create_task(self._meet(host, parcel)))
                case Drop():
                    host.drop(parcel.id)
                case Ask():
                    deadline = parcel.deadline
                    if deadline is not None:
                        deadline = max(math.ceil(deadline * 10) / 10, 0.1)  # so that most go together
                    try:
                        judge, is_panel = self._judge(parcel.judge)
                        samples = pickle.loads(parcel.samples)  # noqa: S301 - from the training itself
                    except Exception as error:  # noqa: BLE001 - a class that is not installed here, or worse
                        host.refuse(
                            parcel, f"the engine's process cannot load the judge or a sample: {error!r}"
                        )
                        continue
                    if is_panel:  # one batch each: groups of two callers must not mix
                        alone = _Round(host, judge)
                        alone.add(parcel, samples)
                        self._submit(alone, deadline)
                    else:
                        key = (parcel.judge, deadline)
                        together.setdefault(key, _Round(host, judge)).add(parcel, samples)
        for (_, deadline), batch in together.items():
            self._submit(batch, deadline)
        return True

    async def collect(self, visitor: str) -> Answers | None:
        """What has become final since the last visit, waiting for it; None for a process not known here."""
        host = self._visitors.get(visitor)
        if host is None:
            return None
        host.calls += 1
        try:
            async with asyncio.timeout(PATIENCE):
                await host.has_news.wait()
            await asyncio.sleep(GATHER)
        except TimeoutError:
            self._harvest()
        finally:
            host.calls -= 1
            self._expect(visitor)
        return host.take()

    def forget(self, visitor: str) -> None:
        """A process has died: what it wanted is called off."""
        self._visitors.pop(visitor).leave()

    def summary(self) -> Summary:
        """Everything that was done for everybody."""
        return self._tally.summary(self._loop.time() - self._began)

    async def close(self) -> None:
        """Store what is finished, fail the rest, free everything."""
        await asyncio.to_thread(self._engine.close)
        self._harvest()
        for visitor in list(self._visitors):
            self.forget(visitor)

    # -- at work ------------------------------------------------------------------------------------------

    def _judge(self, pickled: bytes) -> tuple[Judge | Panel, bool]:
        """The judge in these bytes and whether it is a panel: read once, as long as it is in use."""
        found = self._judges.pop(pickled, None)
        if found is None:
            judge = pickle.loads(pickled)  # noqa: S301 - as above
            found = (judge, isinstance(judge, Panel))
        self._judges[pickled] = found
        if len(self._judges) > JUDGES_KEPT:
            del self._judges[next(iter(self._judges))]
        return found

    def _submit(self, batch: _Round, deadline: float | None) -> None:
        if (wait := self._opens_at - self._loop.time()) > 0:
            if deadline is None or deadline > wait:  # else it is over before anything is sent
                left = None if deadline is None else deadline - wait
                self._loop.call_later(wait, self._submit, batch, left)
            return
        if not batch.is_wanted:
            return
        try:
            batch.start(self._engine.submit(batch.samples, batch.judge, deadline=deadline))
        except Exception as error:  # noqa: BLE001 - judges are user code; whoever waits must hear of it
            is_known = isinstance(error, PlauditError)
            batch.refuse(str(error) if is_known else f"the judge cannot be used: {error!r}")

    async def _meet(self, host: _Visitor, join: Join) -> None:
        found: dict[str, bytes] | str
        try:
            found = await self._meeting.gather(
                join.group, join.member, join.payload, size=join.size, timeout=join.timeout
            )
        except PlauditError as error:
            found = str(error)
        host.tell_meeting(join.id, found)

    def _on_event(self, event: Event) -> None:
        """On the engine's thread: have new verdicts put out, once however many there are."""
        self._tally(event)
        if isinstance(event, VerdictsReady) and not self._is_harvest_due:
            self._is_harvest_due = True
            self._loop.call_soon_threadsafe(self._harvest)

    def _harvest(self) -> None:
        self._is_harvest_due = False
        for host in self._visitors.values():
            host.harvest()

    def _expect(self, visitor: str) -> None:
        """Give a process time to come again; one that is here has all the time it wants."""
        host = self._visitors.get(visitor)
        if host is None:
            return
        if host.alarm is not None:
            host.alarm.cancel()
        host.alarm = self._loop.call_later(GONE_AFTER, self._forget_if_gone, visitor)

    def _forget_if_gone(self, visitor: str) -> None:
        host = self._visitors[visitor]
        if host.calls:
            self._expect(visitor)
        else:
            self.forget(visitor)


class _Visitor:
    """One process: what it waits for, and what lies ready for it."""

    def __init__(self) -> None:
        self.has_news = asyncio.Event()
        self.alarm: asyncio.TimerHandle | None = None
        self.calls = 0
        """Visits under way."""
        self.rounds: list[_Round] = []
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


class _Round:
    """What goes to the engine together: the samples of one or more Asks with one judge."""

    def __init__(self, host: _Visitor, judge: Judge | Panel) -> None:
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
