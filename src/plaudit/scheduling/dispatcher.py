"""Calls in, replies out: admission, retries, hedges and deadlines over several endpoints.

A shell without opinions: policy/ says when a call may leave, where to, and whether it comes back. Everything
happens on one event loop, so there is no lock; `pump` is the one place where calls leave.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from plaudit.config import EngineConfig
from plaudit.errors import (
    BudgetSpent,
    EndpointRefused,
    EngineClosed,
    KeyRefused,
    ModelNotFound,
    PlauditError,
    RateLimited,
    RequestRefused,
    SendAgain,
    TimedOut,
    TransientError,
    Unreachable,
)
from plaudit.events import (
    BreakerChanged,
    CallFinished,
    CallStarted,
    EndpointLost,
    Event,
    LimitChanged,
    RetryPlanned,
)
from plaudit.policy.breaker import BreakerState
from plaudit.policy.budget import Spending
from plaudit.policy.fingerprint import jitter
from plaudit.policy.retry import RetryBudget, RetryPolicy
from plaudit.scheduling.admission import Admission
from plaudit.scheduling.call import MORE_ROOM, Call, Outcome, kind_of, ran_out_of_time, resend_wait
from plaudit.scheduling.call_timers import RetryQueue, Timeouts
from plaudit.scheduling.fair_queue import FairQueue
from plaudit.scheduling.hedging import AGAIN, Hedging
from plaudit.scheduling.lane import NEVER, Flight, Lane
from plaudit.scheduling.listening import Listening
from plaudit.types import RawRequest, Reply, Usage

log = logging.getLogger("plaudit")

REFUSALS = 16
"""Calls in a row that an endpoint refuses for their key or model, after which it will refuse every other."""


class Dispatcher:
    """Owns the queue of calls and the lanes they leave by."""

    def __init__(
        self,
        lanes: Sequence[Lane],
        config: EngineConfig | None = None,
        *,
        retry: RetryPolicy | None = None,
        emit: Callable[[Event], None] | None = None,
        on_room: Callable[[], None] | None = None,
        ledger: Callable[[float], None] | None = None,
    ) -> None:
        """`ledger` is told, before it is so, which sum of dollars may have been spent; see `Engine`."""
        self.lanes = list(lanes)
        self.config = config or EngineConfig()
        self._retry = retry or RetryPolicy()
        self.queue: FairQueue[Call] = FairQueue()
        self._under_way: Counter[str] = Counter()
        """Calls under way for each job."""
        self._is_full = False
        """Whether calls wait for a slot, and not for their rate."""
        self._admission = Admission(
            self.lanes,
            max_concurrent=self.config.max_concurrent,
            rpm=self.config.rpm,
            tpm=self.config.tpm,
            budget=self.config.budget,
            ledger=ledger,
            on_limit=self._report_limit,
        )
        self._retries = RetryBudget()
        self._hedging = Hedging(
            self._admission,
            self._retries,
            send=functools.partial(self._send, is_hedge=True),
            send_in_place=self._send_in_place,
        )
        self._retry_queue = RetryQueue(self._come_back)
        self._listening = Listening(self._admission, finish=self._finish, pump=self._pump_soon)
        self._emit = emit
        self._on_room = on_room
        self._room: dict[str, int] = {}
        """How many times the room that was asked for an endpoint gives, where it refused more."""
        self._loop = asyncio.get_running_loop()
        self._wake: asyncio.TimerHandle | None = None
        self._wake_due = NEVER
        self._timeouts = Timeouts(self.lanes, timeout=self.config.timeout)
        self._limits = {lane: lane.limit.limit for lane in self.lanes}
        """As they were last reported."""
        for lane in self.lanes:
            lane.limit.time_limit.seconds = self.config.timeout
        self._flight_ids = 0
        self._is_closed = False
        self._is_pump_due = False
        self._refused: Counter[Lane] = Counter()
        """Calls that an endpoint has refused for their key or model since it last answered one."""
        self._states: dict[Lane, BreakerState] = {}
        self._lost_to: PlauditError = EngineClosed("no endpoint is left")
        self._last_trouble: str | None = None

    @property
    def backlog(self) -> int:
        """Calls that wait to leave, for the first time or again."""
        return len(self.queue) + len(self._retry_queue)

    @property
    def spending(self) -> Spending:
        return self._admission.spending

    @property
    def delay(self) -> str:
        """Why calls are not answered yet: what keeps all endpoints away, or how they are behind."""
        is_shut = not any(lane.breaker.is_closed for lane in self.lanes)
        if is_shut and self._last_trouble is not None:
            return f"while {self._last_trouble}"
        if self.queue.size and self._admission.is_over_rate(self.queue.peek(), now=self._loop.time()):
            return "with more calls waiting than rpm or tpm allows"
        return "with more calls waiting than were let in" if self.backlog else "with no reply to its call yet"

    @property
    def _are_all_lost(self) -> bool:
        return all(lane.is_lost for lane in self.lanes)

    def enqueue(self, calls: Iterable[Call]) -> None:
        """Take calls on. Each gets its `on_done`, whatever happens."""
        if self._is_closed:
            for call in calls:
                self._finish(call, EngineClosed("the engine is closed"))
            return
        now, are_all_lost = self._loop.time(), self._are_all_lost
        is_idle = not (self.backlog or self._admission.in_flight)
        for lane in self.lanes:
            if is_idle:
                lane.breaker.on_idle()
            if lane.breaker.is_due(now=now, is_last=are_all_lost):
                lane.breaker.revive(now=now)
        if self._are_all_lost:
            for call in calls:
                self._finish(call, self._lost_to)
            return
        self.queue.extend(calls)
        self.pump()

    def pump(self) -> None:
        """Let every call leave that may leave now, and see to being woken when the next one may."""
        self._is_pump_due = False
        now = self._loop.time()
        hung_wake = self._rescue(now)
        wake = NEVER
        while self.queue.size and not self._is_closed:
            call = self.queue.peek(self._under_way if self._is_full else None)
            if call.finished or (call.is_wanted is not None and not call.is_wanted(call)):
                self.queue.take(call)
                if not call.finished:
                    self._finish(call, EngineClosed("no batch waits for this call any more"))
                continue
            try:
                lane, wake = self._admission.choose(call, backlog=self.queue.size, now=now)
            except BudgetSpent as error:
                self.queue.take(call)
                self._finish(call, error)
                continue
            if lane is None:
                self._is_full = self._admission.is_full
                break
            if lane.needs_room and call.grow(self._room.get(lane.name, MORE_ROOM)):
                continue  # larger than it was: what fits is to be found anew
            self.queue.take(call)
            self._send(call, lane, now)
        if self._emit is not None:
            for lane in self.lanes:
                self._tell_state(lane, now)
        if self._on_room is not None:
            self._on_room()
        if not self.queue and self._admission.in_flight and self.config.hedge and not self._is_closed:
            wake = self._hedging.look(now)
        if hung_wake == NEVER and self._admission.in_flight:
            hung_wake = self._rescue(now)  # what has just left may hang as well
        self._wake_at(min(wake, hung_wake), now)

    def on_cut_off(self, name: str | None) -> int:
        """A reply of the endpoint of this name lacked room: later ones get more, so many times as much."""
        for lane in self.lanes:
            if lane.name == name:
                lane.need_room()
        return self._room.get(name or "", MORE_ROOM)

    def _rescue(self, now: float) -> float:
        """Give hung calls their twins before anything else leaves; the answer is when to look again."""
        if not self.config.hedge or self._is_closed:
            return NEVER
        while (wake := self._hedging.rescue(now)) <= now:
            pass
        return wake

    def _pump_soon(self) -> None:
        """Pump once for all the calls that come back in one turn of the loop."""
        if not self._is_pump_due:
            self._is_pump_due = True
            self._loop.call_soon(self.pump)

    def abort_unwanted(self) -> None:
        """Cut off the calls under way that no batch waits for any more: their slots are free at once."""
        for call in {flight.call for lane in self.lanes for flight in lane.flights.values()}:
            if call.is_wanted is not None and not call.is_wanted(call):
                self._cut_off_all(call)
                self._finish(call, EngineClosed("no batch waits for this call any more"))
        self._pump_soon()

    async def close(self) -> None:
        """Stop everything: what has not come back gets EngineClosed. Leaves no task behind."""
        self._is_closed = True
        self._timeouts.close()
        if self._wake is not None:
            self._wake.cancel()
        flights = [flight for lane in self.lanes for flight in lane.flights.values()]
        left = [*self.queue, *self._retry_queue.clear(), *(flight.call for flight in flights)]
        self.queue.clear()
        for flight in flights:
            self._cut_off(flight)
        await asyncio.gather(*(f.task for f in flights if f.task is not None), return_exceptions=True)
        await self._listening.close()
        self._admission.close()
        for call in left:
            self._finish(call, EngineClosed("the engine was closed before this call came back"))
        for lane in self.lanes:
            await lane.transport.close()

    # -- leaving ------------------------------------------------------------------------------------------

    def _send(self, call: Call, lane: Lane, now: float, *, is_hedge: bool = False) -> None:
        self._flight_ids += 1
        flight = lane.flights[self._flight_ids] = Flight(call, lane, sent_at=now, id=self._flight_ids)
        if isinstance(call.request, RawRequest) and call.request.on_chunk is not None:
            on_chunk = functools.partial(self._on_chunk, flight, call.request.on_chunk)
            flight.request = replace(call.request, on_chunk=on_chunk)
        call.sends += 1
        call.last_sent, call.twin_at = now, None
        if call.first_sent is None:
            call.first_sent = now
            self._retries.on_call()
        lane.on_send(flight, now=now)
        self._hedging.overtaken[lane].on_send(flight.id)
        self._admission.on_send(call, lane, now=now)
        self._under_way[call.job] += 1
        if self._listening.late:
            self._listening.on_send(lane, room=self._admission.room)
        if self._states or lane.breaker.state is not BreakerState.CLOSED:
            self._tell_state(lane, now)
        if self._emit is not None:
            self._emit(CallStarted(now, lane.name, lane.in_flight, is_hedge))
        flight.task = self._loop.create_task(self._fly(flight))
        if self._timeouts.timer is None:
            self._timeouts.watch()

    async def _fly(self, flight: Flight) -> None:
        flight.has_begun = True
        lane = flight.lane
        try:
            outcome: Outcome
            if self._admission.is_metered(lane):
                outcome = await self._listening.send(flight)
            else:
                outcome = await lane.transport.send(flight.request)
        except PlauditError as error:
            outcome = error
        except asyncio.CancelledError:
            if not flight.is_overdue:
                self._land(flight, None)
                self.pump()  # what it had reserved is free again
                raise
            late = f"{lane.name}: no reply within {self.config.timeout:g} s"
            outcome = TimedOut(late).with_facts(endpoint=lane.name, timeout_s=self.config.timeout)
        except Exception as bug:  # one broken call must not take its neighbours along
            log.exception("a bug in the transport of %s", lane.name)
            outcome = PlauditError(f"{lane.name}: a bug in its transport: {bug!r}")
        self._land(flight, outcome)
        self._pump_soon()

    def _on_chunk(self, flight: Flight, hand_on: Callable[[bytes], None], chunk: bytes) -> None:
        """Hand on a piece of a reply. The first flight to bring one is the call's only one from then on."""
        call = flight.call
        if call.finished or flight.id not in flight.lane.flights:
            return
        if call.streamed_by is None:
            call.streamed_by = flight.id
            self._cut_off_all(call, but=flight)
        if call.streamed_by == flight.id:
            hand_on(chunk)

    def _send_in_place(self, flight: Flight) -> None:
        """End a call that hangs and send it again, next: no other may leave beside it."""
        self._cut_off(flight)
        self.queue.appendleft(flight.call)

    # -- coming back --------------------------------------------------------------------------------------

    def _cut_off(self, flight: Flight) -> None:
        """Cancel a flight. One that has not begun never will: its task ends without a step to land it."""
        flight.is_overdue = False
        if flight.task is not None:
            flight.task.cancel()
        if not flight.has_begun:
            self._land(flight, None)

    def _land(self, flight: Flight, outcome: Outcome | None) -> None:
        """Take a flight off the books and pass on what it brought. None: it was cancelled."""
        lane, call, now = flight.lane, flight.call, self._loop.time()
        del lane.flights[flight.id]
        is_reply = isinstance(outcome, Reply)
        self._hedging.overtaken[lane].on_back(flight.id, lane.latencies, now=now, is_reply=is_reply)
        if self._under_way[call.job] > 1:
            self._under_way[call.job] -= 1
        else:
            del self._under_way[call.job]
        latency = now - flight.sent_at
        cost = self._admission.on_return(call, lane, outcome, sent_at=flight.sent_at, now=now)
        if self._emit is not None:
            usage = outcome.usage if isinstance(outcome, Reply) else Usage()
            error = str(outcome) if isinstance(outcome, PlauditError) else None
            self._emit(CallFinished(now, lane.name, lane.in_flight, kind_of(outcome), latency, usage, error))
        if outcome is None:
            return
        if call.twins > 1 and not isinstance(outcome, TimedOut):  # what came back did not hang
            call.twins -= 1
        if isinstance(outcome, Reply):
            if cost is not None and outcome.usage.cost is None:
                outcome = replace(outcome, usage=replace(outcome.usage, cost=cost))
            lane.answered += 1
            self._on_reply(flight, outcome, now, latency)
        else:
            self._on_error(flight, outcome, now)

    def _on_error(self, flight: Flight, outcome: PlauditError, now: float) -> None:
        lane, call = flight.lane, flight.call
        if call.streamed_by is not None:
            self._finish(call, outcome)
        self._last_trouble = str(outcome)
        if isinstance(outcome, RateLimited):
            lane.rate_limited += 1
            self._on_refusal(flight, outcome, now)
            return
        if isinstance(outcome, SendAgain):
            self._on_send_again(flight, outcome, now)
            return
        lane.failed += 1
        if isinstance(outcome, TransientError) or self._is_one_of_many(lane, outcome):
            self._on_failure(flight, outcome, now)
        elif isinstance(outcome, EndpointRefused):
            if not lane.is_lost:
                self._lose(lane, outcome, now)
            self._elsewhere_or_fail(call, lane, outcome)
        else:
            if isinstance(outcome, RequestRefused):
                lane.on_answer(flight, now=now)
                if not (call.finished or self._is_flying(call)) and call.shrink():
                    self.queue.appendleft(call)  # more than fits into the model's context, perhaps
                    return
            call.attempts += 1
            if not self._is_flying(call):
                self._finish(call, outcome)

    def _is_one_of_many(self, lane: Lane, error: PlauditError) -> bool:
        """Whether others may be answered: a replica may lack its model, or some prompts be flagged by 403."""
        if not isinstance(error, KeyRefused | ModelNotFound) or not (lane.answered or lane.flights):
            return False
        self._refused[lane] += 1
        return lane.breaker.is_closed and self._refused[lane] < REFUSALS

    def _on_reply(self, flight: Flight, reply: Reply, now: float, latency: float) -> None:
        lane, call = flight.lane, flight.call
        if self._refused:
            self._refused.pop(lane, None)
        if self._listening.late:
            self._listening.stop(lane)
        lane.on_reply(reply, flight, now=now)
        if self._states:
            self._tell_state(lane, now)
        self._report_limit(lane)
        call.attempts += 1
        call.latency = latency
        call.answered_on = lane.name
        if call.has_more_room and call.room < MORE_ROOM:
            self._room[lane.name] = call.room
        self._finish(call, reply)

    def _on_refusal(self, flight: Flight, error: RateLimited, now: float) -> None:
        lane, was_lost = flight.lane, flight.lane.is_lost
        lane.on_refusal(
            flight, now=now, retry_after=error.retry_after, rate=error.rate, is_quota=error.is_quota
        )
        self._after_refusal(flight, error, now, was_lost=was_lost)

    def _after_refusal(self, flight: Flight, error: PlauditError, now: float, *, was_lost: bool) -> None:
        """Let a call that was too much leave again; that is no attempt of it."""
        lane, call = flight.lane, flight.call
        call.rejections += 1
        self._tell_state(lane, now, error)
        self._report_limit(lane)
        if lane.is_lost and not was_lost:
            self._lose(lane, error, now)
        if self._are_all_lost:
            self._finish(call, self._lost_to)
            return
        call.failed_on = lane.name
        luck = jitter(call.key, call.sends)
        self._later(call, self._retry.refusal_wait(call.rejections, jitter=luck, longest=lane.longest_pause))

    def _on_send_again(self, flight: Flight, error: SendAgain, now: float) -> None:
        """Let the call leave again, next, if not for ever; admission counts it like any other."""
        call = flight.call
        call.resends += 1
        wait = resend_wait(error, resends=call.resends)
        if wait is None:
            self._on_failure(flight, error, now)
        elif self._are_all_lost:
            self._finish(call, self._lost_to)
        elif wait:
            self._later(call, wait)
        elif not (call.finished or self._is_flying(call)):
            self.queue.appendleft(call)

    def _on_failure(self, flight: Flight, error: PlauditError, now: float) -> None:
        lane, call = flight.lane, flight.call
        call.resends = 0
        is_unreachable, was_lost = isinstance(error, Unreachable), lane.is_lost
        retry_after = getattr(error, "retry_after", None)
        if lane.on_failure(flight, now=now, retry_after=retry_after, is_unreachable=is_unreachable):
            self._after_refusal(flight, error, now, was_lost=was_lost)
            return
        self._tell_state(lane, now, error)
        has_hung = ran_out_of_time(error)
        is_overload = has_hung and lane.on_timeout(flight, now=now)
        self._report_limit(lane)
        if not (is_unreachable or is_overload or lane.breaker.is_sick):  # else no fault of the call's
            call.attempts += 1
        if lane.is_lost and not was_lost:
            self._lose(lane, error, now)
        if call.finished or self._is_flying(call):
            call.twin_at = now + AGAIN
            return  # its twin may still bring a reply
        if lane.is_lost:
            self._elsewhere_or_fail(call, lane, error)
            return
        is_away = lane.breaker.may_be_away(now=now) and not has_hung
        wait = self._retry.next_wait(
            attempt=min(call.attempts, self._retry.attempts - 1) if is_away else call.attempts,
            jitter=jitter(call.key, call.sends),
            longest=lane.longest_backoff(now=now),
            failing=lane.breaker.failing,
        )
        if wait is None:
            self._finish(call, error)
            return
        late = 0.0 if lane.breaker.is_sick else self._retries.take(now=now)
        if lane.is_failing:
            wait += late
        call.failed_on = lane.name
        call.has_hung = has_hung
        self._tell(RetryPlanned(now, lane.name, call.attempts, wait, str(error)))
        self._later(call, wait)

    def _later(self, call: Call, wait: float) -> None:
        if self._is_flying(call):
            call.twin_at = self._loop.time() + max(wait, AGAIN)
        elif not call.finished:
            self._retry_queue.put(call, seconds=wait)

    def _come_back(self, call: Call) -> None:
        """Let a call that has waited leave next, or last where it hung, or while an endpoint is down.

        Otherwise the calls that always hang would hold every place before long, and the same call would be
        every probe of an outage, and spend all its attempts on it.
        """
        if not call.has_hung and all(lane.breaker.state is BreakerState.CLOSED for lane in self.lanes):
            self.queue.appendleft(call)
        else:
            self.queue.append(call)
        self.pump()

    def _elsewhere_or_fail(self, call: Call, lane: Lane, error: PlauditError) -> None:
        if call.finished or self._is_flying(call):
            return
        if self._are_all_lost:
            call.attempts += not isinstance(error, TransientError)
            self._finish(call, error)
        else:
            call.failed_on = lane.name
            self.queue.appendleft(call)

    def _lose(self, lane: Lane, error: PlauditError, now: float) -> None:
        """Give a lane up; when it was the last, everything that waits fails with its one message."""
        lane.breaker.lose(now=now)
        self._lost_to = error
        self._tell(EndpointLost(now, lane.name, str(error), error.cause))
        if not self._are_all_lost:
            return
        waiting = [*self.queue, *self._retry_queue.clear()]
        self.queue.clear()
        for call in waiting:
            self._finish(call, error)

    def _finish(self, call: Call, outcome: Outcome) -> None:
        if call.finished:
            return
        call.finished = True
        if call.sends > 1:
            self._cut_off_all(call)
        call.on_done(call, outcome)

    # -- small things -------------------------------------------------------------------------------------

    def _is_flying(self, call: Call) -> bool:
        return call.is_hedged and any(f.call is call for lane in self.lanes for f in lane.flights.values())

    def _cut_off_all(self, call: Call, but: Flight | None = None) -> None:
        for lane in self.lanes:
            for flight in [one for one in lane.flights.values() if one.call is call and one is not but]:
                self._cut_off(flight)

    def _wake_at(self, when: float, now: float) -> None:
        """Pump again by then. A timer that is due earlier stays: a look too many costs less than a timer."""
        if when == NEVER or self._is_closed or (self._wake is not None and self._wake_due <= when):
            return
        if self._wake is not None:
            self._wake.cancel()
        self._wake_due = when
        self._wake = self._loop.call_later(max(when - now, 0.0), self._wake_up)

    def _wake_up(self) -> None:
        self._wake = None
        self.pump()

    def _tell_state(self, lane: Lane, now: float, error: PlauditError | None = None) -> None:
        """Tell of an endpoint that lets nothing in, is looked at again, or is back."""
        state = lane.breaker.state
        if state is not self._states.get(lane, BreakerState.CLOSED):
            self._states[lane] = state
            if state is BreakerState.CLOSED:
                del self._states[lane]
            if state is not BreakerState.LOST:
                is_away = isinstance(error, Unreachable)
                waits = lane.breaker.patience(is_unreachable=True) if is_away else None
                said, due = str(error) if error else None, lane.breaker.open_until
                self._tell(BreakerChanged(now, lane.name, state.value, said, waits, due))

    def _report_limit(self, lane: Lane) -> None:
        if lane.limit.limit == self._limits[lane]:
            return
        self._limits[lane] = lane.limit.limit
        self._tell(LimitChanged(self._loop.time(), lane.name, lane.limit.limit, lane.limit.cause))

    def _tell(self, event: Event) -> None:
        if self._emit is not None:
            self._emit(event)
