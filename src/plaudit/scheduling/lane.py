"""One endpoint as the dispatcher sees it: its transport, its limits, and the calls under way on it."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from plaudit.config import Endpoint, Price
from plaudit.policy.balance import Load
from plaudit.policy.breaker import MOMENT, OUTLIVED, BadCall, Breaker, BreakerConfig, BreakerState
from plaudit.policy.collapse import Collapse
from plaudit.policy.hedge import MIN_CALLS, hedge_age, hung_age
from plaudit.policy.histogram import LatencyHistogram
from plaudit.policy.limit import ConcurrencyLimit, LimitConfig
from plaudit.policy.pace import Pace, rate_hint
from plaudit.policy.quota import Quota
from plaudit.policy.refusal_record import RefusalRecord
from plaudit.policy.weather import Weather
from plaudit.scheduling.call import MORE_ROOM, Call
from plaudit.transports.base import Transport
from plaudit.types import RateHeaders, Reply, Usage

NEVER = float("inf")
BACKOFF = 0.25
"""How long a retry waits at the most while others are let in, as a share of what a call takes."""
LONGEST_BACKOFF = 10.0
"""Seconds that it waits at the most where an endpoint that has answered lets nothing in at present."""
ROOMY = 200
"""Replies in a row that did without more room, after which none is given: the model may be another one."""
HALF, LEAST = 0.5, 0.1
"""Shares of the calls answered a second so far: with which a pace begins that nothing tells, and at least."""
NEARLY_ALL = 0.75
"""Share of the calls that fail from which on retries are held back."""
FULL, QUICK = 0.65, 0.5
"""Share of the calls that break, in less than so much of the time that replies take, from which on they are
taken for refused."""
REMEMBERED = 512
"""Refused calls by which to see whether they come in runs."""
LEAST_LATE = 1.0
"""Seconds that a call must take to be late where none was answered."""
FAR_LATER = 4.0
"""How many times as long as others it took where it hung by itself: load would have made those slow, too."""
FAR_MORE = 2.0
"""How many times as many calls let in as headers allow show that they are wrong."""
LONG_AWAY = 0.5
"""Seconds that an endpoint must have let nothing in, to be looked at as if it were another."""


class Wave:
    """Calls that left in the same moment: nobody knows in which order they arrive."""

    __slots__ = ("count", "height", "sent_at")

    def __init__(self, sent_at: float) -> None:
        self.sent_at = sent_at
        self.count = self.height = 0
        """How many they are; and calls under way once the last of them had left."""


NO_WAVE = Wave(float("-inf"))


class Flight:
    """One attempt of one call on one lane."""

    __slots__ = (
        "area",
        "call",
        "has_begun",
        "id",
        "is_overdue",
        "lane",
        "order",
        "refusals",
        "request",
        "sent_at",
        "task",
        "was_allowed",
        "wave",
    )

    def __init__(self, call: Call, lane: Lane, *, sent_at: float, id: int) -> None:
        self.call = call
        self.request = call.request
        self.lane = lane
        self.sent_at = sent_at
        self.id = id
        self.area = 0.0
        """Calls under way, added up over time, when it left."""
        self.order = 0
        self.wave = NO_WAVE
        self.refusals = 0
        """All refusals until then, and calls that broke."""
        self.was_allowed = False
        """Whether it left because the endpoint had said that it takes it."""
        self.has_begun = False
        self.is_overdue = False
        """Whether it was ended because it took too long."""
        self.task: asyncio.Task[None] | None = None


class Lane:
    """Everything known about one endpoint. Decisions come from policy/; the dispatcher acts on them."""

    def __init__(
        self,
        endpoint: Endpoint,
        transport: Transport,
        *,
        start: LimitConfig | None = None,
        ceiling: int | None = None,
        breaker: BreakerConfig | None = None,
    ) -> None:
        self.endpoint = endpoint
        self.name = endpoint.name
        self.transport = transport
        start = start or LimitConfig()
        ceilings = [c for c in (endpoint.max_concurrent, ceiling, start.ceiling) if c is not None]
        self.ceiling = min(ceilings)
        self.limit = ConcurrencyLimit(replace(start, ceiling=self.ceiling))
        self.pace = Pace()
        self.weather = Weather()
        self.collapse = Collapse(start.collapses_at)
        self.record = RefusalRecord()
        self.breaker = Breaker(breaker)
        has_quota = endpoint.rpm is not None or endpoint.tpm is not None
        self.quota = Quota(rpm=endpoint.rpm, tpm=endpoint.tpm) if has_quota else None
        self.flights: dict[int, Flight] = {}
        self.needs_room: bool | None = None
        """Whether replies need more tokens than judges ask for; None while nothing was cut off."""
        self._roomy = 0
        """Replies in a row that had more room and would have done without."""
        self.breaks_when_full = False
        """Whether it breaks what is too much, and does not say so."""
        self.answered = self.rate_limited = self.failed = 0
        """In the order of sending."""
        self.latencies = LatencyHistogram()
        self._typical: float | None = None
        self._slow: float | None = None
        self._calm: float | None = None
        """The same when it was least."""
        self._under_way_before = 0
        """Calls under way when the pace began, and those that left at once then."""
        self.hung_age: float | None = None
        """Seconds after which a call under way hangs."""
        self.rate_hint: float | None = None
        """Requests a second, as the endpoint's headers told."""
        self._told_limit = 0
        """And how many at once."""
        self._is_hint_wrong = False
        """Whether far more was let in than the headers allow."""
        self._newest_passed = self._newest_answered = self._newest_refused = float("-inf")
        self._refusals = self._refusals_before = 0
        """Calls refused or broken, and those of them from before it let calls in again."""
        self._sent = 0
        self._wave = NO_WAVE
        self._refused: dict[int, float] = {}
        """When the last ones that were refused had left, by their place in the order of sending."""
        self._first_sent = 0.0
        self._first_refusal: tuple[int, float] | None = None
        """Calls let in before the first refusal, and the time that took."""

    @property
    def in_flight(self) -> int:
        return len(self.flights)

    @property
    def is_lost(self) -> bool:
        return self.breaker.state is BreakerState.LOST

    def is_sound(self, call: Call, *, now: float) -> bool:
        """Whether only the calls under way, if anything, keep this one from leaving here."""
        if self.breaker.state is not BreakerState.CLOSED or self.pace.rate is not None:
            return False
        return self.quota_ready_at(call, now) <= now

    @property
    def hedge_age(self) -> float | None:
        """Seconds after which a call under way is an outlier."""
        return hedge_age(self.latencies, under_way=len(self.flights))

    @property
    def load(self) -> Load:
        return Load(len(self.flights), self.limit.limit, self._slow, self._typical)

    def longest_backoff(self, *, now: float) -> float | None:
        """Seconds that a call need wait at the most before it is tried again; None where it is not known."""
        if self._typical is None:
            return None
        if not self.breaker.is_closed:  # single probes find out when it is back, and need a call to send
            return min(now - self.breaker.shut_at, LONGEST_BACKOFF)
        return None if self.is_failing else BACKOFF * self._typical

    @property
    def longest_pause(self) -> float | None:
        """The same for one that was refused: a shut door has its own schedule, and needs a call for it."""
        if not self.breaker.is_closed:
            return 0.0
        return None if self._typical is None else BACKOFF * self._typical

    @property
    def is_failing(self) -> bool:
        """Whether nearly all calls fail, or all."""
        return not self.breaker.is_closed or self.breaker.failing > NEARLY_ALL

    def on_send(self, flight: Flight, *, now: float) -> None:
        """A call leaves, and is counted already."""
        if not self._sent:
            self._first_sent = now
        self._sent += 1
        flight.order = self._sent
        if now > self._wave.sent_at:
            self._end_wave(now)
            self._wave = Wave(now)
        flight.wave = self._wave
        self._wave.count += 1
        self._wave.height = len(self.flights)
        flight.refusals = self._refusals
        self.collapse.on_send(now=now, in_flight=len(self.flights))
        self.breaker.on_send(now=now, in_flight=len(self.flights))
        flight.was_allowed = self.pace.on_send(now=now)
        flight.area = self.limit.on_send(now=now, in_flight=len(self.flights))

    def on_reply(self, reply: Reply, flight: Flight, *, now: float) -> None:
        """Learn from a reply, which is no longer counted as under way."""
        self.on_answer(flight, now=now)
        self.collapse.on_reply(now=now, sent_at=flight.sent_at, height=flight.wave.height)
        self._note_latency(now - flight.sent_at)
        if flight.call.has_more_room:
            self._check_room(reply, flight)
        self._newest_answered = max(self._newest_answered, flight.sent_at)
        if reply.rate is not None:
            self._read_headers(reply.rate)
            self.limit.allowance = reply.rate.remaining_requests
            if reply.rate.remaining_requests == 0:
                self._obey_hint(self.sent_by(flight.sent_at), now=now)
            self._use_allowance(reply.rate.remaining_requests, flight)
        self.limit.on_success(
            now=now,
            sent_at=flight.sent_at,
            in_flight=len(self.flights) + 1,
            tokens=reply.usage.completion_tokens,
            area=flight.area,
        )

    def need_room(self) -> None:
        """A reply was cut off, or longer than its judge had asked for."""
        self.needs_room = True
        self._roomy = 0

    def _check_room(self, reply: Reply, flight: Flight) -> None:
        """Doubt that replies need more room, where none does for a while."""
        if not flight.call.has_more_room or not reply.usage.completion_tokens:
            return
        if reply.usage.completion_tokens * MORE_ROOM > flight.call.token_bound[1]:
            self.need_room()
        else:
            self._roomy += 1
            if self._roomy >= ROOMY:
                self.needs_room = False

    def on_answer(self, flight: Flight, *, now: float) -> None:
        """Learn from any answer but a refusal for load, be it no reply: the endpoint lets calls in."""
        self._newest_passed = max(self._newest_passed, flight.sent_at)
        if self.pace.rate is None:
            self.record.on_answer(now=now, sent_at=flight.sent_at)
        was_closed = self.breaker.state is BreakerState.CLOSED
        self.breaker.on_success(sent_at=flight.sent_at)
        if not was_closed and self.breaker.state is BreakerState.CLOSED:
            self._reopen(now)

    def on_refusal(
        self,
        flight: Flight,
        *,
        now: float,
        retry_after: float | None,
        rate: RateHeaders | None = None,
        is_quota: bool = False,
    ) -> None:
        """Learn from a call refused for load or rate: which of the two, or neither?"""
        if rate is not None:
            self._read_headers(rate)
        if self._first_refusal is None:
            self._first_refusal = flight.order - 1, flight.sent_at - self._first_sent
        self._refusals += 1
        self._newest_refused = max(self._newest_refused, flight.sent_at)
        was_closed = self.breaker.state is BreakerState.CLOSED
        self._end_wave(now)
        is_run = self._is_run(flight)
        is_paced = self.pace.rate is not None
        height = flight.wave.height
        edge = self.limit.edge
        is_at_edge = self.limit.refuses and height > max(edge.height.calls, edge.stood)
        is_weather = (
            was_closed
            and not is_paced
            and self.weather.on_refusal(load=height, is_run=is_run, is_at_edge=is_at_edge)
        )
        if self._on_bad(flight, now=now, retry_after=retry_after, is_refusal=True, is_quota=is_quota):
            may_be_rate = self.pace.rate is None and not self.breaks_when_full
            if may_be_rate and self.breaker.short_openings >= 2:
                guess = max(1.0 / max(now - flight.sent_at, 0.05), HALF * self.throughput)
                self.begin_pace(guess, now=now)
        elif is_weather or not was_closed:
            pass
        elif self.pace.rate is not None:
            self.pace.on_refusal(now=now, sent_at=flight.sent_at, was_allowed=flight.was_allowed)
        else:
            self._settle_burst(now)
            sure = self.sent_by(now - OUTLIVED * (now - flight.sent_at))
            self.limit.on_refusal(
                now=now,
                sent_at=flight.sent_at,
                accepted=flight.wave.height - (self._refusals - flight.refusals),
                sure=sure,
                in_doubt=len(self.flights) - sure,
                order=flight.order,
                since=self.breaker.streak_from,
            )
            left = self.limit.allowance if rate is None else rate.remaining_requests
            if left is not None and left <= (len(self.flights) if rate is None else 0):
                self._obey_hint(sure, now=now)
        self._look_for_rate(flight, now=now)

    def _look_for_rate(self, flight: Flight, *, now: float) -> None:
        """A call was refused: do the last calls and their fates speak for a rate?"""
        if self.pace.rate is not None or not self.breaker.is_closed:
            return
        if self.record.on_refusal(now=now, sent_at=flight.sent_at):
            rate = self.record.rate(now=now, under_way=(other.sent_at for other in self.flights.values()))
            if rate is not None:
                self.begin_pace(rate, now=now)

    def _obey_hint(self, sure: int, *, now: float) -> None:
        """Send at the rate that the headers tell, since they show no allowance left, unless it was wrong.

        So many calls under way are `sure` to have been let in.
        """
        if self.rate_hint is None or self.pace.rate is not None:
            return
        let_in = self.answered + sure
        self._is_hint_wrong |= let_in > FAR_MORE * (
            self._told_limit + self.rate_hint * (now - self._first_sent)
        )
        if not self._is_hint_wrong:
            self.begin_pace(self.rate_hint, now=now)

    def _read_headers(self, headers: RateHeaders) -> None:
        if (hint := rate_hint(headers)) is not None:
            self.rate_hint, self._told_limit = hint, headers.limit_requests or 0

    def _use_allowance(self, remaining: int | None, flight: Flight) -> None:
        """Let as many leave at once as the endpoint says it still takes, beside those that left since.

        No more than it has answered so far: what it says may be wrong.
        """
        if remaining is not None and self.pace.rate is not None and flight.sent_at > self._newest_refused:
            self.pace.allow(min(remaining - (self._sent - flight.order), self.answered))

    def _is_run(self, flight: Flight) -> bool:
        """Whether one that left right before this one, or right after it, was refused as well."""
        refused, order = self._refused, flight.order
        if len(refused) >= REMEMBERED:
            del refused[next(iter(refused))]
        refused[order] = flight.sent_at
        return any(abs(refused.get(near, NEVER) - flight.sent_at) < 0.005 for near in (order - 1, order + 1))

    def _end_wave(self, now: float) -> None:
        """Have the weather know of the calls that left together, under the load that they brought about."""
        count, self._wave.count = self._wave.count, 0
        if not count or self.breaker.state is not BreakerState.CLOSED or self.pace.rate is not None:
            return
        had_weather = self.weather.share
        self.weather.on_send(load=self._wave.height, count=count)
        if self.weather.share and not had_weather:
            self.limit.forgive(now=now)
            self.breaks_when_full = False

    def on_failure(
        self, flight: Flight, *, now: float, retry_after: float | None, is_unreachable: bool
    ) -> bool:
        """Learn from a call that broke; whether that is for the load.

        Where most calls break at once while others are answered, there may be too many of them, as where
        calls are refused, and the same is asked: does less load bring fewer?
        """
        if self.breaker.is_closed:
            under_way = len(self.flights) + 1
            self.collapse.on_failure(
                now=now, sent_at=flight.sent_at, in_flight=under_way, was_connected=not is_unreachable
            )
        is_quick = self._typical is not None and now - flight.sent_at < QUICK * self._typical
        if is_quick and self.breaker.is_closed and self.breaker.failing > FULL:
            self.breaks_when_full = True
        if is_quick and self.breaks_when_full:
            self.on_refusal(flight, now=now, retry_after=retry_after)
            return True
        self._refusals += 1
        self._on_bad(flight, now=now, retry_after=retry_after, is_unreachable=is_unreachable)
        return False

    def on_timeout(self, flight: Flight, *, now: float) -> bool:
        """Learn from a call that ran into a time limit, ours or a gateway's; whether that is for the load."""
        took = now - flight.sent_at
        if flight.sent_at < self._newest_answered and took > FAR_LATER * (self._typical or took):
            return False  # later calls have overtaken it, and took no time to speak of: it hung by itself
        if took < (self._slow or LEAST_LATE):
            return False  # others take as long, and are answered
        under_way = max(self.in_flight, flight.wave.height)
        is_overload = self.limit.on_timeout(now=now, sent_at=flight.sent_at, in_flight=under_way)
        if self.limit.rate is None:
            self.pace.end()
        return is_overload

    def _on_bad(
        self,
        flight: Flight,
        *,
        now: float,
        retry_after: float | None,
        is_refusal: bool = False,
        is_quota: bool = False,
        is_unreachable: bool = False,
    ) -> bool:
        self.breaker.least_wait = 0.0 if self.pace.rate is None else 1.0 / self.pace.rate
        bad = BadCall(flight.sent_at, flight.call.key, retry_after, is_refusal, is_quota, is_unreachable)
        is_shut = self.breaker.on_bad(
            bad,
            now=now,
            passed=self._passed(now, now - flight.sent_at),
            accepted=self.in_flight,
            rounds=2 if self.pace.rate is None else 4,
        )
        if is_shut:
            if is_refusal:
                self.weather.withdraw(self.breaker.streak)
            self.record.forget()
            early = self._refusals - self._refusals_before - self.breaker.streak
            self.collapse.on_shut(now=now, bad_time=now - flight.sent_at, early=early)
            self.limit.hold(since=self.breaker.streak_from)
        return is_shut

    def _passed(self, now: float, bad_time: float) -> float:
        """When the newest call left that is known to have been let in."""
        before = now - OUTLIVED * bad_time - MOMENT
        if self._newest_passed >= before:
            return self._newest_passed
        for flight in reversed(self.flights.values()):
            if flight.sent_at <= before:
                self._newest_passed = max(self._newest_passed, flight.sent_at)
                break
        return self._newest_passed

    def _reopen(self, now: float) -> None:
        self.pace.rest(now=now)
        self.collapse.on_open(now=now)
        self._refusals_before = self._refusals
        if now - self.breaker.shut_at > LONG_AWAY:
            self.weather.forget()  # there may be another capacity now, and what was little load be much
            self.breaks_when_full = False
        self.limit.resume(now=now, in_flight=self.in_flight, bad_time=self.breaker.bad_time)

    @property
    def _room_under_pace(self) -> float:
        """Calls at once that a rate can bring about: with more, the calls are queued, and it is no rate."""
        if self._calm is None or self.pace.rate is None:
            return NEVER
        return max(self._under_way_before, 3.0 * self.pace.rate * self._calm + 4.0)

    def begin_pace(self, rate: float, *, now: float, burst: int = 0) -> None:
        """Limit the rate from now on, after so many calls at once, and no longer the number of calls."""
        self._under_way_before = len(self.flights) + burst
        self.limit.turn_to_rate(rate)
        self.pace.refuse_time = max(self.pace.refuse_time, self.limit.edge.refuse_time)
        self.pace.begin(now=now, rate=rate, burst=burst)
        self.weather.forget()
        self.record.forget()

    def _end_pace(self, now: float) -> None:
        """Limit the number of calls again, since it is not their rate that is limited."""
        self._is_hint_wrong = True
        self.pace.end()
        self.weather.forget()
        self.limit.turn_from_rate(now=now, in_flight=len(self.flights))

    @property
    def burst(self) -> int:
        """Calls that the endpoint takes at once before it limits the rate, as far as was seen."""
        if self._first_refusal is None or self.pace.rate is None:
            return 0
        let_in, seconds = self._first_refusal
        return max(0, int(let_in - self.pace.rate * seconds))

    @property
    def throughput(self) -> float:
        """Calls a second that were answered so far, but for the burst."""
        seconds = self._newest_answered - self._first_sent
        return (self.answered - self.burst) / seconds if seconds > 1.0 else 0.0

    def grow(self, *, now: float) -> float:
        """Grow the limit if it is time to, because calls wait for it; the answer is when to ask again."""
        accepted = self.sent_by(now - 1.25 * self.limit.edge.refuse_time)
        self._settle_burst(now)
        times = self.limit.restored
        again = self.limit.grow(now=now, accepted=accepted)
        if self.limit.restored > times:
            self.weather.on_no_edge()
        if self.limit.rate is not None and self.pace.rate is None:
            self.begin_pace(max(self.limit.rate, self._least_pace), now=now)
        return again

    @property
    def _least_pace(self) -> float:
        """Calls a second below which no rate is guessed: so many are let in one after another."""
        return max(LEAST * self.throughput, 1.0 / self._typical if self._typical else 0.0)

    def _note_latency(self, seconds: float) -> None:
        """Remember how long a call took."""
        self.latencies.add(seconds)
        self._typical = seconds if self._typical is None else self._typical + (seconds - self._typical) / 32.0
        count = self.latencies.size
        if count % 16 == 0 or count in (1, 2, 4, 8, MIN_CALLS):
            self._slow = self.latencies.quantile(0.9)
            if self._calm is None or count <= MIN_CALLS or (self._slow or 0.0) < self._calm:
                self._calm = self._slow
            self.hung_age = hung_age(self.latencies, under_way=len(self.flights))

    def ready_at(self, call: Call, *, now: float, hung: int = 0) -> float:
        """The earliest time at which this lane may take the call; infinity: only a reply can tell.

        So many calls as are `hung` hold no place but under a ceiling: what was learned of the room is of
        calls that come back.
        """
        if not self.breaker.is_closed:
            ready = self.breaker.ready_at(now=now)
            if not self.breaker.is_closed:
                return max(ready, self.quota_ready_at(call, now))
            self._reopen(now)
        under_way = len(self.flights)
        if under_way >= min(min(self.limit.limit, self.collapse.bound) + hung, self.ceiling):
            return NEVER
        if self.pace.rate is None:
            return now if self.quota is None else self.quota_ready_at(call, now)
        if under_way >= self._room_under_pace + hung:
            return NEVER
        ready = self.pace.ready_at(now=now)
        if self.pace.is_none or self.pace.is_refuted:
            self._end_pace(now)
            return self.ready_at(call, now=now, hung=hung)
        return max(ready, self.quota_ready_at(call, now))

    def quota_ready_at(self, call: Call, now: float) -> float:
        """When the user's requests and tokens a minute let the call leave."""
        return now if self.quota is None else self.quota.ready_at(now=now, tokens=sum(call.token_bound))

    def cost_bound(self, call: Call) -> float:
        """What the call may cost here at the most, in dollars; 0.0 without a price."""
        price = self.endpoint.price
        if price is None:
            return 0.0
        prompt, completion = call.token_bound
        dearest = Price(max(price.prompt, price.cached_prompt or 0.0), price.completion)
        return dearest.cost(prompt_tokens=prompt, completion_tokens=completion)

    def cost(self, usage: Usage) -> float | None:
        """What a reply cost: as the endpoint said, else by its price; None where neither is known."""
        if usage.cost is not None or self.endpoint.price is None:
            return usage.cost
        return self.endpoint.price.cost(
            prompt_tokens=usage.prompt_tokens,
            completion_tokens=usage.completion_tokens,
            cached_tokens=usage.cached_tokens,
        )

    def _settle_burst(self, now: float) -> None:
        """Once the fate of all calls that left before the last cut is known: see which were let in."""
        edge = self.limit.edge
        if not edge.is_in_doubt or now < edge.known_at:
            return
        beside = later = 0
        for flight in reversed(self.flights.values()):
            if flight.sent_at < edge.first_refused:
                break
            beside += flight.sent_at == edge.first_refused
            later += edge.first_refused < flight.sent_at <= edge.cut_at
        self.limit.settle_burst(now=now, beside=beside, later=later)

    def sent_by(self, when: float) -> int:
        """Calls under way that left no later than `when`."""
        newer = 0
        for flight in reversed(self.flights.values()):
            if flight.sent_at <= when:
                break
            newer += 1
        return len(self.flights) - newer
