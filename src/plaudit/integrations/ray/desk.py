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

from plaudit.engine import Engine
from plaudit.errors import EngineClosed, PlauditError
from plaudit.events import Event, Observer, Summary, VerdictsReady
from plaudit.integrations.meeting import Meeting
from plaudit.integrations.ray.parcel import Answers, Ask, Drop, Join, Parcel
from plaudit.integrations.ray.visitor import Round, Visitor
from plaudit.judges.base import Judge, Panel
from plaudit.observers.tally import Tally

log = logging.getLogger("plaudit")

PATIENCE = 10.0
"""Seconds after which a process that waits in vain hears that there is nothing yet."""
GATHER = 0.005
"""Seconds for which verdicts are gathered once there is one: nothing to a judge, and many a call saved."""
GONE_AFTER = 60.0
"""Seconds without a visit after which a process is taken to have died, and what it wanted is called off."""
JUDGES_KEPT = 64

_Key = tuple[bytes, float | None, int]


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
        self._visitors: dict[str, Visitor] = {}
        self._judges: dict[bytes, tuple[Judge | Panel, bool]] = {}
        self._is_harvest_due = False
        self._is_closing = False

    # -- what the processes call --------------------------------------------------------------------------

    def receive(self, visitor: str, parcels: Sequence[Parcel], *, is_all: bool) -> bool:
        """Take parcels on. Whatever is wrong with one becomes its own answer, and costs no other.

        False, and nothing is done: the process is not known here, or no more, and has to send all it lacks.
        """
        if self._is_closing:
            raise EngineClosed("the shared engine is closing")
        if visitor not in self._visitors:
            if not is_all:
                return False
            self._visitors[visitor] = Visitor()
        host = self._visitors[visitor]
        self._expect(visitor)
        rounds: dict[_Key, Round] = {}
        for parcel in parcels:
            match parcel:
                case Ask():
                    self._take(host, parcel, rounds)
                case Join():
                    host.keep(self._loop.create_task(self._meet(host, parcel)))
                case Drop():
                    host.drop(parcel.id)
        for (_, deadline, _), batch in rounds.items():
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
        except TimeoutError:
            self._harvest()
        finally:
            host.calls -= 1
            self._expect(visitor)
        return host.take()

    def forget(self, visitor: str) -> None:
        """A process has died: what it wanted is called off."""
        self._visitors.pop(visitor).leave()

    @property
    def rounds(self) -> int:
        """Batches at the engine that somebody waits for."""
        return sum(len(host.rounds) for host in self._visitors.values())

    def summary(self) -> Summary:
        """Everything that was done for everybody."""
        return self._tally.summary(self._loop.time() - self._began)

    async def close(self) -> None:
        """Store what is finished, free everything. Nobody is told: who still waits finds another engine."""
        self._harvest()
        self._is_closing = True
        await asyncio.to_thread(self._engine.close)

    # -- at work ------------------------------------------------------------------------------------------

    def _take(self, host: Visitor, ask: Ask, rounds: dict[_Key, Round]) -> None:
        """Read an Ask, and put it with those that can go to the engine together with it."""
        try:
            judge, is_panel = self._judge(ask.judge)
            samples = pickle.loads(ask.samples)  # noqa: S301 - from the training itself
        except Exception as error:  # noqa: BLE001 - a class that is not installed here, or worse
            host.refuse(ask, f"the engine's process cannot load the judge or a sample: {error!r}")
            return
        deadline = ask.deadline
        if deadline is not None:
            deadline = max(math.ceil(deadline * 10) / 10, 0.1)  # so that most go together
        key = (ask.judge, deadline, ask.id if is_panel else 0)  # a panel must not mix groups of two callers
        if key not in rounds:
            rounds[key] = Round(host, judge)
        rounds[key].add(ask, samples)

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

    def _submit(self, batch: Round, deadline: float | None) -> None:
        if (wait := self._opens_at - self._loop.time()) > 0:
            if deadline is None or deadline > wait:
                left = None if deadline is None else deadline - wait
                self._loop.call_later(wait, self._submit, batch, left)
            else:
                batch.cancel()  # over before anything may be sent, as the caller's clock will find
            return
        if not batch.is_wanted:
            return
        try:
            batch.start(self._engine.submit(batch.samples, batch.judge, deadline=deadline))
        except Exception as error:  # noqa: BLE001 - judges are user code; whoever waits must hear of it
            is_known = isinstance(error, PlauditError)
            batch.refuse(str(error) if is_known else f"the judge cannot be used: {error!r}")

    async def _meet(self, host: Visitor, join: Join) -> None:
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
            self._loop.call_soon_threadsafe(self._loop.call_later, GATHER, self._harvest)

    def _harvest(self) -> None:
        self._is_harvest_due = False
        if self._is_closing:
            return
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
