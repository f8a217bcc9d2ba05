"""A simulated judge server as a state machine: given the requests and the time, what happens.

Pure: no clock, no I/O, no chance but the scenario's seed. A shell submits requests as they come, asks when
the next reply is due, and has it delivered then. Being asked late changes nothing: what happened in between
is worked out at the moments at which it happened.
"""

from __future__ import annotations

import math
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from heapq import heappop, heappush
from typing import Any

from plaudit.simulator.answer import answer
from plaudit.simulator.ask import Ask, Outcome
from plaudit.simulator.capacity import LevelWalk, limit_for
from plaudit.simulator.chance import fault_of, lateness, output_tokens
from plaudit.simulator.scenario import Fault, Knee, Scenario
from plaudit.simulator.sharing import Sharing
from plaudit.types import RateHeaders


@dataclass(slots=True)
class Stats:
    """What a server has seen since the start, or since the last reset."""

    requests: int = 0
    answered: int = 0
    """Replies with status 200, spoiled ones included."""
    rejects: Counter[int] = field(default_factory=Counter)
    """Replies with an error, by status."""
    over_capacity: int = 0
    """Those of them that came on top of what the capacity allows; the others are faults."""
    faults: Counter[str] = field(default_factory=Counter)
    withdrawn: int = 0
    """Requests whose client left before the reply."""
    in_flight: int = 0
    """Requests that came and have not been answered: in service, waiting, or on the wire."""
    peak_in_flight: int = 0
    peak_running: int = 0
    """Most requests in service at once; the scenario's capacity bounds it where it has one."""
    unique: int = 0
    """Different questions seen."""
    duplicates: int = 0
    """Requests accepted though the same question had been before: retries, hedges, money spent twice."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    arrivals: Counter[int] = field(default_factory=Counter)
    """Requests by whole second since the first."""
    _seen: set[bytes] = field(default_factory=set)

    def arrived(self, ask: Ask, *, second: int) -> None:
        self.requests += 1
        self.in_flight += 1
        self.peak_in_flight = max(self.peak_in_flight, self.in_flight)
        self.arrivals[second] += 1
        if ask.key not in self._seen:
            self._seen.add(ask.key)
            self.unique += 1

    def reset(self) -> Stats:
        """Fresh counts for a server that is still at work."""
        return Stats(in_flight=self.in_flight, peak_in_flight=self.in_flight)

    def as_dict(self) -> dict[str, Any]:
        """For JSON: plain names, plain numbers."""
        counts = {item.name: getattr(self, item.name) for item in fields(self) if item.name != "_seen"}
        by_key = {
            name: {str(key): count for key, count in sorted(value.items())}
            for name, value in counts.items()
            if isinstance(value, Counter)
        }
        return {**counts, "rejected": self.rejects.total(), **by_key}


@dataclass(slots=True, eq=False)
class Job:
    """One request on its way through the server."""

    ask: Ask
    deliver: Callable[[Outcome], None]
    tokens: int = 0
    work: float = 0.0
    fault: str = ""
    rate: RateHeaders | None = None
    has_left: bool = False
    """Answered, or withdrawn by its client."""


class SimulatedServer:
    """One server. `submit` and `withdraw` say what clients do, `deliver_due` what they get."""

    def __init__(self, scenario: Scenario) -> None:
        self.stats = Stats()
        self._now = -math.inf
        self._running: Sharing[Job] = Sharing(self._speed)
        self._waiting: OrderedDict[Job, None] = OrderedDict()
        self._wire: list[tuple[float, int, Job, Outcome]] = []
        self._sent = 0
        self._follow(scenario)

    def become(self, scenario: Scenario, *, now: float) -> None:
        """Follow another scenario from now on, its time zero being the next request.

        What is in service stays in service, and takes as long as it would have taken.
        """
        self._catch_up(now)
        self._follow(scenario)
        self._start_waiting()

    def _follow(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self._origin: float | None = None
        self._level = LevelWalk(scenario)
        self._limit = limit_for(scenario.capacity, self._level.now)
        self._arrivals = 0
        self._attempts: Counter[bytes] = Counter()
        self._arrived: Counter[bytes] = Counter()

    def submit(
        self, ask: Ask, *, now: float, deliver: Callable[[Outcome], None], api_key: str | None = None
    ) -> Job:
        """A request arrives. `deliver` is called, by `deliver_due`, when its outcome reaches the client."""
        if self._origin is None:
            self._origin = max(now, self._now)
        now = self._catch_up(now)
        at = now - self._origin
        job = Job(ask, deliver)
        self.stats.arrived(ask, second=int(at))
        settled = self._admit(job, at=at, api_key=api_key)
        if settled is not None:
            self._send(job, settled, now)
        else:
            self._waiting[job] = None
            self._start_waiting()
        return job

    def lateness(self, ask: Ask) -> float:
        """Seconds that a request is on its way before it arrives."""
        return lateness(self.scenario, ask, arrival=self._arrived[ask.key])

    def withdraw(self, job: Job, *, now: float) -> None:
        """The client has left: its slot is free, and its reply goes nowhere."""
        self._catch_up(now)
        if job.has_left:
            return
        job.has_left = True
        self.stats.withdrawn += 1
        self.stats.in_flight -= 1
        if not self._running.drop(job):
            self._waiting.pop(job, None)
        self._start_waiting()

    def next_due(self) -> float | None:
        """When to call `deliver_due` next, if nothing is submitted or withdrawn before; None for never."""
        due = self._running.next_end() + self.scenario.latency.round_trip
        if self._wire:
            due = min(due, self._wire[0][0])
        if self._running or self._waiting:
            due = min(due, self._next_change())
        return None if math.isinf(due) else due

    def deliver_due(self, now: float) -> None:
        """Hand every outcome that has reached its client by now to the callback it was submitted with."""
        now = self._catch_up(now)
        while self._wire and self._wire[0][0] <= now:
            _, _, job, outcome = heappop(self._wire)
            if job.has_left:
                continue
            job.has_left = True
            self.stats.in_flight -= 1
            job.deliver(outcome)

    def _admit(self, job: Job, *, at: float, api_key: str | None) -> Outcome | None:
        """Give a job its work and its fault, and None; or say what it gets without any service.

        A request that is rate limited does not count as an attempt: what a question gets once it is let in
        does not depend on how often it came. Faults before that are drawn anew every time.
        """
        scenario, ask = self.scenario, job.ask
        arrival, self._arrivals = self._arrivals, self._arrivals + 1
        job.tokens = output_tokens(scenario, ask)
        job.work = scenario.latency.work(job.tokens)
        self._arrived[ask.key] += 1
        fault = fault_of(
            scenario, ask, attempt=self._arrived[ask.key], at=at, arrival=arrival, comes_first=True
        )
        if fault is not None:
            return self._apply(job, fault)
        refusal = _refusal(scenario, ask, api_key)
        if refusal is not None:
            return refusal
        refusal = self._limit.admit(
            at,
            tokens=job.tokens + ask.prompt_tokens,
            running=len(self._running),
            waiting=len(self._waiting),
            free_in=self._running.next_end() - self._now,
        )
        if refusal is not None:
            self.stats.over_capacity += 1
            return refusal
        attempt = self._attempts[ask.key] = self._attempts[ask.key] + 1
        self.stats.duplicates += attempt > 1
        job.rate = self._limit.headers()
        fault = fault_of(scenario, ask, attempt=attempt, at=at, arrival=arrival, comes_first=False)
        return None if fault is None else self._apply(job, fault)

    def _apply(self, job: Job, fault: Fault) -> Outcome | None:
        """Apply a fault to a job: its outcome, where that is settled without any service."""
        self.stats.faults[fault.kind] += 1
        job.fault = fault.kind
        match fault.kind:
            case "error":
                message = f"simulated fault: status {fault.status}"
                return Outcome(fault.status, message=message, retry_after=fault.retry_after)
            case "down" | "reset":
                return Outcome(0, fault=fault.kind)
            case "slow":
                job.work *= fault.factor
            case "hang":
                job.work = math.inf
        return None

    def _catch_up(self, now: float) -> float:
        """Work out everything up to now, in the order in which it happened."""
        now = max(now, self._now)
        while True:
            end, change = self._running.next_end(), self._next_change()
            at = min(end, change)
            if at > now:
                break
            self._running.move(at)
            if change <= end:  # first, or an end would start one too many
                self._limit.change(self._level.step())
            else:
                self._complete(self._running.finish(), at)
            self._start_waiting()
        self._running.move(now)
        self._now = now
        return now

    def _next_change(self) -> float:
        return math.inf if self._origin is None else self._origin + self._level.change_at

    def _start_waiting(self) -> None:
        while self._waiting and len(self._running) < self._limit.slots:
            job, _ = self._waiting.popitem(last=False)
            self._running.start(job, work=job.work)
        self.stats.peak_running = max(self.stats.peak_running, len(self._running))

    def _speed(self, running: int) -> float:
        capacity = self.scenario.capacity
        level = self._level.now
        total = running + level.load
        if not isinstance(capacity, Knee) or total <= level.capacity:
            return 1.0
        return float((level.capacity / total) ** (1.0 + capacity.exponent))

    def _complete(self, job: Job, at: float) -> None:
        reply = answer(self.scenario, job.ask, tokens=job.tokens, fault=job.fault, rate=job.rate)
        self.stats.prompt_tokens += reply.usage.prompt_tokens
        self.stats.completion_tokens += reply.usage.completion_tokens
        self._send(job, Outcome(reply=reply, fault=job.fault, rate=job.rate), at)

    def _send(self, job: Job, outcome: Outcome, at: float) -> None:
        if outcome.status == 200:
            self.stats.answered += 1
        elif outcome.status:
            self.stats.rejects[outcome.status] += 1
        self._sent += 1
        heappush(self._wire, (at + self.scenario.latency.round_trip, self._sent, job, outcome))


def _refusal(scenario: Scenario, ask: Ask, api_key: str | None) -> Outcome | None:
    """Why this request would be refused whenever it came."""
    if scenario.api_key is not None and api_key != scenario.api_key:
        return Outcome(401, message="the API key is missing or wrong")
    if ask.model == "missing":
        return Outcome(404, message=f"the model {ask.model!r} does not exist")
    if scenario.max_context is not None and ask.prompt_tokens > scenario.max_context:
        limit = f"{ask.prompt_tokens} tokens exceed the context length of {scenario.max_context}"
        return Outcome(400, message=limit, code="context_length_exceeded")
    return None
