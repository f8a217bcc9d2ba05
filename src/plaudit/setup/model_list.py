"""What an endpoint says of itself: the models it lists, asked for over HTTP."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
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
class ModelList:
    """What an endpoint says it has, or why it did not say."""

    names: tuple[str, ...] = ()
    status: int | None = None
    error: str | None = None
    """None when the list was read."""
    may_pass: bool = False
    """Whether it may not be started yet: no connection, no answer in time, or one that says as much."""


def with_only_model(endpoint: Endpoint, settings: Settings) -> Endpoint:
    """The endpoint with the one model that it has. ConfigError where there are none, or several.

    A server without a list of models is asked as the other kind, too: Ollama may listen on any port.
    """
    patience = BreakerConfig().cold_patience
    if settings.deadline is not None:
        patience = min(patience, settings.deadline)
    models = ask_models(endpoint, patience=patience)
    other = other_kind(endpoint) if models.status in (404, 405) else None
    if other is not None and not (found := ask_models(other)).error:
        endpoint, models = other, found
    if models.status in (401, 403):
        raise refused_key(endpoint, models.status or 0, settings)
    if models.error and models.status is None:
        raise ConfigError(models.error)
    if models.error:
        url = "correct the URL, which usually ends in /v1, or " if models.status == 404 else ""
        raise ConfigError(f"is not given, and {models.error}; {url}name the model", setting="model")
    if len(models.names) > 1:
        shown = ", ".join(models.names[:MODELS_SHOWN])
        more = f" and {len(models.names) - MODELS_SHOWN} more" if len(models.names) > MODELS_SHOWN else ""
        raise ConfigError(
            f"is not given, and {endpoint.url} has {len(models.names)}; choose one: {shown}{more}",
            setting="model",
        )
    return replace(endpoint, model=models.names[0])


def other_kind(endpoint: Endpoint) -> Endpoint | None:
    """The same server as Ollama where it was taken for OpenAI-compatible, and the reverse.

    None where its URL has a path of its own, which says what it is.
    """
    root = endpoint.url.removesuffix("/v1")
    if urlsplit(root).path:
        return None
    return replace(endpoint, url=root, kind="openai" if endpoint.kind == "ollama" else "ollama")


def ask_models(endpoint: Endpoint, *, patience: float = 0.0) -> ModelList:
    """The models an endpoint lists; one that may be starting is waited for, for so many seconds."""
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
            models = await _ask_models(endpoint)
            if models.may_pass:
                return Reach.AWAY
            if models.error or endpoint.headers:
                return Reach.UNSURE
            if endpoint.key is not None:  # a list that is open to everybody says nothing of the key
                unkeyed = await _ask_models(replace(endpoint, api_key=None))
                if unkeyed.status not in (401, 403):
                    return Reach.UNSURE
            has_model = endpoint.model in models.names or await _has_model(endpoint)
            return Reach.PROVEN if has_model else Reach.UNSURE
    except TimeoutError:
        return Reach.AWAY


async def _has_model(endpoint: Endpoint) -> bool:
    """Whether an endpoint knows a model that it does not list: another name of one, like Ollama's."""
    is_ollama = endpoint.kind == "ollama"
    url = endpoint.route("/api/show" if is_ollama else f"/models/{quote(endpoint.model, safe='')}")
    timeout = aiohttp.ClientTimeout(total=ASK_TIMEOUT)
    asked = {"method": "POST", "json": {"model": endpoint.model}} if is_ollama else {"method": "GET"}
    async with aiohttp.ClientSession(timeout=timeout) as session:
        try:
            options = {**asked, **request_options(endpoint)}
            async with session.request(url=URL(url, encoded=True), **options) as response:
                return response.status == 200
        except (aiohttp.ClientError, OSError):
            return False


def models_url(endpoint: Endpoint) -> str:
    """Where an endpoint lists its models."""
    return endpoint.route("/api/tags" if endpoint.kind == "ollama" else "/models")


def request_options(endpoint: Endpoint) -> dict[str, Any]:
    """How a request of our own to this endpoint is sent: its key, its proxy, no redirects, no compression.

    For each request, not for the session: aiohttp sends a session's headers to the proxy too. And not by
    `trust_env`, which would read passwords from .netrc.
    """
    headers = {"Authorization": f"Bearer {endpoint.key}"} if endpoint.key else {}
    return {
        "headers": {**headers, "Accept-Encoding": "identity"},
        "proxy": None if endpoint.is_direct else proxy_for(endpoint.url, os.environ),
        "allow_redirects": False,
    }


async def once_ready(
    endpoint: Endpoint, ask: Callable[[], Awaitable[ModelList]], *, patience: float
) -> ModelList:
    """What an endpoint answers once it is ready, or its last answer after so many seconds."""
    loop = asyncio.get_running_loop()
    give_up_at = loop.time() + patience
    is_told = False

    def tell(error: str | None) -> None:
        nonlocal is_told
        if patience and not is_told:
            log.warning("%s. Still trying, for up to %g s", error, patience)
        is_told = True

    async def once(seconds: float) -> ModelList:
        try:
            async with asyncio.timeout(seconds):
                return await ask()
        except TimeoutError as error:
            return ModelList(error=unreachable(endpoint, error), may_pass=True)

    silent = http_errors.unreachable(endpoint, f"there was no answer within {TELL_AFTER:g} s")
    timer = loop.call_later(TELL_AFTER, tell, str(silent))
    models = await once(max(patience, LEAST_PATIENCE) if patience else ASK_TIMEOUT)
    while models.may_pass and loop.time() < give_up_at:
        tell(models.error)
        await asyncio.sleep(min(ASK_EVERY, give_up_at - loop.time()))
        models = await once(max(give_up_at - loop.time(), LEAST_PATIENCE))
    timer.cancel()
    return models


async def _ask_models(endpoint: Endpoint) -> ModelList:
    timeout = aiohttp.ClientTimeout(total=ASK_TIMEOUT)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        try:
            url = URL(models_url(endpoint), encoded=True)
            async with session.get(url, **request_options(endpoint)) as response:
                body = await read_up_to(ASK_LIMIT, response)
                status = response.status
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            return ModelList(error=unreachable(endpoint, error), may_pass=_may_pass(error))
    asked = f"GET {without_password(models_url(endpoint))}"
    if status != 200:
        may_pass = status in NOT_READY
        return ModelList(status=status, error=f"{asked} answered {status}", may_pass=may_pass)
    if body is None:
        return ModelList(status=status, error=f"{asked} answered with more than {ASK_LIMIT >> 20} MiB")
    names = model_names(decoded(body))
    return ModelList(names=names, status=status, error=None if names else f"{asked} lists no model")


async def _ask_securely(endpoint: Endpoint) -> ModelList:
    """`_ask_models`, with a look at whether a server that does not answer to https answers to http."""
    asked = asyncio.ensure_future(_ask_models(endpoint))
    await asyncio.wait([asked], timeout=PLAIN_TIMEOUT)
    is_silent = not asked.done() or (asked.result().error is not None and asked.result().status is None)
    if is_silent and endpoint.url.startswith("https://") and await _speaks_http(endpoint):
        asked.cancel()
        return ModelList(error=str(http_errors.unreachable(endpoint, http_errors.PLAIN_HTTP[0])))
    return await asked


async def _speaks_http(endpoint: Endpoint) -> bool:
    """Whether the server answers without encryption. No key is sent to find out."""
    url = endpoint.url.replace("https://", "http://", 1)
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=PLAIN_TIMEOUT)) as session:
        try:
            async with session.get(URL(url, encoded=True), allow_redirects=False) as response:
                # a redirect leads to https; with 400, servers complain of http where they want https
                return not 300 <= response.status <= 400
        except (aiohttp.ClientError, TimeoutError, OSError):
            return False


async def read_up_to(limit: int, response: aiohttp.ClientResponse) -> bytes | None:
    """A body, unpacked; None where it is larger than that, and the rest of it is not read."""
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > limit:
            response.close()
            return None
    return bytes(body)


def _may_pass(error: Exception) -> bool:
    """Whether no connection came about, for no fault of its certificate, or no answer in time."""
    if isinstance(error, aiohttp.ClientSSLError):
        return False
    return isinstance(error, aiohttp.ClientConnectorError | TimeoutError)


def unreachable(endpoint: Endpoint, error: Exception) -> str:
    """Which URL did not answer, why, and what to do about it."""
    cause = str(error) or type(error).__name__
    if isinstance(error, TimeoutError):
        cause = "no answer in time"
    elif isinstance(error, aiohttp.ClientConnectorError):
        cause = http_errors.system_words(error.os_error)
    return str(http_errors.unreachable(endpoint, without_password(cause)))


def model_names(body: Any) -> tuple[str, ...]:
    """The names in a decoded list of models: OpenAI's under `data`, Ollama's under `models`."""
    rows = (body.get("data") or body.get("models")) if isinstance(body, dict) else None
    rows = rows if isinstance(rows, list) else []
    found = (row.get("id") or row.get("name") for row in rows if isinstance(row, dict))
    return tuple(name for name in found if isinstance(name, str))


def decoded(body: bytes) -> Any:
    """A JSON body, or None where it is none."""
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
