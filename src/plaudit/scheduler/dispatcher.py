"""Calls in, replies out: admission, retries, hedges and deadlines over several endpoints.

A shell without opinions: core/ says when a call may leave, where to, and whether it comes back. Everything
happens on one event loop, so there is no lock; `pump` is the one place where calls leave.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from plaudit.core.breaker import BreakerState
from plaudit.core.fingerprint import jitter
from plaudit.core.pace import rate_hint
from plaudit.core.retry import RetryBudget, RetryPolicy
from plaudit.errors import (
    BudgetSpent,
    EndpointRefused,
    EngineClosed,
    PlauditError,
    RateLimited,
    TransientError,
    TransportFailed,
    Unreachable,
)
from plaudit.events import (
    BreakerChanged,
    CallFinished,
    CallStarted,
    EndpointLost,
    Event,
    LimitChanged,
    Paused,
    RetryPlanned,
)
from plaudit.scheduler.admission import Admission
from plaudit.scheduler.call import Call, Outcome
from plaudit.scheduler.hedging import Hedging
from plaudit.scheduler.lane import NEVER, Flight, Lane
from plaudit.types import Reply, Usage

log = logging.getLogger("plaudit")

REJECT_PATIENCE = 600.0
"""Seconds an endpoint may turn everything away before its calls are given up."""


@dataclass(frozen=True, slots=True)
class DispatcherConfig:
    timeout: float = 120.0
    """Seconds one attempt may take."""
    max_concurrent: int | None = None
    """Calls at once over all endpoints; None: as many as the endpoints bear."""
    rpm: int | None = None
    tpm: int | None = None
    budget: float | None = None
    """US dollars."""
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    hedge: bool = True


class Dispatcher:
    """Owns the queue of calls and the lanes they leave by."""

    def __init__(
        self,
        lanes: Sequence[Lane],
        config: DispatcherConfig | None = None,
        *,
        emit: Callable[[Event], None] | None = None,
        on_room: Callable[[], None] | None = None,
    ) -> None:
        self.lanes = list(lanes)
        self.config = config or DispatcherConfig()
        self.queue: deque[Call] = deque()
        self._admission = Admission(
            self.lanes,
            max_concurrent=self.config.max_concurrent,
            rpm=self.config.rpm,
            tpm=self.config.tpm,
            budget=self.config.budget,
            on_limit=self._report_limit,
        )
        self._retries = RetryBudget()
        self._hedging = Hedging(self._admission, self._retries, send=self._send_twin)
        self._waiting: dict[Call, asyncio.TimerHandle] = {}
        self._emit = emit
        self._on_room = on_room
        self._loop = asyncio.get_running_loop()
        self._wake: asyncio.TimerHandle | None = None
        self._flight_ids = 0
        self._is_closed = False

    @property
    def backlog(self) -> int:
        """Calls that have not left yet."""
        return len(self.queue)

    def enqueue(self, calls: Iterable[Call]) -> None:
        """Take calls on. Each gets its `on_done`, whatever happens."""
        self.queue.extend(calls)
        if all(lane.is_lost for lane in self.lanes):
            for lane in self.lanes:
                lane.breaker.revive(now=self._loop.time())
        self.pump()

    def pump(self) -> None:
        """Let every call leave that may leave now, and see to being woken when the next one may."""
        now = self._loop.time()
        wake = NEVER
        while self.queue and not self._is_closed:
            call = self.queue[0]
            if call.finished or (call.is_wanted is not None and not call.is_wanted(call)):
                self.queue.popleft()
                if not call.finished:
                    self._finish(call, EngineClosed("nobody waits for this call any more"))
                continue
            try:
                lane, wake = self._admission.choose(call, backlog=len(self.queue), now=now)
            except BudgetSpent as error:
                self.queue.popleft()
                self._finish(call, error)
                continue
            if lane is None:
                break
            self.queue.popleft()
            self._send(call, lane, now)
        if self._on_room is not None:
            self._on_room()
        if not self.queue and self._admission.in_flight and self.config.hedge and not self._is_closed:
            wake = self._hedging.look(now)
        self._wake_at(wake, now)

    async def close(self) -> None:
        """Stop everything: what has not come back gets EngineClosed. Leaves no task behind."""
        self._is_closed = True
        if self._wake is not None:
            self._wake.cancel()
        for handle in self._waiting.values():
            handle.cancel()
        flights = [flight for lane in self.lanes for flight in lane.flights.values()]
        left = {*self.queue, *self._waiting, *(flight.call for flight in flights)}
        self.queue.clear()
        self._waiting.clear()
        tasks = [flight.task for flight in flights if flight.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for call in left:
            if not call.finished:
                self._finish(call, EngineClosed("the engine was closed before this call came back"))
        for lane in self.lanes:
            await lane.transport.close()

    # -- leaving ------------------------------------------------------------------------------------------

    def _send(self, call: Call, lane: Lane, now: float, *, is_hedge: bool = False) -> None:
        flight = Flight(call, lane, sent_at=now)
        self._flight_ids += 1
        lane.flights[self._flight_ids] = flight
        call.sends += 1
        if call.first_sent is None:
            call.first_sent = now
            self._retries.on_call()
        self._admission.on_send(call, lane, now=now)
        if self._emit is not None:
            self._emit(CallStarted(now, lane.name, lane.in_flight, is_hedge))
        flight.task = self._loop.create_task(self._fly(flight, self._flight_ids))

    def _send_twin(self, call: Call, lane: Lane, now: float) -> None:
        self._send(call, lane, now, is_hedge=True)

    async def _fly(self, flight: Flight, flight_id: int) -> None:
        lane = flight.lane
        outcome: Outcome
        try:
            async with asyncio.timeout(self.config.timeout):
                outcome = await lane.transport.send(flight.call.request)
        except TimeoutError:
            outcome = TransportFailed(f"{lane.name}: no reply within {self.config.timeout:g} s")
            lane.limit.on_timeout(now=self._loop.time(), in_flight=lane.in_flight)
        except PlauditError as error:
            outcome = error
        except asyncio.CancelledError:
            self._land(flight, flight_id, None)
            raise
        except Exception as bug:  # one broken call must not take its neighbours along
            log.exception("a bug in the transport of %s", lane.name)
            outcome = PlauditError(f"{lane.name}: a bug in its transport: {bug!r}")
        self._land(flight, flight_id, outcome)
        self.pump()

    # -- coming back --------------------------------------------------------------------------------------

    def _land(self, flight: Flight, flight_id: int, outcome: Outcome | None) -> None:
        """Take a flight off the books and pass on what it brought. None: it was cancelled."""
        lane, call, now = flight.lane, flight.call, self._loop.time()
        del lane.flights[flight_id]
        latency = now - flight.sent_at
        usage = outcome.usage if isinstance(outcome, Reply) else Usage()
        cost = self._admission.on_return(call, lane, usage, now=now)
        if self._emit is not None:
            error = str(outcome) if isinstance(outcome, PlauditError) else None
            self._emit(
                CallFinished(now, lane.name, lane.in_flight, _kind(outcome), latency, usage, error),
            )
        if outcome is None:
            return
        if isinstance(outcome, Reply):
            if cost is not None and usage.cost is None:
                outcome = replace(outcome, usage=replace(usage, cost=cost))
            self._on_reply(flight, outcome, now, latency)
        elif isinstance(outcome, RateLimited):
            self._on_reject(flight, outcome, now)
        elif isinstance(outcome, TransientError):
            self._on_failure(flight, outcome, now)
        elif isinstance(outcome, EndpointRefused):
            self._lose(lane, outcome, now)
            self._elsewhere_or_fail(call, lane, outcome)
        else:
            lane.breaker.on_success()  # it answered, if only to refuse this one request
            call.attempts += 1
            self._finish(call, outcome)

    def _on_reply(self, flight: Flight, reply: Reply, now: float, latency: float) -> None:
        lane, call = flight.lane, flight.call
        self._close_breaker(lane, now)
        lane.last_success = now
        lane.note_latency(latency)
        before = lane.limit.limit
        lane.limit.on_success(
            now=now,
            sent_at=flight.sent_at,
            in_flight=lane.in_flight + 1,
            tokens=reply.usage.completion_tokens,
        )
        if lane.limit.limit != before:
            self._report_limit(lane)
        if reply.rate is not None:
            self._heed(lane, reply, now)
        call.attempts += 1
        call.latency = latency
        self._finish(call, reply)

    def _heed(self, lane: Lane, reply: Reply, now: float) -> None:
        rate = reply.rate
        assert rate is not None
        lane.rate_hint = rate_hint(rate) or lane.rate_hint
        if rate.remaining_requests == 0 and lane.rate_hint is not None:
            lane.pace.begin(now=now, rate=lane.rate_hint)

    def _on_reject(self, flight: Flight, error: RateLimited, now: float) -> None:
        lane, call = flight.lane, flight.call
        call.rejections += 1
        before = lane.limit.limit
        is_news = lane.pace.on_refusal(now=now, sent_at=flight.sent_at, retry_after=error.retry_after)
        if lane.pace.rate is None:
            old_enough = lane.sent_by(now - 1.25 * (now - flight.sent_at))
            lane.limit.on_reject(
                now=now,
                sent_at=flight.sent_at,
                accepted=lane.sent_by(flight.sent_at),
                fresh=max(0, old_enough - lane.sent_by(lane.limit.cut_at)),
            )
            if lane.limit.limit != before:
                self._report_limit(lane)
            if lane.limit.is_rate:
                lane.pace.begin(now=now)
            if error.retry_after is not None and not lane.limit.is_capacity:
                is_news = lane.pace.paused_until <= now
                lane.pace.pause(now=now, seconds=error.retry_after)
                if lane.rate_hint is not None:
                    lane.pace.begin(now=now, rate=lane.rate_hint)
        if is_news and self._emit is not None:
            self._emit(Paused(now, lane.name, lane.pace.paused_until - now, str(error)))
        lane.last_error = error
        since = max(lane.last_success or 0.0, call.first_sent or 0.0)
        if now - since > REJECT_PATIENCE:
            self._finish(call, error)
            return
        wait = self.config.retry.reject_wait(rejections=call.rejections, jitter=jitter(call.key, call.sends))
        self._later(call, max(wait, error.retry_after or 0.0))

    def _on_failure(self, flight: Flight, error: TransientError, now: float) -> None:
        lane, call = flight.lane, flight.call
        call.attempts += 1
        lane.last_error = error
        state = lane.breaker.state
        lane.breaker.on_failure(now=now, is_unreachable=isinstance(error, Unreachable))
        if lane.breaker.state is not state:
            if lane.is_lost:
                self._lose(lane, error, now)
            elif self._emit is not None:
                self._emit(BreakerChanged(now, lane.name, lane.breaker.state.value, str(error)))
        if call.finished or self._is_flying(call):
            return  # its twin may still bring a reply
        if lane.is_lost:
            self._elsewhere_or_fail(call, lane, error)
            return
        retry_after = getattr(error, "retry_after", None)
        wait = self.config.retry.next_wait(
            attempt=call.attempts, retry_after=retry_after, jitter=jitter(call.key, call.sends)
        )
        if wait is None:
            self._finish(call, error)
            return
        wait += self._retries.take(now=now)
        call.failed_on = lane.name
        if self._emit is not None:
            self._emit(RetryPlanned(now, lane.name, call.attempts, wait, str(error)))
        self._later(call, wait)

    def _later(self, call: Call, wait: float) -> None:
        """Put a call back at the head of the queue after a while; it holds no permit meanwhile."""

        def back() -> None:
            self._waiting.pop(call, None)
            if not call.finished:
                self.queue.appendleft(call)
                self.pump()

        if not call.finished and call not in self._waiting:
            self._waiting[call] = self._loop.call_later(wait, back)

    def _elsewhere_or_fail(self, call: Call, lane: Lane, error: PlauditError) -> None:
        if call.finished or self._is_flying(call):
            return
        if any(not other.is_lost for other in self.lanes):
            call.failed_on = lane.name
            self.queue.appendleft(call)
        else:
            call.attempts += not isinstance(error, TransientError)
            self._finish(call, error)

    def _lose(self, lane: Lane, error: PlauditError, now: float) -> None:
        """Give a lane up; when it was the last, everything that waits fails with its one message."""
        lane.breaker.lose(now=now)
        lane.last_error = error
        if self._emit is not None:
            self._emit(EndpointLost(now, lane.name, str(error)))
        if any(not other.is_lost for other in self.lanes):
            return
        waiting = [*self.queue, *self._waiting]
        for handle in self._waiting.values():
            handle.cancel()
        self.queue.clear()
        self._waiting.clear()
        for call in waiting:
            self._finish(call, error)

    def _finish(self, call: Call, outcome: Outcome) -> None:
        if call.finished:
            return
        call.finished = True
        if call.is_hedged:
            self._cancel_twins(call)
        call.on_done(call, outcome)

    # -- small things -------------------------------------------------------------------------------------

    def _is_flying(self, call: Call) -> bool:
        return call.is_hedged and any(f.call is call for lane in self.lanes for f in lane.flights.values())

    def _cancel_twins(self, call: Call) -> None:
        for lane in self.lanes:
            for flight in lane.flights.values():
                if flight.call is call and flight.task is not None:
                    flight.task.cancel()

    def _wake_at(self, when: float, now: float) -> None:
        if self._wake is not None:
            self._wake.cancel()
            self._wake = None
        if when < NEVER and not self._is_closed:
            self._wake = self._loop.call_later(max(when - now, 0.0), self.pump)

    def _close_breaker(self, lane: Lane, now: float) -> None:
        if lane.breaker.state is not BreakerState.CLOSED and self._emit is not None:
            self._emit(BreakerChanged(now, lane.name, "closed"))
        lane.breaker.on_success()

    def _report_limit(self, lane: Lane) -> None:
        if self._emit is not None:
            self._emit(LimitChanged(self._loop.time(), lane.name, lane.limit.limit, lane.limit.cause))


def _kind(outcome: Outcome | None) -> str:
    match outcome:
        case None:
            return "cancelled"
        case Reply():
            return "ok"
        case RateLimited():
            return "rate_limited"
        case TransientError():
            return "failed"
        case _:
            return "refused"
