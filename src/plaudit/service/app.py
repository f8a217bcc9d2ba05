"""One engine behind HTTP, on aiohttp.web: routes, and limits on what is read.

POST /v1/chat/completions, /v1/completions, /v1/embeddings, /v1/responses   OpenAI's wire, passed on
GET  /v1/models                         the models there are
POST /score, /reward                    verdicts; rewards from 0 to 1
POST /get_reward, /remote_rm, /verify   the same, as OpenRLHF, slime and NeMo-Gym post it
     /run/NAME/...                      all of these, as part of a run of this name
GET  /metrics, /health, /openapi.json   numbers, a sign of life, these routes for programs
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import hashlib
import itertools
import json
import logging
import re
import secrets
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import msgspec
from aiohttp import web

from plaudit.engine import BaseEngine, Engine
from plaudit.errors import ConfigError
from plaudit.judges.base import Judge, Panel
from plaudit.judges.scale import unit_score
from plaudit.page.page_routes import HEADERS, PUBLIC, ROOT, Page
from plaudit.pending import Pending
from plaudit.service import relay, rewards
from plaudit.service.access import PASS_SECONDS, Access
from plaudit.service.connections import read_by
from plaudit.service.openapi import description
from plaudit.service.prometheus import Prometheus
from plaudit.service.room import Room
from plaudit.setup.json_lines import encode
from plaudit.types import Source, Verdict

log = logging.getLogger("plaudit")

MOST_BYTES = 64 * 1024 * 1024
MOST_HELD = 1 << 30
"""Bytes of large bodies that are held at a time; more are not read before there is room."""
LARGE = 1 << 18
"""Bytes from which on a body is a large one."""
BODY_WITHIN = 60.0
"""Seconds in which a client has to have sent its body."""
LARGE_REPLY = 1 << 16
"""Bytes that are out of our hands at once: a connection buffers as much."""
MOST_WAITING = 20_000
"""Requests under way at a time; more are answered with 503, for they would fill the memory."""
MARGIN = 1.0
"""Seconds by which an answer comes before its client stops waiting; a quarter of that wait at the most."""
PASS = "plaudit-page"  # noqa: S105 - the name of a cookie
"""The cookie that lets a browser read the page of a server with a token."""
GONE = 499
"""What a request whose client has left is counted as."""
LONGEST_NAME = 200
"""Characters of a run's name: it is kept as long as the run is."""
NO_ROUTE = "there is no such route here; OpenAI's begin with /v1, and /openapi.json lists all that there are"
JSON = "application/json"
EVENTS = "text/event-stream"
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_number: ContextVar[str] = ContextVar("number")
"""What the request is called in the log and in its reply."""
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class Shared:
    """What a server shares with its clients."""

    engine: BaseEngine
    judge: Judge | Panel
    """The judge of requests that name none."""
    models: tuple[str, ...] = ()
    """The models that clients may ask for; none: any, as the endpoints see fit."""
    on_failure: str | float = "raise"
    """What a sample without a verdict becomes where the reply's shape has no place for that."""
    finishes_abandoned: bool = True
    """Whether a call at temperature 0 goes on into the cache when its client has gone."""
    name: str = ""
    """Of this server among those on one engine, each of which counts draws of its own."""


class _Chunks:
    """The pieces of one reply, from the engine's thread to the server's loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        """What has come; None after the last piece."""

    def __call__(self, chunk: bytes) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: no client is left
            self._loop.call_soon_threadsafe(self.queue.put_nowait, chunk)


class BadBody(Exception):
    """A body that cannot be used."""

    def __init__(self, message: str, status: int = 400, code: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.code = code


class _BrokeOff(Exception):
    """The stream of another client, for which this one waited, came to a bad end."""


class Service:
    """The routes of one server."""

    def __init__(self, shared: Shared, access: Access, numbers: Prometheus, page: Page | None = None) -> None:
        self._page = page
        self._shared = shared
        self._access = access
        self._numbers = numbers
        self._id = secrets.token_hex(8)
        self._request_ids = itertools.count(1)
        self._relay = relay.Relay()
        self._draws = relay.Draws()
        self._room = Room(MOST_HELD)
        self.is_crowded = False
        """Whether clients wait for a connection: then none is kept for another request."""
        self._held: dict[str, int] = {}
        """How much of it each request has, by its number."""

    def app(self) -> web.Application:
        app = web.Application(middlewares=[self._checked], client_max_size=MOST_BYTES)
        for prefix in ("", "/run/{run}"):
            posts: dict[str, Handler] = {
                **{f"/v1{route}": self._passed_on(route) for route in relay.ROUTES},
                "/score": self._score,
                "/reward": self._reward,
                "/get_reward": self._get_reward,
                "/remote_rm": self._remote_rm,
                "/verify": self._verify,
            }
            for path, handler in posts.items():
                app.router.add_post(prefix + path, handler, expect_handler=_not_yet)
            app.router.add_get(f"{prefix}/v1/models", self._models)
            app.router.add_get(f"{prefix}/v1/models/{{model:.+}}", self._model)
        if self._page is not None:
            self._page.add_routes(app)
            app.router.add_post(ROOT + "api/login", self._log_in)
        app.on_cleanup.append(self._cleaned_up)
        app.router.add_get("/metrics", self._metrics)
        app.router.add_get("/health", self._health)
        app.router.add_get("/openapi.json", self._openapi)
        return app

    async def _cleaned_up(self, _: web.Application) -> None:
        self._draws.close()

    # -- every request ------------------------------------------------------------------------------------

    @web.middleware
    async def _checked(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        started = time.monotonic()
        number = f"req_{self._id}{next(self._request_ids):08x}"
        _number.set(number)
        resource = request.match_info.route.resource
        route = resource.canonical if resource is not None else "unknown"
        self._numbers.waiting += 1
        status = GONE
        try:
            response = await self._answer(request, handler)
            if self.is_crowded:
                response.force_close()
            if not response.prepared:
                response.headers.update(_own_headers())
                took = time.monotonic() - started
                response.headers["openai-processing-ms"] = str(round(took * 1000))
            if isinstance(response, web.Response) and (response.content_length or 0) > LARGE_REPLY:
                async with read_by(request, response.content_length or 0):
                    await response.prepare(request)
                    await response.write_eof()
            status = response.status
        finally:
            self._numbers.waiting -= 1
            if held := self._held.pop(number, 0):
                self._room.give_back(held)
            self._numbers.on_request(route, status, time.monotonic() - started)
        if response.status >= 400:
            log.info("%s: %s answered %d", number, route, response.status)
        return response

    async def _answer(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        refusal = self._access.refusal(
            request.method,
            request.headers,
            page_pass=request.cookies.get(PASS, "") if request.path.startswith(ROOT) else "",
            now=time.time(),
            is_public=self._page is not None and request.path in PUBLIC,
        )
        if refusal is not None:
            return _error(refusal.message, refusal.status)
        if self._numbers.waiting > MOST_WAITING:
            return _error(f"more than {MOST_WAITING:,} requests are already waiting", 503)
        try:
            return await handler(request)
        except BadBody as error:
            return _error(str(error), error.status, code=error.code)
        except ConfigError as error:
            return _error(str(error), 400)
        except rewards.NoReward as error:
            return _error(str(error), 500, code="no_verdict")
        except web.HTTPException as error:
            return _error(NO_ROUTE if error.status == 404 else error.reason, error.status)
        except Exception:
            log.exception("a bug while answering %s", request.path)
            if request.writer.output_size and request.transport is not None:
                request.transport.abort()  # half a reply must not look whole
            return _error("a bug in plaudit; its log says more", 500)

    async def _log_in(self, _: web.Request) -> web.Response:
        """A pass to read the page, for a browser that has just sent the token."""
        response = web.json_response({}, headers=HEADERS)
        response.set_cookie(
            PASS,
            self._access.new_pass(time.time()),
            max_age=PASS_SECONDS,
            path=ROOT,
            httponly=True,
            samesite="Strict",
        )
        return response

    async def _fields(self, request: web.Request) -> tuple[bytes, dict[str, Any]]:
        if (request.content_length or 0) > MOST_BYTES:
            raise BadBody(f"the body is larger than {MOST_BYTES:,} bytes", 413)
        size = request.content_length
        if size is None:
            size = MOST_BYTES if request.can_read_body else 0
        if size >= LARGE:
            await self._room.take(size)
            self._held[_number.get()] = size
        if request.headers.get("Expect", "").lower() == "100-continue" and request.version >= (1, 1):
            await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            request.writer.output_size = 0
        try:
            # No limit on the time for a body that has come already, with its head.
            async with asyncio.timeout(None if request.content.is_eof() else BODY_WITHIN):
                body = await request.read()
            if size > len(body) and _number.get() in self._held:  # it did not say how long it is
                self._held[_number.get()] = len(body)
                self._room.give_back(size - len(body))
        except TimeoutError:
            raise BadBody(f"the body took longer than {BODY_WITHIN:g} s", 408) from None
        try:
            fields = _decoded(body)
        except (ValueError, RecursionError) as error:
            raise BadBody(f"the body is not JSON: {error}") from None
        if not isinstance(fields, dict):
            raise BadBody("the body should be a JSON object")
        return body, fields

    # -- OpenAI's wire ------------------------------------------------------------------------------------

    def _passed_on(self, route: str) -> Handler:
        async def pass_on(request: web.Request) -> web.StreamResponse:
            body, fields = await self._fields(request)
            self._check_model(fields.get("model"))
            try:
                return await self._asked(request, route, body, fields)
            except _BrokeOff:
                return await self._asked(request, route, body, fields, is_last=True)

        return pass_on

    async def _asked(
        self, request: web.Request, route: str, body: bytes, fields: dict[str, Any], *, is_last: bool = False
    ) -> web.StreamResponse:
        """What the engine has to say to a client's request. Raises _BrokeOff, unless it is the last time."""
        is_sampled = relay.is_sampled(route, fields)
        digest = relay.digest_of(route, fields)
        if is_sampled:
            digest += self._shared.name.encode()
        draw = self._draws.next(_run_of(request), digest) if is_sampled else None
        # A reply is handed on as it comes where the engine is in this process.
        can_stream = isinstance(self._shared.engine, Engine)
        chunks = _Chunks() if can_stream and fields.get("stream") is True else None
        raw = relay.raw_request(route, body, fields, digest, draw, on_chunk=chunks)
        # What a client waits for is the next piece of a stream: no deadline for the whole of it.
        deadline = _deadline(request)
        pending = self._shared.engine.submit(
            [relay.sample_of(raw)], self._relay, deadline=None if chunks else deadline, job=_job_of(request)
        )
        try:
            if chunks is not None:
                return await self._passed_in_pieces(request, pending, chunks, deadline, is_last=is_last)
            (verdict,) = await pending
        except asyncio.CancelledError:
            if is_sampled or not self._shared.finishes_abandoned:
                pending.cancel(abort=True)
            raise
        return _relayed(verdict)

    async def _passed_in_pieces(
        self,
        request: web.Request,
        pending: Pending,
        chunks: _Chunks,
        deadline: float | None,
        *,
        is_last: bool,
    ) -> web.StreamResponse:
        """The reply as it comes; whole where it comes from the cache or from another client's call."""
        done = asyncio.ensure_future(pending)
        done.add_done_callback(lambda _: chunks.queue.put_nowait(None))
        try:
            async with asyncio.timeout(deadline):
                chunk = await chunks.queue.get()
            if chunk is None:
                (verdict,) = done.result()
                # In the hands of another client, who had seen some of it, as we have not.
                if not is_last and verdict.score is None and verdict.source is Source.SHARED:
                    raise _BrokeOff
                return _relayed(verdict)
            response = web.StreamResponse(headers={**_own_headers(), **_reply_head(chunk)})
            async with read_by(request, 0):
                await response.prepare(request)
            while chunk is not None:
                async with read_by(request, len(chunk)):
                    await response.write(chunk)
                chunk = await chunks.queue.get()
            (verdict,) = done.result()
            if verdict.score is None:
                async with read_by(request, 0):
                    await response.write(b"data: " + _error_body(verdict) + b"\n\n")
            return response
        except TimeoutError:
            pending.cancel(abort=True)
            return _error("no reply within the client's timeout", 500, code="deadline")
        finally:
            done.cancel()

    def _check_model(self, model: Any) -> None:
        if self._shared.models and model not in self._shared.models:
            known = ", ".join(self._shared.models)
            what = "the body names no model" if model is None else f"there is no model {model!r}"
            raise BadBody(f"{what}; this server has {known}", 404, code="model_not_found")

    async def _models(self, _: web.Request) -> web.Response:
        return _json({"object": "list", "data": [*map(_model_fields, self._shared.models)]})

    async def _model(self, request: web.Request) -> web.Response:
        name = request.match_info["model"]
        self._check_model(name)
        return _json(_model_fields(name))

    # -- samples ------------------------------------------------------------------------------------------

    async def _score(self, request: web.Request) -> web.StreamResponse:
        _, fields = await self._fields(request)
        asked = rewards.read_asked(fields, self._shared.judge)
        if fields.get("stream") is True:
            return await self._streamed(request, asked)
        verdicts = await self._verdicts(request, asked)
        return _json({"verdicts": [rewards.verdict_fields(verdict) for verdict in verdicts]})

    async def _streamed(self, request: web.Request, asked: rewards.Asked) -> web.StreamResponse:
        """One line per verdict, as they arrive."""
        pending = self._shared.engine.submit(
            asked.samples, asked.judge, deadline=asked.deadline, job=_job_of(request)
        )
        response = web.StreamResponse(headers={"Content-Type": "application/x-ndjson"})
        try:
            async with read_by(request, 0):
                await response.prepare(request)
            async for index, verdict in _as_completed(pending):
                self._count(asked, verdict)
                line = encode({"index": index, **rewards.verdict_fields(verdict)})
                async with read_by(request, len(line)):
                    await response.write(line + b"\n")
        except asyncio.CancelledError:
            pending.cancel(abort=not self._shared.finishes_abandoned)
            raise
        return response

    async def _verdicts(self, request: web.Request, asked: rewards.Asked) -> list[Verdict]:
        verdicts = await self._shared.engine.ascore(
            asked.samples, asked.judge, deadline=asked.deadline, job=_job_of(request)
        )
        for verdict in verdicts:
            self._count(asked, verdict)
        return verdicts

    def _count(self, asked: rewards.Asked, verdict: Verdict) -> None:
        if (unit := unit_score(verdict, asked.judge)) is not None:
            self._numbers.on_score(unit)

    async def _reward(self, request: web.Request) -> web.Response:
        _, fields = await self._fields(request)
        asked = rewards.read_asked(fields, self._shared.judge)
        on_failure = rewards.read_on_failure(fields.get("on_failure"))
        return _json({"rewards": rewards.rewards_of(asked, await self._verdicts(request, asked), on_failure)})

    async def _get_reward(self, request: web.Request) -> web.Response:
        _, fields = await self._fields(request)
        samples = rewards.openrlhf_samples(fields)
        return _json({"rewards": await self._forced(request, samples)})

    async def _remote_rm(self, request: web.Request) -> web.Response:
        _, fields = await self._fields(request)
        (reward,) = await self._forced(request, [rewards.slime_sample(fields)])
        return _json(reward)

    async def _verify(self, request: web.Request) -> web.Response:
        _, fields = await self._fields(request)
        (reward,) = await self._forced(request, [rewards.nemo_gym_sample(fields)])
        return _json({**fields, "reward": reward})

    async def _forced(self, request: web.Request, samples: list[Any]) -> list[float | None]:
        """Rewards where the reply has no place for a missing one."""
        asked = rewards.Asked(samples, self._shared.judge)
        return rewards.rewards_of(asked, await self._verdicts(request, asked), self._shared.on_failure)

    # -- numbers ------------------------------------------------------------------------------------------

    async def _metrics(self, _: web.Request) -> web.Response:
        text = self._numbers.text()
        return web.Response(body=text.encode(), headers={"Content-Type": "text/plain; version=0.0.4"})

    async def _health(self, _: web.Request) -> web.Response:
        return _json({"status": "ok", "waiting": self._numbers.waiting - 1})

    async def _openapi(self, _: web.Request) -> web.Response:
        return _json(description())


async def _not_yet(_: web.Request) -> None:
    """Wait with 100 Continue until it is known that the body is wanted."""


def _decoded(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except (ValueError, RecursionError):
        if _SURROGATE.search(body) is None:
            raise
    return json.loads(body.decode())  # takes half a surrogate pair for the text that it is


def _deadline(request: web.Request) -> float | None:
    """Seconds in which the client has to have its answer: a little less than it says it waits."""
    try:
        seconds = float(request.headers.get("x-stainless-read-timeout", ""))
    except ValueError:
        return None
    return seconds - min(MARGIN, seconds / 4) if 0 < seconds < 86_400 else None


def _run_of(request: web.Request) -> str:
    """The run's name, from the path or a header; empty where there is none."""
    name = request.match_info.get("run") or unquote(request.headers.get("x-plaudit-run", ""))
    if len(name) > LONGEST_NAME:
        raise BadBody(f"a run's name has at most {LONGEST_NAME} characters")
    return name


def _job_of(request: web.Request) -> str:
    """Who takes turns with others: a run; without its name, all clients with this key and this address."""
    if run := _run_of(request):
        return f"run {run}"
    return _client_digest(request.remote or "", request.headers.get("Authorization", ""))


@functools.lru_cache(maxsize=1024)
def _client_digest(address: str, authorization: str) -> str:
    return hashlib.sha256(f"{address} {authorization}".encode(errors="surrogateescape")).hexdigest()


def _relayed(verdict: Verdict) -> web.Response:
    if verdict.score is None:
        return _failed(verdict)
    body = verdict.reason.encode()
    headers = {
        **_reply_head(body, verdict.source),
        "x-plaudit-cost": f"{(verdict.usage.cost or 0.0) if verdict.source is Source.CALL else 0.0:.6f}",
    }
    return web.Response(body=body, headers=headers)


def _model_fields(name: str) -> dict[str, str]:
    return {"id": name, "object": "model", "owned_by": "plaudit"}


def _own_headers() -> dict[str, str]:
    return {"x-request-id": _number.get(), "X-Content-Type-Options": "nosniff"}


def _reply_head(body: bytes, source: Source = Source.CALL) -> dict[str, str]:
    is_json = body.lstrip().startswith(b"{")
    return {"Content-Type": JSON if is_json else EVENTS, "x-plaudit-source": source.value}


def _failed(verdict: Verdict) -> web.Response:
    """A failure: the endpoint's own words where it refused the request, else ours."""
    status = relay.status_of(verdict)
    failure = verdict.failure
    answer = failure.facts.get("answer") if failure is not None else None
    is_theirs = isinstance(answer, str) and answer.lstrip().startswith("{")
    return _error_response(str(answer).encode() if is_theirs else _error_body(verdict), status)


def _error_body(verdict: Verdict) -> bytes:
    code = verdict.failure.cause.value if verdict.failure is not None else ""
    return relay.error_body(verdict.error or "no answer", status=relay.status_of(verdict), code=code)


def _error(message: str, status: int, *, code: str = "") -> web.Response:
    return _error_response(relay.error_body(message, status=status, code=code), status)


def _error_response(body: bytes, status: int) -> web.Response:
    """An error that clients do not try again: what could be done was done here."""
    headers = {"Content-Type": JSON, "x-should-retry": "true" if status == 503 else "false"}
    return web.Response(body=body, status=status, headers=headers)


def _json(value: Mapping[str, Any] | float | None) -> web.Response:
    return web.Response(body=json.dumps(value).encode(), headers={"Content-Type": JSON})


async def _as_completed(pending: Pending) -> AsyncIterator[tuple[int, Verdict]]:
    """A batch's verdicts as they come, on an event loop."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Queue[tuple[int, Verdict] | None] = asyncio.Queue()

    def follow() -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: there is no listener any more
            for item in pending.as_completed():
                loop.call_soon_threadsafe(ready.put_nowait, item)
            loop.call_soon_threadsafe(ready.put_nowait, None)

    threading.Thread(target=follow, name="plaudit-stream", daemon=True).start()
    while (item := await ready.get()) is not None:
        yield item
