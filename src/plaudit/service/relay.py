"""OpenAI's wire through the engine: which requests may share a reply, and what comes back of a failure.

A request at temperature 0 is a question: asked twice, it is sent once, and its reply is kept. Any other one
is a draw: whoever sends the same request eight times wants eight replies. So the k-th equal request of a run
is draw k, and a later run that sends the same gets the same draws, in the same order, from the cache.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import msgspec

from plaudit.types import Cause, RawRequest, Reply, Sample, Verdict

ROUTES = ("/chat/completions", "/completions", "/embeddings", "/responses")
NOT_ASKED = frozenset(
    {"user", "metadata", "store", "safety_identifier", "prompt_cache_key", "prompt_cache_retention"}
)
"""Fields that say who asks, not what is asked."""
LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
UNLIMITED_TOKENS = 16_384
"""What a reply is taken to have at the most, where the request sets no limit."""
RETRIED = (408, 409)
"""What clients of OpenAI's send again."""
REQUESTS_KEPT = 500_000
"""Requests whose draws are counted at a time; beyond, the least recent runs are forgotten."""
STATUS_OF = {
    Cause.REQUEST_REFUSED: 400,
    Cause.INPUT: 400,
    Cause.UNKNOWN_MODEL: 404,
    Cause.BUDGET: 402,
}
"""Every other failure is final, too, and none that a client should try again: 500."""

_encoder = msgspec.json.Encoder(order="deterministic")


class Draws:
    """Counts equal requests of each run."""

    def __init__(self, most: int = REQUESTS_KEPT) -> None:
        self._most = most
        self._kept = 0
        self._runs: OrderedDict[str, dict[int, int]] = OrderedDict()
        self._fresh: dict[str, int] = {}
        """Runs too long to be counted whole: a request unknown there begins at a number never used."""

    def next(self, run: str, digest: bytes) -> int:
        """How many equal requests this run has sent before."""
        request = int.from_bytes(digest[:8], "big")  # half the memory, and no two of a run's are ever equal
        counts = self._runs.setdefault(run, {})
        self._runs.move_to_end(run)
        if request not in counts:
            self._make_room(run)
            counts[request] = self._fresh.get(run, 0)
            self._kept += 1
        count = counts[request]
        counts[request] = count + 1
        return count

    def _make_room(self, run: str) -> None:
        while self._kept >= self._most:
            oldest, counts = next(iter(self._runs.items()))
            self._kept -= len(counts)
            if oldest == run:
                self._fresh[run] = max(counts.values()) + 1
                counts.clear()
            else:
                del self._runs[oldest]
                self._fresh.pop(oldest, None)


def is_sampled(route: str, fields: Mapping[str, Any]) -> bool:
    """Whether two equal requests may have different replies."""
    if route == "/embeddings":
        return False
    is_greedy = fields.get("temperature") == 0 and fields["temperature"] is not False
    return not is_greedy or fields.get("n", 1) not in (1, None)


def raw_request(
    route: str,
    body: bytes,
    fields: Mapping[str, Any],
    digest: bytes,
    draw: int | None,
    *,
    on_chunk: Callable[[bytes], None] | None = None,
) -> RawRequest:
    """A client's request as the engine takes it.

    Args:
        route: Where it was posted.
        body: What was posted.
        fields: The body, decoded.
        digest: Its `digest_of`.
        draw: Its number among equal ones; None at temperature 0.
        on_chunk: Called with the reply's bytes as they come.
    """
    identity = hashlib.sha256(digest + (b"" if draw is None else b"|%d" % draw)).digest()
    return RawRequest(route, body, identity, _most_tokens(fields), draw is not None, on_chunk)


def digest_of(route: str, fields: Mapping[str, Any]) -> bytes:
    """What makes two requests equal: the route and every field that asks something."""
    asked = {name: value for name, value in fields.items() if name not in NOT_ASKED}
    return hashlib.sha256(route.encode() + b"\0" + _encoder.encode(asked)).digest()


def _most_tokens(fields: Mapping[str, Any]) -> int:
    limit = UNLIMITED_TOKENS
    for name in LIMITS:
        found = fields.get(name)
        if isinstance(found, int) and found > 0:
            limit = found
            break
    replies = fields.get("n")
    return limit * (replies if isinstance(replies, int) and replies > 0 else 1)


class Relay:
    """A judge that judges nothing: its request is the client's own, its verdict's reason the whole answer.

    So a relayed request has what a judged sample has: coalescing, cache, limits, retries, hedging, deadlines.
    """

    version: ClassVar[str] = "relay-1"
    scale: ClassVar[tuple[float, float]] = (0.0, 1.0)
    higher_is_better: ClassVar[bool] = True
    compares: ClassVar[bool] = False
    is_told: ClassVar[bool] = False

    def render(self, sample: Sample) -> RawRequest:
        """The request that the sample carries."""
        request = sample.extra["request"]
        assert isinstance(request, RawRequest)
        return request

    def parse(self, reply: Reply, sample: Sample) -> Verdict:  # noqa: ARG002 - the protocol's signature
        """The answer, as it came."""
        return Verdict.of(reply, 1.0, reply.body.decode())


def sample_of(request: RawRequest) -> Sample:
    """What the engine is given for a request."""
    return Sample("", request.route, extra={"request": request})


def error_body(message: str, *, status: int, code: str = "") -> bytes:
    """An error as OpenAI's clients read it."""
    kind = "invalid_request_error" if status < 500 else "server_error"
    error = {"message": message, "type": kind, "param": None, "code": code or None}
    return msgspec.json.encode({"error": error})


def status_of(verdict: Verdict) -> int:
    """The HTTP status of a failure."""
    failure = verdict.failure
    if failure is None:
        return 500
    status = STATUS_OF.get(failure.cause, 500)
    said = failure.facts.get("http_status")
    if status == 400 and isinstance(said, int) and 400 <= said < 429 and said not in RETRIED:
        return said
    return status
