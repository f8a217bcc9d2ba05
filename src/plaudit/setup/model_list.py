"""Questions of our own to an endpoint, over HTTP: which models it lists, above all."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any
from urllib.parse import quote, urlsplit

import aiohttp
import msgspec
from yarl import URL

from plaudit.config import Endpoint, without_password
from plaudit.errors import ConfigError
from plaudit.policy.breaker import BreakerConfig
from plaudit.settings import Settings
from plaudit.setup.endpoints import refused_key
from plaudit.transports import http_errors
from plaudit.transports.client import headers_for
from plaudit.transports.complaint import complaint_of
from plaudit.transports.connector import TELL_AFTER
from plaudit.transports.proxy import proxy_for

log = logging.getLogger("plaudit")

ASK_TIMEOUT = 10.0
PLAIN_TIMEOUT = 1.0
"""Seconds after which a silent server is asked without encryption, and in which it has to answer that."""
ASK_EVERY = 0.5
"""Seconds between two questions to an endpoint that is not ready."""
NOT_READY = (429, 502, 503, 504)
"""What a server answers that loads its model, and a gateway whose server starts."""
LEAST_PATIENCE = 1.0
"""Seconds that any question has: a deadline is kept to within a second."""
ASK_LIMIT = 4 << 20
"""Bytes of an answer to a question of our own that are read: a list of models, a reply to a test."""
MODELS_SHOWN = 12


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """One answer, or why there was none."""

    status: int | None = None
    seconds: float = 0.0
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    """Decoded; None where it is no JSON."""
    complaint: str = ""
    """What the server said of an error, in short."""
    error: str | None = None
    """Why nothing came back, or nothing that is of use."""
    may_pass: bool = False
    """Whether the server may not be up yet: no connection, no answer in time, or one that says as much."""

    @property
    def is_ok(self) -> bool:
        return self.status == 200

    @property
    def models(self) -> tuple[str, ...]:
        """The names in a list of models, each once: OpenAI's under `data`, Ollama's under `models`."""
        listed = self.body if self.is_ok and isinstance(self.body, dict) else {}
        rows = listed.get("data") or listed.get("models")
        rows = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
        names = (row.get("id") or row.get("name") for row in rows)
        return tuple(dict.fromkeys(name for name in names if isinstance(name, str)))

    def check(self, endpoint: Endpoint, settings: Settings) -> None:
        """Raise ConfigError where the endpoint refuses the key, or cannot be reached."""
        if self.status in (401, 403):
            raise refused_key(endpoint, self.status, settings)
        if self.error and self.status is None:
            raise ConfigError(self.error)


async def ask(
    endpoint: Endpoint, method: str, url: str, body: Any = None, *, within: float = ASK_TIMEOUT
) -> HttpAnswer:
    """Put one question to an endpoint, as its calls are sent; redirects are not followed."""
    # Headers for the request, not for the session: aiohttp sends those to the proxy too. And no `trust_env`,
    # which would read passwords from .netrc.
    headers = {**headers_for(endpoint), "Accept-Encoding": "identity"}
    timeout = aiohttp.ClientTimeout(total=within, sock_connect=ASK_TIMEOUT)
    started = time.monotonic()
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.request(
                method,
                URL(url, encoded=True),
                json=body,
                headers=headers,
                proxy=_proxy(endpoint),
                allow_redirects=False,
            ) as response,
        ):
            raw = await _read_up_to(ASK_LIMIT, response)
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        is_certificate = isinstance(error, aiohttp.ClientSSLError)
        may_pass = isinstance(error, aiohttp.ClientConnectorError | TimeoutError) and not is_certificate
        return HttpAnswer(error=_unreachable(endpoint, error), may_pass=may_pass)
    status, decoded = response.status, None
    if raw is None:
        asked = f"{method} {without_password(url)}"
        return HttpAnswer(status, error=f"{asked} answered with more than {ASK_LIMIT >> 20} MiB")
    with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        decoded = msgspec.json.decode(raw)
    return HttpAnswer(
        status,
        seconds=time.monotonic() - started,
        headers=dict(response.headers),
        body=decoded,
        complaint="" if status == 200 else complaint_of(raw).excerpt(*endpoint.secrets),
    )


def with_only_model(endpoint: Endpoint, settings: Settings) -> Endpoint:
    """The endpoint with the one model that it has. ConfigError where there are none, or several.

    A server without a list of models is asked as the other kind, too: Ollama may listen on any port.
    """
    patience = BreakerConfig().cold_patience
    if settings.deadline is not None:
        patience = min(patience, settings.deadline)
    answer = ask_models(endpoint, patience=patience)
    other = other_kind(endpoint) if answer.status in (404, 405) else None
    if other is not None and not (found := ask_models(other)).error:
        endpoint, answer = other, found
    answer.check(endpoint, settings)
    if answer.error:
        url = "correct the URL, which usually ends in /v1, or " if answer.status == 404 else ""
        raise ConfigError(f"is not given, and {answer.error}; {url}name the model", setting="model")
    if (count := len(models := answer.models)) > 1:
        shown = ", ".join(models[:MODELS_SHOWN])
        more = f" and {count - MODELS_SHOWN} more" if count > MODELS_SHOWN else ""
        raise ConfigError(
            f"is not given, and {endpoint.url} has {count}; choose one: {shown}{more}", setting="model"
        )
    return replace(endpoint, model=models[0])


def other_kind(endpoint: Endpoint) -> Endpoint | None:
    """The same server as Ollama where it was taken for OpenAI-compatible, and the reverse.

    None where its URL has a path of its own, which says what it is.
    """
    root = endpoint.url.removesuffix("/v1")
    if urlsplit(root).path:
        return None
    return replace(endpoint, url=root, kind="openai" if endpoint.kind == "ollama" else "ollama")


def ask_models(endpoint: Endpoint, *, patience: float = 0.0) -> HttpAnswer:
    """An endpoint's list of models, or an error; one that may be starting is waited for, so many seconds."""
    return asyncio.run(once_ready(endpoint, lambda: _ask_securely(endpoint), patience=patience))


class Reach(Enum):
    """What an endpoint's list of models tells, without a call that costs anything."""

    AWAY = "away"
    """It is not up yet, or too busy."""
    PROVEN = "proven"
    """It takes the key, and has the model."""
    UNSURE = "unsure"
    """It does not tell: only a call can."""


def reach(endpoints: Sequence[Endpoint], *, seconds: float) -> Reach:
    """What at least one of these endpoints is, in the order of PROVEN, UNSURE, AWAY."""

    async def ask_all() -> list[Reach]:
        return await asyncio.gather(*(_reach(endpoint, seconds) for endpoint in endpoints))

    with ThreadPoolExecutor(1) as aside:  # the caller may be on an event loop
        found = aside.submit(asyncio.run, ask_all()).result()
    return next((one for one in (Reach.PROVEN, Reach.UNSURE) if one in found), Reach.AWAY)


async def _reach(endpoint: Endpoint, seconds: float) -> Reach:
    try:
        async with asyncio.timeout(seconds):
            answer = await _ask_models(endpoint)
            if answer.may_pass:
                return Reach.AWAY
            if answer.error or endpoint.headers:
                return Reach.UNSURE
            if endpoint.key is not None:  # a list that is open to everybody says nothing of the key
                unkeyed = await _ask_models(replace(endpoint, api_key=None))
                if unkeyed.status not in (401, 403):
                    return Reach.UNSURE
            has_model = endpoint.model in answer.models or await _has_model(endpoint)
            return Reach.PROVEN if has_model else Reach.UNSURE
    except TimeoutError:
        return Reach.AWAY


async def _has_model(endpoint: Endpoint) -> bool:
    """Whether an endpoint knows a model that it does not list: another name of one, like Ollama's."""
    if endpoint.kind == "ollama":
        return (await ask(endpoint, "POST", endpoint.route("/api/show"), {"model": endpoint.model})).is_ok
    return (await ask(endpoint, "GET", endpoint.route(f"/models/{quote(endpoint.model, safe='')}"))).is_ok


def models_url(endpoint: Endpoint) -> str:
    """Where an endpoint lists its models."""
    return endpoint.route("/api/tags" if endpoint.kind == "ollama" else "/models")


async def once_ready(
    endpoint: Endpoint, look: Callable[[], Awaitable[HttpAnswer]], *, patience: float
) -> HttpAnswer:
    """What an endpoint answers once it is ready, or its last answer after so many seconds."""
    loop = asyncio.get_running_loop()
    give_up_at = loop.time() + patience
    is_told = False

    def tell(error: str | None) -> None:
        nonlocal is_told
        if patience and not is_told:
            log.warning("%s. Still trying, for up to %g s", error, patience)
        is_told = True

    async def once(seconds: float) -> HttpAnswer:
        try:
            async with asyncio.timeout(seconds):
                return await look()
        except TimeoutError as error:
            return HttpAnswer(error=_unreachable(endpoint, error), may_pass=True)

    cause = f"there was no answer within {TELL_AFTER:g} s"
    silent = http_errors.unreachable(endpoint, cause, proxy=_proxy(endpoint))
    timer = loop.call_later(TELL_AFTER, tell, str(silent))
    answer = await once(max(patience, LEAST_PATIENCE) if patience else ASK_TIMEOUT)
    while answer.may_pass and loop.time() < give_up_at:
        tell(answer.error)
        await asyncio.sleep(min(ASK_EVERY, give_up_at - loop.time()))
        answer = await once(max(give_up_at - loop.time(), LEAST_PATIENCE))
    timer.cancel()
    return answer


async def _ask_models(endpoint: Endpoint) -> HttpAnswer:
    url = models_url(endpoint)
    answer = await ask(endpoint, "GET", url)
    if answer.error or answer.models:
        return answer
    what = "lists no model" if answer.is_ok else f"answered {answer.status}"
    return replace(answer, error=f"GET {without_password(url)} {what}", may_pass=answer.status in NOT_READY)


async def _ask_securely(endpoint: Endpoint) -> HttpAnswer:
    """`_ask_models`, with a look at whether a server that does not answer to https answers to http."""
    asked = asyncio.ensure_future(_ask_models(endpoint))
    await asyncio.wait([asked], timeout=PLAIN_TIMEOUT)
    is_silent = not asked.done() or (asked.result().error is not None and asked.result().status is None)
    if is_silent and endpoint.url.startswith("https://") and await _speaks_http(endpoint):
        asked.cancel()
        return HttpAnswer(error=str(http_errors.unreachable(endpoint, http_errors.PLAIN_HTTP[0])))
    return await asked


async def _speaks_http(endpoint: Endpoint) -> bool:
    """Whether the server answers without encryption. No key is sent to find out."""
    stranger = replace(endpoint, api_key=None, headers={}, is_direct=True)
    url = endpoint.url.replace("https://", "http://", 1)
    status = (await ask(stranger, "GET", url, within=PLAIN_TIMEOUT)).status
    # a redirect leads to https; with 400, servers complain of http where they want https
    return status is not None and not 300 <= status <= 400


async def _read_up_to(limit: int, response: aiohttp.ClientResponse) -> bytes | None:
    """A body, unpacked; None where it is larger than that, and the rest of it is not read."""
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > limit:
            response.close()
            return None
    return bytes(body)


def _proxy(endpoint: Endpoint) -> str | None:
    return None if endpoint.is_direct else proxy_for(endpoint.url, os.environ)


def _unreachable(endpoint: Endpoint, error: Exception) -> str:
    """Which URL did not answer, why, and what to do about it."""
    cause = str(error) or type(error).__name__
    if isinstance(error, TimeoutError):
        cause = "no answer in time"
    elif isinstance(error, aiohttp.ClientConnectorError):
        cause = http_errors.system_words(error.os_error)
    return str(http_errors.unreachable(endpoint, without_password(cause), proxy=_proxy(endpoint)))
