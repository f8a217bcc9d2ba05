"""What `plaudit doctor` finds out about an endpoint: a few tiny requests, and what their answers say."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal
from urllib.parse import urlsplit

from plaudit.cli.options import as_flag
from plaudit.config import OLLAMA_PORT, Endpoint, Secret
from plaudit.errors import ConfigError
from plaudit.settings import Settings
from plaudit.setup.endpoints import is_local, missing_key, needs_key, refused_key
from plaudit.setup.model_list import HttpAnswer, ask, models_url

PATIENCE = 60.0
"""Seconds one answer may take: a server may have to load its model first."""
TOGETHER = 4
State = Literal["ok", "note", "wrong"]
MODELS_SHOWN = 8
PARALLEL_ENOUGH = 1.5
"""How many requests must be answered in the time of one to call a server parallel."""
SCHEMA = {
    "type": "object",
    "properties": {"ok": {"type": "boolean"}},
    "required": ["ok"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class Findings:
    """Everything that was asked of one endpoint; what was not asked is None."""

    endpoint: Endpoint
    models: HttpAnswer
    test: HttpAnswer | None = None
    schema: HttpAnswer | None = None
    logprobs: HttpAnswer | None = None
    ollama_version: str | None = None
    alone_s: float | None = None
    """Seconds one short request takes, and four of them sent together."""
    together_s: float | None = None


async def examine(endpoint: Endpoint) -> Findings:
    """Ask what there is to ask, stopping at the first thing that makes the rest pointless."""
    models = await ask(endpoint, "GET", models_url(endpoint), within=PATIENCE)
    if not endpoint.model and len(models.models) == 1:
        endpoint = replace(endpoint, model=models.models[0])
    if models.error or models.status in (401, 403) or not endpoint.model:
        return Findings(endpoint, models)
    asker = _Asker(endpoint)
    test = await asker.chat()
    if not test.is_ok:
        return Findings(endpoint, models, test)
    version = await asker.ollama_version()
    alone, together = await asker.parallel() if version else (None, None)
    return Findings(
        endpoint,
        models,
        test,
        schema=await asker.chat(schema=True),
        logprobs=await asker.chat(logprobs=True) if endpoint.kind == "openai" else None,
        ollama_version=version,
        alone_s=alone,
        together_s=together,
    )


class _Asker:
    """The requests themselves, in the words of each kind of endpoint."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._is_native = endpoint.kind == "ollama"
        self._limit_name = "max_tokens"

    async def chat(
        self, *, tokens: int = 1, schema: bool = False, logprobs: bool = False, text: str = "Say ok."
    ) -> HttpAnswer:
        body: dict[str, Any] = {
            "model": self._endpoint.model,
            "messages": [{"role": "user", "content": 'Reply {"ok": true}' if schema else text}],
            "stream": False,
        }
        tokens = 32 if schema else tokens
        if self._is_native:
            body |= {"options": {"num_predict": tokens}} | ({"format": SCHEMA} if schema else {})
            return await self._ask("POST", "/api/chat", body)
        if schema:
            shape = {"name": "ok", "strict": True, "schema": SCHEMA}
            body["response_format"] = {"type": "json_schema", "json_schema": shape}
        if logprobs:
            body |= {"logprobs": True, "top_logprobs": 1}
        answer = await self._ask("POST", "/chat/completions", {**body, self._limit_name: tokens})
        if answer.status == 400 and "max_completion_tokens" in answer.complaint:
            self._limit_name = "max_completion_tokens"
            answer = await self._ask("POST", "/chat/completions", {**body, self._limit_name: tokens})
        return answer

    async def ollama_version(self) -> str | None:
        parts = urlsplit(self._endpoint.url)
        if not (self._is_native or parts.port == OLLAMA_PORT):
            return None
        answer = await ask(
            self._endpoint, "GET", f"{parts.scheme}://{parts.netloc}/api/version", within=PATIENCE
        )
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

    async def _ask(self, method: str, route: str, body: Any) -> HttpAnswer:
        return await ask(self._endpoint, method, self._endpoint.route(route), body, within=PATIENCE)


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One thing looked at. `wrong` makes the doctor's exit status 1; a `note` is worth knowing."""

    name: str
    state: State
    text: str


def ok(name: str, text: str) -> CheckResult:
    return CheckResult(name, "ok", text)


def note(name: str, text: str) -> CheckResult:
    return CheckResult(name, "note", text)


def wrong(name: str, text: str) -> CheckResult:
    return CheckResult(name, "wrong", text)


def masked(key: Secret) -> str:
    """Enough of a key to recognise it, too little to use it."""
    value = key.reveal()
    start = "sk-" if value.startswith("sk-") else ""
    shown = 4 if len(value) >= 20 else 2 if len(value) >= 10 else 0
    return f"{start}...{value[-shown:]}" if shown else f"({len(value)} characters)"


def check_key(settings: Settings, endpoints: tuple[Endpoint, ...]) -> CheckResult:
    """Whether there is a key, where one is needed, and whether it travels in clear."""
    distant = [endpoint for endpoint in endpoints if not is_local(endpoint.url)]
    if settings.api_key is None:
        for endpoint in distant:
            if needs_key(endpoint.url):
                return wrong("key", _said(missing_key(endpoint, settings)))
        if distant:
            return note("key", "none set; these servers may not need one")
        return ok("key", "none set, and none needed on this network")
    text = f"{masked(settings.api_key)} from {settings.origin('api_key')}"
    in_clear = [endpoint.url for endpoint in distant if endpoint.url.startswith("http://")]
    if in_clear:
        return wrong("key", f"{text}, but {in_clear[0]} would receive it unencrypted; use https://")
    return ok("key", text)


def check_endpoint(found: Findings, settings: Settings) -> list[CheckResult]:
    """Reach, model, what it can do, and the limits it tells."""
    checks = [_reach(found, settings)]
    if checks[0].state == "wrong":
        return checks
    checks.append(_model(found, settings))
    if found.test and found.test.is_ok:
        checks.append(_schema(found.schema))
        if found.logprobs is not None:
            checks.append(_logprobs(found.logprobs))
        checks.append(_limits(found.test))
    if found.alone_s and found.together_s:
        checks.append(_parallel(f"version {found.ollama_version}", found.alone_s, found.together_s))
    return checks


def _reach(found: Findings, settings: Settings) -> CheckResult:
    answer, endpoint = found.models, found.endpoint
    if answer.error:
        hint = " (doctor looks once; plaudit score waits a minute for a server that is still starting)"
        return wrong("reach", answer.error + (hint if answer.may_pass else ""))
    if answer.status in (401, 403):
        return wrong("reach", _said(refused_key(endpoint, answer.status, settings)))
    secure = " over TLS" if endpoint.url.startswith("https") else ""
    answered = f"answers in {answer.seconds * 1000:.0f} ms{secure} (HTTP {answer.status})"
    return ok("reach", f"{endpoint.url} {answered}")


def _model(found: Findings, settings: Settings) -> CheckResult:
    names, model = found.models.models, found.endpoint.model
    listed = ", ".join(names[:MODELS_SHOWN]) + (" ..." if len(names) > MODELS_SHOWN else "")
    if not model:
        how = f"there are {listed}" if names else "the endpoint does not list its models"
        return wrong("model", f"none chosen; {how}; name one with --model")
    test = found.test
    if test is None or test.error:
        return wrong("model", f"{model}: {test.error if test else 'not asked'}")
    if test.status in (401, 403):
        return wrong("model", _said(refused_key(found.endpoint, test.status, settings)))
    if not test.is_ok:
        there = f"; there are {listed}" if names and model not in names else ""
        return wrong("model", f"{model}: HTTP {test.status}: {test.complaint}{there}")
    known = "" if not names or model in names else ", though its list of models does not name it"
    return ok("model", f"{model} answers in {test.seconds:.2f} s{known}")


def _said(error: ConfigError) -> str:
    return str(error.named(as_flag))


def _schema(answer: HttpAnswer | None) -> CheckResult:
    if answer is None or not answer.is_ok:
        return note("schema", "JSON schemas are not supported; the prompt describes the format instead")
    try:
        is_kept = isinstance(json.loads(_text(answer.body)).get("ok"), bool)
    except (ValueError, AttributeError):
        is_kept = False
    if is_kept:
        return ok("schema", "replies follow a JSON schema")
    return note("schema", "JSON schemas are accepted but not followed; more replies may be unreadable")


def _logprobs(answer: HttpAnswer) -> CheckResult:
    if answer.is_ok and _first_choice(answer.body).get("logprobs"):
        return ok("logprobs", "log-probabilities are supported")
    return note("logprobs", "no log-probabilities; the judge `yes` needs them")


def _limits(answer: HttpAnswer) -> CheckResult:
    headers = {name.lower(): value for name, value in answer.headers.items()}
    limits = [f"{name} {headers[name]}" for name in sorted(headers) if "ratelimit" in name]
    return ok("limits", ", ".join(limits) if limits else "none in the endpoint's headers")


def _parallel(version: str, alone: float, together: float) -> CheckResult:
    text = f"{version}; {TOGETHER} requests at once take {together / alone:.1f} times as long as one"
    if TOGETHER * alone / together >= PARALLEL_ENOUGH:
        return ok("ollama", text)
    return note(
        "ollama",
        f"{text}: it answers them one after another; restart it with OLLAMA_NUM_PARALLEL=4 ollama serve "
        "(each slot takes memory for its own context)",
    )


def _first_choice(body: Any) -> Mapping[str, Any]:
    choices = body.get("choices") if isinstance(body, dict) else None
    return choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}


def _text(body: Any) -> str:
    message = _first_choice(body).get("message") or (body.get("message") if isinstance(body, dict) else None)
    text = message.get("content") if isinstance(message, dict) else None
    return text if isinstance(text, str) else ""
