"""What `plaudit doctor` asks an endpoint: a few tiny requests, and exactly what came back."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import aiohttp
from yarl import URL

from plaudit.config import OLLAMA_PORT, Endpoint, without_password
from plaudit.setup.model_list import (
    ASK_LIMIT,
    decoded,
    model_names,
    models_url,
    read_up_to,
    request_options,
    unreachable,
)
from plaudit.transports.complaint import complaint_of

PATIENCE = 60.0
"""Seconds one answer may take: a server may have to load its model first."""
TOGETHER = 4
SCHEMA = {
    "type": "object",
    "properties": {"ok": {"type": "boolean"}},
    "required": ["ok"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer, or why there was none."""

    status: int | None = None
    seconds: float = 0.0
    connect_s: float | None = None
    """Seconds until the connection stood, TLS included; None where one was there already."""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    complaint: str = ""
    """What the server said of an error, in short."""
    error: str | None = None
    """Why nothing came back."""

    @property
    def is_ok(self) -> bool:
        return self.status == 200


@dataclass(frozen=True, slots=True)
class Findings:
    """Everything that was asked of one endpoint; what was not asked is None."""

    endpoint: Endpoint
    models: Answer
    test: Answer | None = None
    schema: Answer | None = None
    logprobs: Answer | None = None
    ollama_version: str | None = None
    alone_s: float | None = None
    """Seconds one short request takes, and four of them sent together."""
    together_s: float | None = None


async def examine(endpoint: Endpoint) -> Findings:
    """Ask what there is to ask, stopping at the first thing that makes the rest pointless."""
    timeout = aiohttp.ClientTimeout(total=PATIENCE, sock_connect=10.0)
    async with aiohttp.ClientSession(timeout=timeout, trace_configs=[_connect_timer()]) as session:
        ask = _Asker(endpoint, session)
        models = await ask.models()
        names = model_names(models.body)
        if not endpoint.model and len(names) == 1:
            endpoint = replace(endpoint, model=names[0])
            ask = _Asker(endpoint, session)
        if models.error or models.status in (401, 403) or not endpoint.model:
            return Findings(endpoint, models)
        test = await ask.chat()
        if not test.is_ok:
            return Findings(endpoint, models, test)
        version = await ask.ollama_version()
        alone, together = await ask.parallel() if version else (None, None)
        return Findings(
            endpoint,
            models,
            test,
            schema=await ask.chat(schema=True),
            logprobs=await ask.chat(logprobs=True) if endpoint.kind == "openai" else None,
            ollama_version=version,
            alone_s=alone,
            together_s=together,
        )


class _Asker:
    """The requests themselves, in the words of each kind of endpoint."""

    def __init__(self, endpoint: Endpoint, session: aiohttp.ClientSession) -> None:
        self._endpoint = endpoint
        self._session = session
        self._is_native = endpoint.kind == "ollama"
        self._limit_name = "max_tokens"

    async def models(self) -> Answer:
        return await self._send("GET", models_url(self._endpoint))

    async def chat(
        self, *, tokens: int = 1, schema: bool = False, logprobs: bool = False, text: str = "Say ok."
    ) -> Answer:
        tokens = 32 if schema else tokens
        answer = await self._chat(tokens, schema, logprobs, text)
        if answer.status == 400 and "max_completion_tokens" in answer.complaint:
            self._limit_name = "max_completion_tokens"
            answer = await self._chat(tokens, schema, logprobs, text)
        return answer

    async def ollama_version(self) -> str | None:
        parts = urlsplit(self._endpoint.url)
        if not (self._is_native or parts.port == OLLAMA_PORT):
            return None
        answer = await self._send("GET", f"{parts.scheme}://{parts.netloc}/api/version")
        version = answer.body.get("version") if isinstance(answer.body, dict) else None
        return str(version) if answer.is_ok and version else None

    async def parallel(self) -> tuple[float, float]:
        """Seconds for one short request, and for four at once; the prompts differ, so that none is cached."""
        started = time.monotonic()
        await self.chat(tokens=8, text="Count to 0.")
        alone = time.monotonic() - started
        started = time.monotonic()
        await asyncio.gather(
            *(self.chat(tokens=8, text=f"Count to {number}.") for number in range(1, TOGETHER + 1))
        )
        return alone, time.monotonic() - started

    async def _chat(self, tokens: int, schema: bool, logprobs: bool, text: str) -> Answer:
        body: dict[str, Any] = {
            "model": self._endpoint.model,
            "messages": [{"role": "user", "content": 'Reply {"ok": true}' if schema else text}],
            "stream": False,
        }
        if self._is_native:
            body["options"] = {"num_predict": tokens}
            if schema:
                body["format"] = SCHEMA
            return await self._send("POST", self._endpoint.route("/api/chat"), body)
        body[self._limit_name] = tokens
        if schema:
            shape = {"name": "ok", "strict": True, "schema": SCHEMA}
            body["response_format"] = {"type": "json_schema", "json_schema": shape}
        if logprobs:
            body |= {"logprobs": True, "top_logprobs": 1}
        return await self._send("POST", self._endpoint.route("/chat/completions"), body)

    async def _send(self, method: str, url: str, body: Any = None) -> Answer:
        times = SimpleNamespace(connect_s=None)
        started = time.monotonic()
        try:
            async with self._session.request(
                method,
                URL(url, encoded=True),
                json=body,
                trace_request_ctx=times,
                **request_options(self._endpoint),
            ) as response:
                raw = await read_up_to(ASK_LIMIT, response)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            return Answer(error=unreachable(self._endpoint, error))
        if raw is None:
            return Answer(error=f"{without_password(url)} answered with more than {ASK_LIMIT >> 20} MiB")
        return Answer(
            status=response.status,
            seconds=time.monotonic() - started,
            connect_s=times.connect_s,
            headers=dict(response.headers),
            body=decoded(raw),
            complaint="" if response.status == 200 else complaint_of(raw).excerpt(self._endpoint.key),
        )


def _connect_timer() -> aiohttp.TraceConfig:
    async def start(_: Any, context: Any, __: Any) -> None:
        context.started = time.monotonic()

    async def end(_: Any, context: Any, __: Any) -> None:
        context.trace_request_ctx.connect_s = time.monotonic() - context.started

    trace = aiohttp.TraceConfig()
    trace.on_connection_create_start.append(start)
    trace.on_connection_create_end.append(end)
    return trace
