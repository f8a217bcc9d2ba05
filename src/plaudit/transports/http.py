"""A transport over HTTP: a dialect writes the request, a client carries it, the dialect reads the reply."""

from __future__ import annotations

import asyncio
import codecs
import logging
import re
import time
from collections.abc import Callable

import msgspec

from plaudit.config import Endpoint
from plaudit.errors import (
    EndpointRefused,
    EngineClosed,
    ModelNotFound,
    PlauditError,
    RequestRefused,
    SendAgain,
    TransportFailed,
)
from plaudit.policy.headers import rate_headers
from plaudit.policy.status import WRONG_ROUTE
from plaudit.transports.client import Answer, HttpClient, OnChunk
from plaudit.transports.complaint import Complaint, complaint_of, is_about_images
from plaudit.transports.dialect import BadReply, Dialect, ErrorReply
from plaudit.transports.http_errors import Dropped, blind, broken, failure_in_reply, failure_of
from plaudit.types import (
    ChatRequest,
    EmbedRequest,
    GenerateRequest,
    LikelihoodRequest,
    RawRequest,
    Reply,
    Request,
)

log = logging.getLogger("plaudit")

LONGEST_ERROR = 64 * 1024
"""Bytes of an error body that are handed on."""
STRAYS = 3
"""So many web pages or streams and not one reply: that is what this URL gives."""
LEAST_SECRET = 16
"""Characters of a key that is one: `EMPTY` and `ollama` stand for having none, and are words of a reply."""
IDLE = 408
"""With which some servers end a connection that was idle for too long."""
STALE_AFTER = 1.0
"""Seconds: a connection that the server had closed before we wrote to it shows it within a round trip."""


class HttpTransport:
    """Sends requests to one endpoint. Lives on one event loop; connects when first used.

    Each `send` is one request at the endpoint, so that limits count what reaches it. Where sending again is
    all it takes, it says so by SendAgain. That is so in two cases. The endpoint did not know a parameter: it
    is left out from then on (see `Shape`). Or the request met a stale connection: one kept alive from an
    earlier call, closed by the server just as we wrote, so that not a byte came back, or no more than a 408:
    some servers end idle connections with one. A server that does so on a fresh connection, or after more
    than a second, was at work on the request: that is a failure.
    """

    def __init__(self, endpoint: Endpoint, dialect: Dialect, client: HttpClient) -> None:
        self._endpoint = endpoint
        self._dialect = dialect
        self._client = client
        self._secrets = [key.encode() for key in endpoint.secrets if len(key) >= LEAST_SECRET]
        """What is kept out of replies: some servers repeat what was sent to them, and replies are stored."""
        self._is_closed = False
        self._is_blind = False
        """Whether the endpoint has refused pictures as such."""
        self._can_see = False
        """Whether it has replied to one: what it refuses from then on is the picture at hand."""
        self._has_replied = False
        self._strays = 0
        """Web pages and streams with status 200 that came in place of a reply."""
        self._busy = 0
        self._peak = 0
        self._clock: Callable[[], float] | None = None
        """Its loop's; kept, because asking for the loop is a system call."""

    async def send(self, request: Request) -> Reply:
        if self._is_closed:
            raise self._closed()
        has_images = isinstance(request, ChatRequest) and bool(request.images)
        if has_images and self._is_blind:
            raise blind(self._endpoint)
        dialect = self._dialect
        path, body = dialect.encode(request)
        on_chunk = request.on_chunk if isinstance(request, RawRequest) else None
        if on_chunk is not None:
            on_chunk = _EventsOnly(on_chunk)
        self._busy += 1
        # Fewer calls than there were at once before: one of their connections is free, and was probably used.
        is_likely_kept_alive = self._busy <= self._peak
        if not is_likely_kept_alive:
            self._peak = self._busy
        clock = self._clock = self._clock or asyncio.get_running_loop().time
        sent_at = clock()

        try:
            answer = await self._client.post(path, body, on_chunk)
        except TransportFailed as error:
            is_stale = isinstance(error, Dropped) and _is_stale(
                error.is_kept_alive, is_likely_kept_alive, seconds=clock() - sent_at
            )
            raise self._failed(error, is_stale=is_stale) from None
        finally:
            self._busy -= 1
        if answer.status == IDLE and _is_stale(
            answer.is_kept_alive, is_likely_kept_alive, seconds=clock() - sent_at
        ):
            raise SendAgain(f"{self._endpoint.name} answered {IDLE} on a connection that it had given up")
        if 200 <= answer.status < 300:
            reply = self._read(dialect, request, answer)
            self._can_see |= has_images
            return reply
        if isinstance(request, RawRequest):
            raise refusal_of_raw(self._endpoint, answer, now=time.time(), has_replied=self._has_replied)
        if has_images and not self._can_see and is_about_images(answer.status, complaint_of(answer.body)):
            if not self._is_blind:
                log.warning("%s", blind(self._endpoint))
            self._is_blind = True
            raise blind(self._endpoint)
        if answer.status in (400, 422):
            self._learn(dialect, complaint_of(answer.body), answer.status, request)
        raise failure_of(self._endpoint, answer.status, answer.headers, answer.body, now=time.time())

    async def close(self) -> None:
        self._is_closed = True
        await self._client.close()

    def _failed(self, error: TransportFailed, *, is_stale: bool) -> PlauditError:
        """What a failed post comes to."""
        if self._is_closed:
            return self._closed()
        return SendAgain(str(error)) if is_stale else error

    def _closed(self) -> EngineClosed:
        return EngineClosed(f"{self._endpoint.name}: this transport is closed")

    def _read(self, dialect: Dialect, request: Request, answer: Answer) -> Reply:
        failure: PlauditError
        try:
            body = answer.body.removeprefix(codecs.BOM_UTF8)
            for secret in self._secrets:
                body = body.replace(secret, b"***")
            reply = dialect.decode(request, body, rate_headers(answer.headers, now=time.time()))
        except ErrorReply as error:
            if not isinstance(request, RawRequest):
                self._learn(dialect, error.complaint, answer.status, request)
            failure = failure_in_reply(self._endpoint, answer.headers, error.complaint, now=time.time())
        except BadReply as error:
            failure = broken(self._endpoint, f"the reply cannot be used: {error}")
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            may_stream = isinstance(request, RawRequest)
            stray = "" if may_stream else _stray(answer.body, self._endpoint.url)
            self._strays += bool(stray)
            if stray and self._strays >= STRAYS and not self._has_replied:
                failure = EndpointRefused(f"{self._endpoint.name} answers with {stray}")
            else:
                failure = broken(self._endpoint, _not_a_reply(answer, error, may_stream=may_stream))
        else:
            self._has_replied = True
            return reply
        raise failure

    def _learn(self, used: Dialect, complaint: Complaint, status: int, request: Request) -> None:
        """Raise SendAgain where the endpoint took offence at a parameter that requests can do without."""
        if used.adapted(complaint) is None:
            return
        own = complaint.before_quoting(_texts(request))
        if used.adapted(own) is None:
            return
        # Calls in flight together learn the same lesson: only the first of them changes anything.
        self._dialect = self._dialect.adapted(own) or self._dialect
        said = complaint.excerpt(*self._endpoint.secrets)
        raise SendAgain(f"{self._endpoint.name} answered {status}: {said}", is_answered=True)


def _texts(request: Request) -> tuple[str, ...]:
    """What a request asks about."""
    match request:
        case ChatRequest():
            return tuple(turn["content"] for turn in request.messages)
        case GenerateRequest():
            return (request.prompt,)
        case LikelihoodRequest():
            return (request.prompt, request.text)
        case EmbedRequest():
            return tuple(request.texts)
        case RawRequest():
            return ()


def _is_stale(is_kept_alive: bool | None, is_likely_kept_alive: bool, *, seconds: float) -> bool:
    """Whether what came back so soon came from a connection that had served another request before."""
    was_used = is_likely_kept_alive if is_kept_alive is None else is_kept_alive
    return was_used and seconds <= STALE_AFTER


_END_OF_EVENT = re.compile(rb"\r\n\r\n|\n\n|\r\r|\n\r\n")
_ERROR_EVENT = re.compile(rb'^event:\s*error|(?<!\\)"error"\s*:\s*[{"]', re.MULTILINE)


class _EventsOnly:
    """Hands on the pieces of a stream, from its first event on.

    A body that is no stream, or begins with an error, is read whole: it may be worth another try.
    """

    def __init__(self, on_chunk: OnChunk) -> None:
        self._on_chunk = on_chunk
        self._start = b""
        self._is_stream: bool | None = None

    def __call__(self, chunk: bytes) -> None:
        if self._is_stream is None:
            chunk = self._start = self._start + chunk
            first = chunk.lstrip()[:1]
            if first == b":":  # a comment: the client is to know that something is coming
                self._is_stream = True
            elif first and first in b"{<":
                self._is_stream = False
            elif (end := _END_OF_EVENT.search(chunk.lstrip())) or len(chunk) > LONGEST_ERROR:
                event = chunk.lstrip()[: end.start() if end else None]
                self._is_stream = _ERROR_EVENT.search(event) is None
        if self._is_stream:
            self._on_chunk(chunk)


def refusal_of_raw(
    endpoint: Endpoint, answer: Answer, *, now: float, has_replied: bool = False
) -> PlauditError:
    """The error for a refused request that a client wrote: its fact `answer` is the endpoint's own body.

    A route or a model that is not there is the client's mistake, and no reason to give the endpoint up. Nor
    is a 403 by an endpoint that has replied to others: it says so of prompts that its moderation flags.
    """
    failure = failure_of(endpoint, answer.status, answer.headers, answer.body, now=now)
    is_about_request = isinstance(failure, RequestRefused | ModelNotFound) or answer.status in WRONG_ROUTE
    if not (is_about_request or (answer.status == 403 and has_replied)):
        return failure
    body = answer.body.decode("utf-8", "replace")
    for secret in endpoint.secrets:
        body = body.replace(secret, "***")
    refused = failure if isinstance(failure, RequestRefused) else RequestRefused(str(failure))
    return refused.with_facts(**{**failure.facts, "answer": body[:LONGEST_ERROR]})


def _stray(body: bytes, url: str) -> str:
    """What a server that gives it once gives to every request; empty where the body is no such thing."""
    start = body.lstrip()
    if start.startswith(b"<"):
        return f"web pages; check that {url} is the base URL of an API"
    if start.startswith((b"data:", b"event:")):
        return "streams, though none is asked for; set it to give whole replies"
    return ""


def _not_a_reply(answer: Answer, error: Exception, *, may_stream: bool) -> str:
    kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "text/event-stream" and may_stream:
        return f"the stream breaks off, or is not what the API promises ({error})"
    if kind == "text/event-stream":
        return f"the reply is {kind}, though no stream was asked for; set the server to give whole replies"
    if kind and "json" not in kind:
        return f"the reply is {kind}, not JSON; check that the URL is an API's base URL"
    if not answer.body.strip():
        return "the reply is empty"
    return f"the reply is not what the API promises ({error})"
