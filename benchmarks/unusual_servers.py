"""Servers unlike those of plaudit's own simulator: how they share their speed, and whom they refuse.

Each is made of its number alone: the same number, the same server. They are transports, and live in the time
of the loop that they are used on.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections import deque

from plaudit import ChatRequest
from plaudit.errors import RateLimited, TransientError, TransportFailed, Unreachable
from plaudit.simulator.sharing import Sharing
from plaudit.types import Reply, Request, Usage

MEAN_TOKENS = 200
TEXT = '{"reason": "ok", "score": 5}'
LONGEST = 30.0
"""Seconds of work for a reply at the most: longer ones would only run into time limits everywhere."""


def now() -> float:
    """The time of the loop."""
    return asyncio.get_running_loop().time()


def between(draw: random.Random, low: float, high: float) -> float:
    """A number between two others, as likely to be among the small as among the large."""
    return low * math.pow(high / low, draw.random())


def too_many(retry_after: float | None = None) -> RateLimited:
    """A 429."""
    return RateLimited("429: too many requests", retry_after=retry_after)


def no_room() -> RateLimited:
    """A 503."""
    return RateLimited("503: try again later", is_quota=False)


class Server:
    """What they have in common: calls in service, a queue, replies of random length, a way there and back."""

    family = ""
    """What servers of this class are like."""
    about = ""
    """What this one was drawn to be."""

    def __init__(self, number: int) -> None:
        self.draw = draw = random.Random(f"server {number}")
        self.mean = between(draw, 0.1, 8.0)
        self.sigma = draw.random()
        self.round_trip = min(between(draw, 0.001, 0.2), self.mean / 2)
        self.shape = draw.choice(("lognormal", "lognormal", "lognormal", "bimodal", "pareto", "constant"))
        self.slots = round(between(draw, 8, 800))
        self.rate = min(max(self.slots / self.mean, 2.0), 2000.0)
        self.most_at_once = math.inf
        """How many are served at once; the others wait in the order they came in."""
        self.slowness = 1.0
        self.most_tokens: float = MEAN_TOKENS * LONGEST / self.mean
        self.requests = 0
        self.refused = 0
        """Requests that ended with an error of the server's."""
        self._number = number
        self._way = random.Random(f"way {number}")
        self._sharing: Sharing[asyncio.Future[None]] = Sharing(self.speed)
        self.served: dict[asyncio.Future[None], None] = {}
        self.waiting: dict[asyncio.Future[None], float] = {}
        """Seconds of work, in the order of arrival."""
        self._timer: asyncio.TimerHandle | None = None

    def speed(self, at_once: int) -> float:
        """How fast each of so many calls at once advances; 1.0 is full speed."""
        return 1.0

    def work_from_now(self, work: float) -> float:
        """Seconds of work for a call that starts at this moment."""
        return work * self.slowness

    async def admit(self, tokens: int) -> None:
        """Let a request in, at once or later, or raise."""

    async def serve(self, work: float) -> None:
        """Do the work of a request that was let in; cancelled, it leaves."""
        done = asyncio.get_running_loop().create_future()
        self._enter(done, work)
        try:
            await done
        except asyncio.CancelledError:
            self._leave(done)
            raise

    async def send(self, request: Request) -> Reply:
        self.requests += 1
        await asyncio.sleep(self.round_trip / 2 * (1 + 0.2 * self._way.expovariate(1.0)))
        tokens = self._tokens_of(request)
        try:
            await self.admit(tokens)
            await self.serve(self.mean * tokens / MEAN_TOKENS)
        except TransientError:
            self.refused += 1
            await asyncio.sleep(self.round_trip / 2)
            raise
        await asyncio.sleep(self.round_trip / 2)
        return Reply(TEXT, usage=Usage(100, tokens))

    async def close(self) -> None:
        pass

    def _tokens_of(self, request: Request) -> int:
        """How long the reply is: the same whenever the same is asked."""
        assert isinstance(request, ChatRequest)
        draw = random.Random(f"{self._number} {request.messages!r}")
        length = 1.0
        if self.shape == "lognormal":
            length = math.exp(self.sigma * draw.gauss(0.0, 1.0) - self.sigma**2 / 2)
        elif self.shape == "bimodal":
            length = 0.2 if draw.random() < 0.7 else 2.87
        elif self.shape == "pareto":
            length = 0.4 * draw.paretovariate(1.6)
        return max(1, round(min(MEAN_TOKENS * length, self.most_tokens)))

    def _enter(self, done: asyncio.Future[None], work: float) -> None:
        self.waiting[done] = work
        self.fill()

    def _leave(self, done: asyncio.Future[None]) -> None:
        self.waiting.pop(done, None)
        if done in self.served:
            self._sharing.move(now())
            self.take_out(done)
        self.fill()

    def take_out(self, done: asyncio.Future[None]) -> None:
        """End the service of a call without a reply."""
        del self.served[done]
        self._sharing.drop(done)

    def fill(self) -> None:
        """Serve those who wait as far as there is room, and look again when the next call ends."""
        self._sharing.move(now())
        while self.waiting and len(self.served) < self.most_at_once:
            done = next(iter(self.waiting))
            work = self.waiting.pop(done)
            self.served[done] = None
            self._sharing.start(done, work=self.work_from_now(work))
        if self._timer is not None:
            self._timer.cancel()
        end = self._sharing.next_end()
        self._timer = asyncio.get_running_loop().call_at(end, self._end) if end < math.inf else None

    def _end(self) -> None:
        self._sharing.move(now())
        while self._sharing.next_end() <= now() + 1e-9:
            done = self._sharing.finish()
            del self.served[done]
            if not done.done():
                done.set_result(None)
        self.fill()


class Batching(Server):
    """Continuous batching: each call takes longer from the second one at once on."""

    family = "batches"

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.about = f"half as fast with {self.slots} at once"

    def speed(self, at_once: int) -> float:
        return 1.0 / (1.0 + at_once / self.slots)


class Cliff(Batching):
    """The same, and past some number of calls its memory is full."""

    family = "batches, with a cliff"

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.cliff = round(self.slots * between(self.draw, 1.0, 10.0))
        self.about += f", cliff at {self.cliff}"

    def speed(self, at_once: int) -> float:
        return super().speed(at_once) * min(1.0, math.pow(self.cliff / at_once, 1.5))


class Drift(Server):
    """Slots whose speed goes up and down with time, as a neighbour's load does."""

    family = "speed that drifts"

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.period = between(self.draw, 5.0, 60.0)
        self.depth = between(self.draw, 1.0, 5.0)
        self.refuses = self.draw.random() < 0.5
        self.most_at_once = self.slots
        end = "429" if self.refuses else "a queue"
        self.about = f"{self.slots} slots, {1 + self.depth:.1f} x slower every {self.period:.0f} s, {end}"

    def work_from_now(self, work: float) -> float:
        return work * (1 + self.depth * (0.5 - 0.5 * math.cos(2 * math.pi * now() / self.period)))

    async def admit(self, tokens: int) -> None:
        if self.refuses and len(self.served) >= self.slots:
            raise too_many()


class Pauses(Server):
    """Slots and a queue; every so often nothing advances, while weights are swapped, say."""

    family = "pauses"

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.every = between(self.draw, 2.0, 20.0)
        self.pause = self.every * self.draw.uniform(0.05, 0.4)
        self.most_at_once = self.slots
        self.about = f"{self.slots} slots, pauses for {self.pause:.1f} s every {self.every:.1f} s"

    def work_from_now(self, work: float) -> float:
        active = self.every - self.pause
        periods, phase = divmod(now(), self.every)  # a period begins with its pause
        done = periods * active + max(0.0, phase - self.pause)
        periods, rest = divmod(done + work, active)
        return periods * self.every + self.pause + rest - now()


class Balancer(Server):
    """Backends of different speed, each with slots and a queue, in turn whatever their load is."""

    family = "unequal backends"

    def __init__(self, number: int) -> None:
        super().__init__(number)
        count = self.draw.choice((2, 3, 4))
        slots = max(2, self.slots // count)
        slowness = [between(self.draw, 1.0, 5.0) for _ in range(count)]
        self.backends = deque(Server(number) for _ in slowness)
        for backend, slower_by in zip(self.backends, slowness, strict=True):
            backend.slowness = slower_by
            backend.most_at_once = slots
        self.about = f"{count} of {slots} slots, slower by {', '.join(f'{one:.1f}' for one in slowness)}"

    async def serve(self, work: float) -> None:
        self.backends.rotate()
        await self.backends[0].serve(work)


class BoundedQueue(Server):
    """Slots and a queue; what does not fit is refused."""

    family = "bounded queue"

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.queue = round(self.slots * between(self.draw, 0.05, 5.0))
        self.most_at_once = self.slots
        self.about = f"{self.slots} slots, a queue of {self.queue}, then 429"

    async def admit(self, tokens: int) -> None:
        if len(self.served) >= self.slots and len(self.waiting) >= self.queue:
            raise too_many()


class ImpatientQueue(Server):
    """Slots and a queue that refuses whoever has waited for some time."""

    family = "queue gives up with 429"

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.patience = between(self.draw, 0.5, 30.0)
        self.most_at_once = self.slots
        self.about = f"{self.slots} slots, 429 after {self.patience:.1f} s in the queue"

    def _enter(self, done: asyncio.Future[None], work: float) -> None:
        super()._enter(done, work)
        if done in self.waiting:
            asyncio.get_running_loop().call_later(self.patience, self._give_up, done)

    def _give_up(self, done: asyncio.Future[None]) -> None:
        if self.waiting.pop(done, None) is not None and not done.done():
            done.set_exception(too_many())


class Gateway(Server):
    """Slots and a queue behind a gateway that gives up on a call, on which the server goes on to work."""

    family = "gateway gives up with 504"

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.patience = self.mean * between(self.draw, 3.0, 20.0)
        self.most_at_once = self.slots
        self.most_tokens = MEAN_TOKENS * self.patience / self.mean / 2  # or a long reply could never pass
        self.about = f"{self.slots} slots, 504 after {self.patience:.1f} s, works on"

    async def serve(self, work: float) -> None:
        behind = asyncio.ensure_future(super().serve(work))
        try:
            await asyncio.wait_for(asyncio.shield(behind), self.patience)
        except TimeoutError:
            raise TransportFailed("504: gateway timeout").with_facts(http_status=504) from None


class SlowRefusal(Server):
    """Slots; past them a refusal, which takes its time."""

    family = "slow refusals"

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.after = between(self.draw, 0.2, 10.0)
        self.about = f"{self.slots} slots, 429 after {self.after:.1f} s"

    async def admit(self, tokens: int) -> None:
        if len(self.served) >= self.slots:
            await asyncio.sleep(self.after)
            raise too_many()


class Breaks(Server):
    """Slots; what is too much is reset or answered with 500, never with 429."""

    family = "resets or 500 past its slots"

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.error = self.draw.choice((TransportFailed, Unreachable))
        self.after = self.draw.choice((0.0, 0.0, 0.5))
        kind = "no connection" if self.error is Unreachable else "500"
        self.about = f"{self.slots} slots, else {kind} after {self.after:g} s"

    async def admit(self, tokens: int) -> None:
        if len(self.served) >= self.slots:
            await asyncio.sleep(self.after)
            raise self.error("too much")


class Crash(Server):
    """Dies of too many calls, with all that it has, and is back after a while."""

    family = "crashes past its slots"

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.down = between(self.draw, 1.0, 20.0)
        self.up_at = 0.0
        self.about = f"crashes past {self.slots} at once, for {self.down:.0f} s"

    async def admit(self, tokens: int) -> None:
        if now() < self.up_at:
            raise Unreachable("connection refused")
        if len(self.served) >= self.slots:
            self._crash()
            raise TransportFailed("connection reset")

    def _crash(self) -> None:
        self.up_at = now() + self.down
        for done in list(self.served):
            self.take_out(done)
            if not done.done():
                done.set_exception(TransportFailed("connection reset"))
        self.fill()


class Autoscaled(Server):
    """Few slots at first, twice as many every so often from the first request on."""

    family = "autoscaling"

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.every = between(self.draw, 1.0, 20.0)
        self.refuses = self.draw.random() < 0.5
        self.most_at_once = first = max(2, self.slots // 16)
        end = "429" if self.refuses else "a queue"
        self.about = f"{first} slots, twice as many every {self.every:.1f} s up to {self.slots}, {end}"

    async def admit(self, tokens: int) -> None:
        if self.requests == 1:
            asyncio.get_running_loop().call_later(self.every, self._grow)
        if self.refuses and len(self.served) >= self.most_at_once:
            raise too_many()

    def _grow(self) -> None:
        self.most_at_once = min(self.slots, 2 * self.most_at_once)
        self.fill()
        if self.most_at_once < self.slots:
            asyncio.get_running_loop().call_later(self.every, self._grow)


class Loading(Server):
    """Slots and a queue, once the model is loaded, which begins with the first request."""

    family = "loads at the start"

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.load = between(self.draw, 2.0, 60.0)
        self.how = self.draw.choice(("a queue", "503", "500", "502 after 1 s"))
        self.ready_at: float | None = None
        self.most_at_once = self.slots
        self.about = f"{self.slots} slots after {self.load:.0f} s of {self.how}"

    async def admit(self, tokens: int) -> None:
        if self.ready_at is None:
            self.ready_at = now() + self.load
        if now() >= self.ready_at:
            return
        match self.how:
            case "a queue":
                await asyncio.sleep(self.ready_at - now())
            case "503":
                raise no_room()
            case "500":
                raise TransportFailed("500: loading")
            case _:
                await asyncio.sleep(1.0)
                raise TransportFailed("502: bad gateway")


class Bucket:
    """An allowance that fills up with time."""

    def __init__(self, *, per_second: float, most: float) -> None:
        self._rate, self._most = per_second, most
        self._level, self._at = most, 0.0

    def wait_for(self, amount: float) -> float:
        """Take so much and return 0, or take nothing and return the seconds until there is as much."""
        self._level = min(self._most, self._level + (now() - self._at) * self._rate)
        self._at = now()
        if self._level < amount:
            return (amount - self._level) / self._rate
        self._level -= amount
        return 0.0


class Paced(Server):
    """As nginx's limit_req: passes requests on at a rate, holds back a burst of them and refuses others."""

    family = "limit_req"

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.burst = round(between(self.draw, 1, 500))
        self.next_at = 0.0
        self.about = f"{self.rate:.0f} a second, holds back {self.burst}, then 503"

    async def admit(self, tokens: int) -> None:
        self.next_at = max(self.next_at, now())
        wait = self.next_at - now()
        if wait * self.rate > self.burst:
            raise no_room()
        self.next_at += 1 / self.rate
        await asyncio.sleep(wait)


class Window(Server):
    """So many in any stretch of so many seconds; requests that are refused may count as well."""

    family = "sliding window"

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.window = self.draw.choice((1, 10, 60))
        self.most = max(1, round(min(self.rate * self.window, 1024 / self.draw.uniform(1.0, 5.0))))
        self.counts_refused = self.draw.random() < 0.4
        self.says = self.draw.choice(("nothing", "when", "when, in whole seconds", "1 s"))
        self.counted: deque[float] = deque()
        counts = "counts what it refuses, " if self.counts_refused else ""
        self.about = f"{self.most} in {self.window} s, {counts}Retry-After: {self.says}"

    async def admit(self, tokens: int) -> None:
        while self.counted and self.counted[0] <= now() - self.window:
            self.counted.popleft()
        if len(self.counted) < self.most:
            self.counted.append(now())
            return
        wait = self.counted[0] + self.window - now()
        if self.counts_refused:
            self.counted.append(now())
        waits = {"nothing": None, "when": wait, "when, in whole seconds": float(math.ceil(wait)), "1 s": 1.0}
        raise too_many(waits[self.says])


class CapacityAndRate(Server):
    """So many at once, and so many a second."""

    family = "capacity and rate"

    def __init__(self, number: int) -> None:
        super().__init__(number)
        rate = self.rate * between(self.draw, 0.3, 2.0)
        burst = round(between(self.draw, 1, 5 * rate + 1))
        self.bucket = Bucket(per_second=rate, most=burst)
        self.about = f"{self.slots} at once and {rate:.0f} a second, burst {burst}"

    async def admit(self, tokens: int) -> None:
        if len(self.served) >= self.slots or self.bucket.wait_for(1):
            raise too_many()


class TokenRate(Server):
    """So many tokens a second, those of the reply counted when the request comes in."""

    family = "tokens a second"

    def __init__(self, number: int) -> None:
        super().__init__(number)
        rate = MEAN_TOKENS * self.rate
        burst = rate * between(self.draw, 1.0, 60.0)
        self.says_when = self.draw.random() < 0.5
        self.most_tokens = min(self.most_tokens, burst)  # or a long reply could never pass
        self.bucket = Bucket(per_second=rate, most=burst)
        says = ", says when" if self.says_when else ""
        self.about = f"{rate:.0f} tokens a second, burst {burst:.0f}{says}"

    async def admit(self, tokens: int) -> None:
        wait = self.bucket.wait_for(tokens)
        if wait:
            raise too_many(wait if self.says_when else None)


class Ban(Server):
    """A rate; whoever is refused too often within 10 s is shut out for some time."""

    family = "bans for refusals"

    def __init__(self, number: int) -> None:
        super().__init__(number)
        burst = round(between(self.draw, 1, 5 * self.rate + 1))
        self.most = self.draw.choice((5, 20, 100))
        self.ban = between(self.draw, 2.0, 30.0)
        self.says_when = self.draw.random() < 0.5
        self.bucket = Bucket(per_second=self.rate, most=burst)
        self.refusals: deque[float] = deque()
        self.banned_until = 0.0
        says = ", says when" if self.says_when else ""
        self.about = f"{self.rate:.0f} a second, burst {burst}, {self.most} refusals: {self.ban:.0f} s{says}"

    async def admit(self, tokens: int) -> None:
        wait = self.banned_until - now()
        if wait <= 0:
            wait = self.bucket.wait_for(1)
            if not wait:
                return
            self._count_refusal()
        raise too_many(wait if self.says_when else None)

    def _count_refusal(self) -> None:
        self.refusals.append(now())
        while self.refusals[0] < now() - 10.0:
            self.refusals.popleft()
        if len(self.refusals) > self.most:
            self.banned_until = now() + self.ban
            self.refusals.clear()


FAMILIES: tuple[type[Server], ...] = (
    Batching,
    Cliff,
    BoundedQueue,
    ImpatientQueue,
    Paced,
    Window,
    CapacityAndRate,
    TokenRate,
    Autoscaled,
    Loading,
    Breaks,
    Crash,
    Balancer,
    Drift,
    Ban,
    SlowRefusal,
    Gateway,
    Pauses,
)


def server_of(number: int) -> Server:
    """The server of this number, new."""
    return FAMILIES[number % len(FAMILIES)](number)


def about(server: Server) -> str:
    """What a server was drawn to be, with the length of its replies."""
    shape = f"lognormal {server.sigma:.1f}" if server.shape == "lognormal" else server.shape
    return f"{server.about}; {server.mean:.2f} s, {shape}, round trip {1000 * server.round_trip:.0f} ms"
