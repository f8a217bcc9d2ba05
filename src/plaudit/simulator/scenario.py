"""What a simulated judge server is like: speed, capacity, neighbours and faults, as plain data.

A scenario is frozen and holds no live thing, so it can be written in Python, TOML or JSON alike:

    seed = 7
    [latency]
    seconds_per_token = 0.02
    [capacity]
    kind = "reject"
    slots = 64
    [[faults]]
    kind = "slow"
    probability = 0.015

Times are in seconds, and time zero is the first request.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import msgspec
from msgspec import Struct

from plaudit.errors import ConfigError
from plaudit.value_check import ABOVE_0, check_numbers, check_value

FaultKind = Literal[
    "error", "down", "reset", "cut", "hang", "slow", "bad_json", "html", "plain_text", "babble",
    "refusal", "filtered", "truncated",
]  # fmt: skip
Hints = Literal["none", "retry-after", "exact", "headers", "all"]
SlotHints = Literal["none", "retry-after", "exact"]


class Latency(Struct, frozen=True, forbid_unknown_fields=True):
    """How long an answer takes: a log-normal number of tokens, generated one after another."""

    mean_tokens: float = 200.0
    sigma: float = 0.6
    """Spread of the logarithm of the output length; 0 makes every answer equally long."""
    seconds_per_token: float = 0.02
    first_token: float = 0.3
    """Seconds of service before the first token."""
    round_trip: float = 0.1
    """Seconds a reply or a reject spends on the wire."""
    jitter: float = 0.0
    """Seconds by which a request is late on average: those sent together arrive in any order. Over real
    sockets the network sees to that."""

    def __post_init__(self) -> None:
        check_numbers(self, "sigma", "seconds_per_token", "first_token", "round_trip", "jitter", low=0)
        check_numbers(self, "mean_tokens", low=1)

    def work(self, tokens: int) -> float:
        """Seconds of service an answer of so many tokens takes at full speed."""
        return self.first_token + tokens * self.seconds_per_token

    def scaled_to(self, mean: float) -> Latency:
        """The same shape, so much slower or faster that an average call takes `mean` seconds in all."""
        now = self.round_trip + self.first_token + self.mean_tokens * self.seconds_per_token
        if not now:
            return msgspec.structs.replace(self, seconds_per_token=mean / self.mean_tokens)
        factor = mean / now
        return msgspec.structs.replace(
            self,
            seconds_per_token=self.seconds_per_token * factor,
            first_token=self.first_token * factor,
            round_trip=self.round_trip * factor,
            jitter=self.jitter * factor,
        )


class Unlimited(Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="unlimited"):
    """Everything is accepted and served at full speed."""


class Reject(Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="reject"):
    """So many requests at once; the others are rate limited (429) after one round trip."""

    slots: int
    status: int = 429
    retry_after: float | None = None
    """Seconds told in every reject's Retry-After header, true or not; None leaves it to `hints`."""
    hints: SlotHints = "none"
    """`exact` tells in Retry-After when the next slot is free; `retry-after` rounds that up to seconds."""

    def __post_init__(self) -> None:
        check_numbers(self, "slots", low=1)
        check_numbers(self, "status", low=400, high=599)


class Queue(Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="queue"):
    """So many requests at once; the others wait in silence, first come first served."""

    slots: int
    max_queue: int | None = None
    """How many may wait before the next one gets a 503; None for no end."""
    status: int = 503

    def __post_init__(self) -> None:
        check_numbers(self, "slots", low=1)
        check_numbers(self, "status", low=400, high=599)


class WrongHeaders(Struct, frozen=True, forbid_unknown_fields=True):
    """What x-ratelimit-* headers say in place of the truth."""

    limit_factor: float = 1.0
    """The limit told is so many times the true one."""
    reset_factor: float = 1.0
    """The same for the seconds until the allowance is full again; 0 tells a moment that is past."""
    remaining: int | None = None
    """Told as the requests left, always; None for the truth."""

    def __post_init__(self) -> None:
        check_numbers(self, "limit_factor", "reset_factor", low=0)


class Rate(Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="rate"):
    """So many requests a second; past that 429. Those accepted are served at full speed."""

    per_second: float
    burst: int = 1
    """How many may come at once after a pause."""
    window: float | None = None
    """Seconds of a fixed window that allows per_second x window requests, instead of a token bucket."""
    tokens_per_second: float | None = None
    """Prompt and completion tokens a second, bucketed over a minute; None for no such limit."""
    hints: Hints = "all"
    """`all` sends retry-after, retry-after-ms and x-ratelimit-*; `headers` x-ratelimit-* alone; `retry-after`
    whole seconds, rounded up, alone; `exact` the same with its fraction."""
    retry_after: float | None = None
    """Seconds told in every refusal's Retry-After in place of the true wait; None for what `hints` tells."""
    wrong: WrongHeaders | None = None
    """How x-ratelimit-* headers are off, where `hints` sends them; None for the truth."""

    def __post_init__(self) -> None:
        check_numbers(self, "burst", low=1)
        for name in ("per_second", "window", "tokens_per_second"):
            if getattr(self, name) is not None:
                check_numbers(self, name, low=ABOVE_0)
        if self.window is not None and self.per_second * self.window < 1:
            raise ConfigError(
                f"over window={self.window} lets none through; widen it",
                setting="per_second",
                value=self.per_second,
            )


class Knee(Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="knee"):
    """Everything is accepted and shares the machine, which slows down past its knee.

    With n requests in service the throughput is n up to the knee and knee * (knee / n) ** exponent past it.
    """

    knee: int
    exponent: float = 1.3
    """0 gives a plateau, as vLLM has it; above 0 the machine thrashes."""

    def __post_init__(self) -> None:
        check_numbers(self, "knee", low=1)
        check_numbers(self, "exponent", low=0)


Capacity = Unlimited | Reject | Queue | Rate | Knee
_SIZES: dict[type, str] = {Reject: "slots", Queue: "slots", Rate: "per_second", Knee: "knee"}
"""Which field says how much there is."""


class Tenant(Struct, frozen=True, forbid_unknown_fields=True):
    """Somebody else on the same server: takes slots, a share of the machine, or requests a second."""

    load: float
    on: float | None = None
    """Seconds of presence, then `off` seconds of absence, and so on; None for always there."""
    off: float = 0.0
    start: float = 0.0
    """Seconds after the first request at which the tenant first appears."""

    def __post_init__(self) -> None:
        check_numbers(self, "load", "off", "start", low=0)
        if self.on is not None and not (self.on > 0 and self.off > 0):
            raise ConfigError(
                f"and off={self.off} of a tenant do not make a period; give both, or leave on out",
                setting="on",
                value=self.on,
            )


class Fault(Struct, frozen=True, forbid_unknown_fields=True):
    """Something that goes wrong with some requests. The first fault of a scenario that applies wins.

    error       an HTTP error (`status`, `retry_after`) after one round trip
    down        no server listens; over HTTP, the connection is reset at once
    reset       the connection is reset before a reply
    cut         the connection is reset in the middle of the reply
    hang        no reply ever comes, and a slot stays taken until the client leaves
    slow        service takes `factor` times as long
    bad_json    a body that breaks off, though the headers are in order
    html        an HTML page with status 200
    plain_text  the right body under the wrong content type
    babble      a proper reply whose text is no verdict
    refusal     the judge declines;  filtered: the content filter stopped it
    truncated   the text breaks off at the token limit (finish reason `length`)
    """

    kind: FaultKind
    probability: float = 1.0
    during: tuple[float, float] | None = None
    """Only for requests that arrive in this span of seconds."""
    every: float | None = None
    """Seconds of a period: `during` is a span of each, counted from time zero. None: it comes once."""
    requests: tuple[int, int] | None = None
    """Only for these arrivals, counted from 0, the second number excluded."""
    status: int = 500
    retry_after: float | None = None
    factor: float = 25.0
    before_limits: bool = False
    """Comes before the capacity is looked at: at any load, and without a token of a rate."""

    @property
    def comes_first(self) -> bool:
        """Whether it comes before the capacity is looked at."""
        return self.before_limits or self.kind == "down"

    def is_active(self, at: float) -> bool:
        """Whether its time has come, at so many seconds."""
        if self.during is None:
            return True
        start, end = self.during
        return start <= (at if self.every is None else at % self.every) < end

    def __post_init__(self) -> None:
        if self.every is not None and not (
            self.during and 0.0 <= self.during[0] < self.during[1] <= self.every
        ):
            raise ConfigError(
                "is the period of no span; give during=(from, to) within it",
                setting="every",
                value=self.every,
            )
        if self.before_limits and self.kind not in ("error", "down", "reset"):
            raise ConfigError(
                f"is not for a fault {self.kind!r}, which needs service; leave it out",
                setting="before_limits",
            )
        check_value("kind", self.kind, FaultKind)
        check_numbers(self, "probability", low=0, high=1)
        check_numbers(self, "factor", low=0)
        check_numbers(self, "status", low=400, high=599)


class Scenario(Struct, frozen=True, forbid_unknown_fields=True):
    """Everything a simulated server does, from one seed."""

    seed: int = 0
    latency: Latency = Latency()
    capacity: Capacity = Unlimited()
    schedule: tuple[tuple[float, float], ...] = ()
    """(second, new capacity): from then on there are so many slots, requests a second, or so late a knee."""
    tenants: tuple[Tenant, ...] = ()
    faults: tuple[Fault, ...] = ()
    api_key: str | None = None
    """Requests without this key get 401; None lets everybody in."""
    models: tuple[str, ...] = ("simulated",)
    """What the list of models says. Any name is served, except `missing`, which gets 404."""
    max_context: int | None = None
    """Prompt tokens beyond which a request gets 400; None for no limit."""
    reasoning_tokens: int = 0
    """Tokens that the model thinks before each answer in a chat; they count, and are given apart from it."""
    dimensions: int = 64
    """Length of an embedding when the request does not say."""

    def __post_init__(self) -> None:
        times = [at for at, _ in self.schedule]
        if times != sorted(times):
            raise ConfigError(
                "goes back in time; sort it by its first numbers", setting="schedule", value=self.schedule
            )
        if self.schedule and isinstance(self.capacity, Unlimited):
            raise ConfigError(
                "changes a capacity, and this one is unlimited; choose another kind", setting="schedule"
            )
        check_numbers(self, "dimensions", low=1)
        check_numbers(self, "reasoning_tokens", low=0)

    def replace(self, **changes: Any) -> Scenario:
        """The same scenario with some fields changed."""
        return msgspec.structs.replace(self, **changes)

    @property
    def size(self) -> float:
        """The slots, requests a second, or the knee; infinity where nothing is limited."""
        name = _SIZES.get(type(self.capacity))
        return math.inf if name is None else float(getattr(self.capacity, name))

    def with_capacity(self, capacity: float) -> Scenario:
        """The same scenario with so many slots, requests a second, or so late a knee."""
        name = _SIZES.get(type(self.capacity))
        if name is None:
            raise ConfigError("this scenario has no capacity to change; choose another, like queue")
        size = capacity if isinstance(self.capacity, Rate) else int(capacity)
        return self.replace(capacity=msgspec.structs.replace(self.capacity, **{name: size}))
