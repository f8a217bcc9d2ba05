"""Whether requests a minute, tokens a minute and dollars hold, as the server counts them, whatever it does.

    python benchmarks/limits.py [--calls 150] [--seeds 2]

A simulated server behind the engine's own HTTP transport, in virtual time. It notes when it read each
request, also those whose client had left by then, and what each truly cost, whatever it says of that. For
every fault the same calls are sent under one limit at a time, and under all three. Exit status 2: a window
held more than allowed, or more dollars were spent.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import table

from plaudit.config import Endpoint, EngineConfig, Price
from plaudit.errors import Unreachable
from plaudit.policy.quota import WINDOW
from plaudit.scheduling.call import Call, Outcome
from plaudit.scheduling.dispatcher import Dispatcher
from plaudit.scheduling.lane import Lane
from plaudit.testing import run
from plaudit.transports import HttpTransport
from plaudit.transports.client import Answer, OnChunk
from plaudit.transports.http_errors import dropped
from plaudit.transports.openai import OpenAI
from plaudit.types import ChatRequest, Reply

PRICE = Price(prompt=1.0, completion=10.0)
RPM, TPM, BUDGET = 30, 12_000, 0.12
MAX_TOKENS = 256
PARAMETERS = ("max_tokens", "temperature", "response_format", "logprobs")

Freezes = Sequence[tuple[float, float]]
"""(from, for how long), in seconds."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What a server does beside answering, each by its share of the requests."""

    name: str
    latency: tuple[float, float] = (0.3, 3.0)
    dropped: float = 0.0
    """Read, and then the connection is closed."""
    stale: float = 0.0
    """The connection was closed already: not read, except every other time."""
    refused: float = 0.0
    """429, with a Retry-After of two seconds."""
    failed: float = 0.0
    """500."""
    hung: float = 0.0
    away: Freezes = ()
    """Nobody listens."""
    freezes: Freezes | Callable[[random.Random], Freezes] = ()
    unknown: tuple[str, ...] = ()
    """Parameters that it refuses with a 400, one at a time."""
    timeout: float = 120.0
    usage: Callable[[int, int], str] = field(default=lambda p, c: usage_text(str(p), str(c)))
    """What it says of the tokens that it used: JSON, or nearly."""


def usage_text(prompt: str, completion: str, **more: str) -> str:
    fields = {"prompt_tokens": prompt, "completion_tokens": completion} | more
    return "{" + ", ".join(f'"{name}": {value}' for name, value in fields.items()) + "}"


def some_freezes(chance: random.Random) -> Freezes:
    """Now and then, for a fraction of a second up to minutes."""
    found, at = [], chance.uniform(0.0, 5.0)
    while at < 5000.0:
        found.append((at, chance.expovariate(1 / 25.0)))
        at += found[-1][1] + chance.expovariate(1 / 50.0)
    return found


FAULTS = (
    Fault("none"),
    Fault("calls of half a minute", latency=(25.0, 40.0)),
    Fault("5% dropped, 3% hang", dropped=0.05, hung=0.03),
    Fault("40% dropped", dropped=0.4),
    Fault("half of the kept-alive connections stale", stale=0.5),
    Fault("every connection stale", stale=1.0),
    Fault("400 about four parameters", unknown=PARAMETERS),
    Fault("20% 429, 10% 500", refused=0.2, failed=0.1),
    Fault("away for 40 s", away=((20.0, 40.0),)),
    Fault("frozen from the start, 20 s", freezes=((0.0, 20.0),)),
    Fault("frozen for 70 s", freezes=((30.0, 70.0),)),
    Fault("frozen for 400 s", freezes=((61.0, 400.0),)),
    Fault("frozen for 90 s, timeout 5 s", freezes=((0.5, 90.0),), timeout=5.0),
    Fault("frozen now and then", freezes=some_freezes),
    Fault("frozen now and then, timeout 10 s", freezes=some_freezes, timeout=10.0),
    Fault(
        "all of it",
        freezes=some_freezes,
        timeout=20.0,
        dropped=0.05,
        stale=0.1,
        refused=0.1,
        failed=0.05,
        hung=0.02,
        away=((100.0, 20.0),),
        unknown=PARAMETERS[:2],
    ),
    Fault("no usage", usage=lambda p, c: "null"),
    Fault("usage of zero", usage=lambda p, c: usage_text("0", "0")),
    Fault("negative usage", usage=lambda p, c: usage_text(f"-{p}", f"-{c}")),
    Fault("usage of 1e18", usage=lambda p, c: usage_text("1e18", "1000000000000000000")),
    Fault("usage NaN", usage=lambda p, c: usage_text("NaN", "Infinity")),
    Fault("usage in texts", usage=lambda p, c: usage_text(f'"{p}"', f'"{c}.0"')),
    Fault("usage that is a list", usage=lambda p, c: "[1, 2]"),
    Fault("only the prompt counted", usage=lambda p, c: usage_text(str(p), "null")),
    Fault("a cost below zero", usage=lambda p, c: usage_text(str(p), str(c), cost="-5.0")),
    Fault("a cost of zero", usage=lambda p, c: usage_text(str(p), str(c), cost="0")),
    Fault("a cost of NaN", usage=lambda p, c: usage_text(str(p), str(c), cost="NaN")),
    Fault("a cost of 1e18", usage=lambda p, c: usage_text(str(p), str(c), cost="1e18")),
)


class Server:
    """Behind the transport: an HTTP client whose server keeps its own books."""

    def __init__(self, fault: Fault, seed: int) -> None:
        self._fault = fault
        self._chance = random.Random(f"{fault.name} {seed}")
        self._freezes = fault.freezes(self._chance) if callable(fault.freezes) else fault.freezes
        self.read_at: list[float] = []
        self.tokens: list[tuple[float, int]] = []
        self.dollars = 0.0

    async def post(self, path: str, body: bytes, on_chunk: OnChunk | None = None) -> Answer:
        loop, fault, chance = asyncio.get_running_loop(), self._fault, self._chance
        now = loop.time()
        if any(start <= now < start + length for start, length in fault.away):
            raise Unreachable("refused")
        if chance.random() < fault.stale and chance.random() < 0.5:
            raise dropped(ENDPOINT)
        request = json.loads(body)
        thaw = self._thaw(now)
        what = chance.choices(
            ("refused", "failed", "dropped", "hung", "stale", "ok"),
            (fault.refused, fault.failed, fault.dropped, fault.hung, fault.stale / 2, 1.0),
        )[0]
        unknown = next((name for name in fault.unknown if name in request), None)
        prompt, completion = len(body) // 4, chance.randrange(20, MAX_TOKENS + 1)
        is_billed = unknown is None and what not in ("refused", "failed")
        loop.call_at(thaw, self._read, prompt, completion if is_billed else None)
        is_quick = what in ("refused", "failed", "stale") or unknown is not None
        done = thaw + (0.02 if is_quick else chance.uniform(*fault.latency))
        while (later := self._thaw(done)) > done:
            done = later
        await asyncio.sleep(1e9 if what == "hung" else done - now)
        if what in ("dropped", "stale"):
            raise dropped(ENDPOINT)
        if what == "refused":
            return Answer(429, {"retry-after": "2"}, b"{}")
        if what == "failed":
            return Answer(500, {}, b"{}")
        if unknown is not None:
            return Answer(
                400, {}, json.dumps({"error": {"message": f"Unknown parameter: {unknown}"}}).encode()
            )
        text = (
            f'{{"choices": [{{"message": {{"content": "7"}}}}], "usage": {fault.usage(prompt, completion)}}}'
        )
        return Answer(200, {}, text.encode())

    async def close(self) -> None:
        pass

    def _read(self, prompt: int, completion: int | None) -> None:
        now = asyncio.get_running_loop().time()
        self.read_at.append(now)
        if completion is not None:
            self.tokens.append((now, prompt + completion))
            self.dollars += (prompt * PRICE.prompt + completion * PRICE.completion) / 1e6

    def _thaw(self, at: float) -> float:
        ends = (start + length for start, length in self._freezes if start <= at < start + length)
        return max(ends, default=at)


ENDPOINT = Endpoint("http://server/v1", model="m", price=PRICE)


@dataclass(frozen=True, slots=True)
class Result:
    """One run, as the server counted."""

    good: int
    minutes: float
    requests: int
    """In the busiest minute."""
    tokens: int
    dollars: float


async def score(fault: Fault, limits: EngineConfig, calls: int, seed: int) -> Result:
    """Send the calls under the limits."""
    loop = asyncio.get_running_loop()
    server = Server(fault, seed)
    transport = HttpTransport(ENDPOINT, OpenAI("m", PRICE), server)
    dispatcher = Dispatcher([Lane(ENDPOINT, transport)], replace(limits, timeout=fault.timeout))
    outcomes: list[Outcome] = []
    finished = asyncio.Event()

    def on_done(call: Call, outcome: Outcome) -> None:
        outcomes.append(outcome)
        if len(outcomes) == calls:
            finished.set()

    dispatcher.enqueue(_call(f"{seed} {number}", on_done) for number in range(calls))
    await finished.wait()
    took = loop.time()
    await dispatcher.close()
    await asyncio.sleep(3600.0)  # what a frozen server still holds is read, and billed, later
    good = sum(isinstance(outcome, Reply) for outcome in outcomes)
    requests = busiest_minute([(at, 1) for at in server.read_at])
    return Result(good, took / 60.0, requests, busiest_minute(server.tokens), server.dollars)


def _call(text: str, on_done: Callable[[Call, Outcome], None]) -> Call:
    messages = ({"role": "user", "content": f"Is this right? {text} " + "x" * 200},)
    request = ChatRequest(messages, MAX_TOKENS, schema={"type": "object"}, top_logprobs=2)  # type: ignore[arg-type]
    return Call(request, key=hashlib.sha256(text.encode()).digest(), on_done=on_done)


def busiest_minute(events: Sequence[tuple[float, int]]) -> int:
    """The most that any window of sixty seconds holds."""
    ordered, first, held, most = sorted(events), 0, 0, 0
    for at, size in ordered:
        held += size
        while ordered[first][0] <= at - WINDOW:
            held -= ordered[first][1]
            first += 1
        most = max(most, held)
    return most


LIMITS = (
    EngineConfig(rpm=RPM),
    EngineConfig(tpm=TPM),
    EngineConfig(budget=BUDGET),
    EngineConfig(rpm=RPM, tpm=TPM, budget=BUDGET),
)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--calls", type=int, default=150)
    parser.add_argument("--seeds", type=int, default=2)
    options = parser.parse_args()
    rows, over, unseen = [], 0, 0
    for fault in FAULTS:
        found = [
            (limits, run(score(fault, limits, options.calls, seed)))
            for limits in LIMITS
            for seed in range(options.seeds)
        ]
        requests = max(result.requests for limits, result in found if limits.rpm)
        tokens = max(result.tokens for limits, result in found if limits.tpm)
        dollars = max(result.dollars for limits, result in found if limits.budget)
        over += (requests > RPM) + (tokens > TPM) + (dollars > BUDGET)
        unseen += not requests
        paced = [result for limits, result in found if limits.rpm and not limits.tpm]
        good = min(result.good for result in paced)
        minutes = max(result.minutes for result in paced)
        rows.append((fault.name, f"{requests}", f"{tokens:,}", f"{dollars:.4f}", f"{good}", f"{minutes:.1f}"))
    table.show(
        f"The worst of {options.seeds} runs each of {options.calls} calls, counted at the server: "
        f"limits of {RPM} requests and {TPM:,} tokens in any 60 s, and of ${BUDGET}",
        ("what the server does", "requests", "tokens", "dollars", "answered under rpm", "minutes"),
        rows,
    )
    if unseen:
        print(f"{unseen} servers saw no request: nothing is shown")
    else:
        print("every limit held" if not over else f"{over} limits were crossed")
    return 2 if over or unseen else 0


if __name__ == "__main__":
    sys.exit(main())
