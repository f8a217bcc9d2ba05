"""A dispatcher on a bench, under virtual time: calls in, outcomes, events and times out."""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from plaudit.config import Endpoint, EngineConfig
from plaudit.events import Event
from plaudit.policy.breaker import BreakerConfig
from plaudit.policy.limit import LimitConfig
from plaudit.policy.retry import RetryPolicy
from plaudit.scheduling.call import Call, Outcome
from plaudit.scheduling.dispatcher import Dispatcher
from plaudit.scheduling.lane import Lane
from plaudit.transports.base import Transport
from plaudit.types import ChatRequest, Reply, Request, Usage

E = TypeVar("E")

GOOD = Reply("7", usage=Usage(prompt_tokens=10, completion_tokens=5))
NEVER = 1e9
"""Seconds: a reply that takes so long never comes."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One request as a fake server sees it."""

    text: str
    nth: int
    """How often this question has been asked, this time included."""
    at: float
    arrival: int
    """How many requests came before it."""
    max_tokens: int = 0


Answer = Reply | Exception
Behaviour = Callable[[Asked], Answer | tuple[float, Answer]]
"""What to answer, and after how many seconds where that is not the usual latency."""


class Gauge:
    """Counts what is under way, over one server or several, at every instant."""

    def __init__(self) -> None:
        self.now = 0
        self.peak = 0

    def up(self) -> None:
        self.now += 1
        self.peak = max(self.peak, self.now)

    def down(self) -> None:
        self.now -= 1


class FakeServer:
    """A transport that behaves as told, and remembers what was asked of it."""

    def __init__(
        self, behave: Behaviour | Answer = GOOD, *, latency: float = 1.0, gauge: Gauge | None = None
    ) -> None:
        self.behave: Behaviour = behave if callable(behave) else lambda _: behave
        self.latency = latency
        self.gauge = gauge or Gauge()
        self.asked: list[Asked] = []
        self.cancelled = 0
        self.closes = 0
        self._counts: Counter[str] = Counter()

    @property
    def sent_at(self) -> list[float]:
        return [asked.at for asked in self.asked]

    def texts(self) -> list[str]:
        return [asked.text for asked in self.asked]

    async def send(self, request: Request) -> Reply:
        assert isinstance(request, ChatRequest)
        text = request.messages[-1]["content"]
        self._counts[text] += 1
        now = asyncio.get_running_loop().time()
        asked = Asked(text, self._counts[text], now, len(self.asked), request.max_tokens)
        self.asked.append(asked)
        answer = self.behave(asked)
        latency, answer = answer if isinstance(answer, tuple) else (self.latency, answer)
        self.gauge.up()
        try:
            await asyncio.sleep(latency)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.gauge.down()
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def close(self) -> None:
        self.closes += 1


def question(text: str, *, max_tokens: int = 512) -> ChatRequest:
    return ChatRequest(({"role": "user", "content": text},), max_tokens=max_tokens)


class Bench:
    """A dispatcher over some transports. `ask` hands questions in; `async with` closes it and checks it."""

    def __init__(
        self,
        *transports: Transport,
        config: EngineConfig | None = None,
        retry: RetryPolicy | None = None,
        endpoints: Sequence[Endpoint] = (),
        breaker: BreakerConfig | None = None,
        start: LimitConfig | None = None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self.events: list[Event] = []
        self.calls: dict[str, Call] = {}
        self.outcomes: dict[str, list[Outcome]] = {}
        self.ended_at: dict[str, float] = {}
        ceiling = config.max_concurrent if config is not None else None
        self.lanes = [
            Lane(
                endpoints[n] if endpoints else Endpoint(f"http://server{n}/v1", model="m"),
                transport,
                breaker=breaker,
                start=start,
                ceiling=ceiling,
            )
            for n, transport in enumerate(transports)
        ]
        self.dispatcher = Dispatcher(self.lanes, config, retry=retry, emit=self.events.append)
        self._progress = asyncio.Event()
        self.strangers: set[asyncio.Task[None] | None] = set()
        """Tasks on the same loop that are not the dispatcher's."""

    async def __aenter__(self) -> Bench:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.dispatcher.close()
        assert not any(lane.flights for lane in self.lanes), "a flight was left behind"
        assert dict.fromkeys(self.calls, 1) == {text: len(got) for text, got in self.outcomes.items()}
        assert asyncio.all_tasks() - self.strangers == {asyncio.current_task()}, "a task was left behind"

    def ask(self, *texts: str, max_tokens: int = 512, job: str = "") -> None:
        """Enqueue one call for each question."""
        calls = []
        for text in texts:
            key = hashlib.sha256(text.encode()).digest()
            self.calls[text] = Call(
                question(text, max_tokens=max_tokens), key=key, on_done=self._on_done, job=job
            )
            calls.append(self.calls[text])
        self.dispatcher.enqueue(calls)

    async def answers(self) -> dict[str, Outcome]:
        """Wait for the outcomes of all that was asked so far."""
        asked = list(self.calls)
        while any(text not in self.outcomes for text in asked):
            self._progress.clear()
            await self._progress.wait()
        return {text: self.outcomes[text][0] for text in asked}

    async def ask_all(self, *texts: str) -> dict[str, Outcome]:
        self.ask(*texts)
        return await self.answers()

    def seen(self, kind: type[E]) -> list[E]:
        """The events of one kind, in order."""
        return [event for event in self.events if isinstance(event, kind)]

    def _on_done(self, call: Call, outcome: Outcome) -> None:
        assert isinstance(call.request, ChatRequest)
        text = call.request.messages[-1]["content"]
        self.outcomes.setdefault(text, []).append(outcome)
        self.ended_at[text] = self._loop.time()
        self._progress.set()


def numbered(count: int, *, name: str = "q") -> list[str]:
    return [f"{name}{n}" for n in range(count)]


def good(outcomes: dict[str, Outcome]) -> int:
    """How many got a reply."""
    return sum(isinstance(outcome, Reply) for outcome in outcomes.values())
