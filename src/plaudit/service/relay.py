"""OpenAI's wire through the engine: which requests may share a reply, and what comes back of a failure.

A request at temperature 0 is a question: asked twice, it is sent once, and its reply is kept. Any other one
is a draw: a client that sends the same request eight times wants eight replies. So the k-th equal request of
a run is draw k, and a later run that sends the same gets the same draws, in the same order, from the cache.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import logging
import math
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar

import msgspec

from plaudit.transports.openai import UNFINISHED
from plaudit.types import Cause, RawRequest, Reply, Sample, Status, Verdict

log = logging.getLogger("plaudit")

ROUTES = ("/chat/completions", "/completions", "/embeddings", "/responses")
NOT_ASKED = frozenset(
    {"user", "metadata", "store", "safety_identifier", "prompt_cache_key", "prompt_cache_retention"}
)
"""Fields that say who asks, not what is asked."""
LASTING = ("background", "conversation")
"""Fields by which a request changes something at the endpoint, so that it is equal to no other."""
LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
UNLIMITED_TOKENS = 16_384
"""What a reply is taken to have at the most, where the request sets no limit."""
MOST_COUNTED = 1 << 32
"""Beyond what any endpoint gives: a request may say any number."""
RETRIED = (408, 409, 429)
"""What clients of OpenAI's send again."""
KB_IN_MEMORY = 1024
"""Kilobytes of the count of draws that are kept in memory; the rest is on disk, 20 bytes a request."""
STATUS_OF = {Cause.REQUEST_REFUSED: 400, Cause.INPUT: 400, Cause.UNKNOWN_MODEL: 404, Cause.BUDGET: 402}
"""Every other failure is final, too, and none that a client should try again: 500."""

_encoder = msgspec.json.Encoder(order="deterministic")


class Draws:
    """Counts equal requests of each run, on disk: a server that runs for weeks has millions of them.

    The file is a temporary one of SQLite's, without a name, which ends with the process.
    """

    def __init__(self) -> None:
        self._numbers: Iterator[int] | None = None
        """Where the disk is full: numbers that no draw had before, so that none is given twice."""
        self._file = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        for statement in (
            "PRAGMA journal_mode = OFF",
            f"PRAGMA cache_size = -{KB_IN_MEMORY}",
            "CREATE TABLE draws (request INTEGER PRIMARY KEY, sent INTEGER NOT NULL)",
            "BEGIN",  # and never an end: nothing is written before the memory is full
        ):
            self._file.execute(statement)

    def next(self, run: str, digest: bytes) -> int:
        """How many equal requests this run has sent before."""
        if self._numbers is not None:
            return next(self._numbers)
        named = hashlib.sha256(run.encode(errors="surrogatepass") + b"\0" + digest).digest()
        request = int.from_bytes(named[:8], "big", signed=True)
        try:
            found = self._file.execute("SELECT sent FROM draws WHERE request = ?", (request,)).fetchone()
            count: int = found[0] if found else 0
            self._file.execute("INSERT OR REPLACE INTO draws VALUES (?, ?)", (request, count + 1))
        except sqlite3.Error as error:
            log.warning("draws cannot be counted any more (%s); later runs will not get the same", error)
            self._numbers = itertools.count(time.time_ns())
            return next(self._numbers)
        return count

    def close(self) -> None:
        """Forget them all."""
        self._file.close()


def is_sampled(route: str, fields: Mapping[str, Any]) -> bool:
    """Whether two equal requests may have different replies."""
    if _changes_something(fields):
        return True
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

    `draw` is its number among equal ones, None at temperature 0; `on_chunk` gets the reply as it comes.
    """
    identity = hashlib.sha256(digest + (b"" if draw is None else b"|%d" % draw)).digest()
    return RawRequest(route, body, identity, _most_tokens(fields), draw is not None, on_chunk)


def digest_of(route: str, fields: Mapping[str, Any]) -> bytes:
    """What makes two requests equal: the route and every field that asks something."""
    if _changes_something(fields):
        return secrets.token_bytes(32)
    asked = {name: value for name, value in fields.items() if name not in NOT_ASKED}
    try:
        encoded = _encoder.encode(asked)
    except UnicodeEncodeError:  # half a surrogate pair
        encoded = json.dumps(asked, sort_keys=True).encode()
    return hashlib.sha256(route.encode() + b"\0" + encoded).digest()


def _changes_something(fields: Mapping[str, Any]) -> bool:
    """Whether a request leaves something behind at the endpoint: a job, or a turn in a conversation."""
    return any(fields.get(name) for name in LASTING)


def _most_tokens(fields: Mapping[str, Any]) -> int:
    limits = (_count(fields.get(name)) for name in LIMITS)
    limit = next((found for found in limits if found), UNLIMITED_TOKENS)
    prompt = fields.get("prompt")
    prompts = prompt if isinstance(prompt, list) and not isinstance(next(iter(prompt), 0), int) else (prompt,)
    replies = max(_count(fields.get(name)) for name in ("n", "best_of"))
    return limit * max(replies, 1) * len(prompts)


def _count(value: Any) -> int:
    """A number of tokens or of replies, as endpoints may read it; 0 for what is none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        return 0
    return math.ceil(min(value, MOST_COUNTED))


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
        """The answer, as it came. One that says that the work is still going on is no answer to keep."""
        verdict = Verdict.of(reply, 1.0, reply.body.decode())
        return replace(verdict, status=Status.EMPTY) if reply.finish_reason in UNFINISHED else verdict


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
    if status == 400 and isinstance(said, int) and 400 <= said < 500 and said not in RETRIED:
        return said
    return status
