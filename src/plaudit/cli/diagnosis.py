"""From what an endpoint answered to what is well and what is wrong, with the remedy. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from plaudit.cli.console import as_flag
from plaudit.cli.probe import TOGETHER, Answer, Findings
from plaudit.config import Endpoint, Secret
from plaudit.errors import ConfigError
from plaudit.settings import Settings
from plaudit.setup.endpoints import is_local, missing_key, refused_key
from plaudit.setup.model_list import model_names

State = Literal["ok", "note", "wrong"]
MODELS_SHOWN = 8
PARALLEL_ENOUGH = 1.5
"""How many requests must be answered in the time of one to call a server parallel."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing looked at. `wrong` makes the doctor's exit status 1; a `note` is worth knowing."""

    name: str
    state: State
    text: str


def masked(key: Secret) -> str:
    """Enough of a key to recognise it, too little to use it."""
    value = key.reveal()
    start = "sk-" if value.startswith("sk-") else ""
    shown = 4 if len(value) >= 20 else 2 if len(value) >= 10 else 0
    return f"{start}...{value[-shown:]}" if shown else f"({len(value)} characters)"


def check_key(settings: Settings, endpoints: tuple[Endpoint, ...]) -> Check:
    """Whether there is a key, where one is needed, and whether it travels in clear."""
    distant = [endpoint for endpoint in endpoints if not is_local(endpoint.url)]
    if settings.api_key is None:
        if distant:
            return Check("key", "wrong", _said(missing_key(distant[0], settings)))
        return Check("key", "ok", "none set, none needed on this network")
    text = f"{masked(settings.api_key)} from {settings.origin('api_key')}"
    in_clear = [endpoint.url for endpoint in distant if endpoint.url.startswith("http://")]
    if in_clear:
        return Check("key", "wrong", f"{text}, but {in_clear[0]} would send it unencrypted; use https://")
    return Check("key", "ok", text)


def check_endpoint(found: Findings, settings: Settings) -> list[Check]:
    """Reach, model, what it can do, and the limits it tells."""
    checks = [_reach(found, settings)]
    if checks[0].state == "wrong":
        return checks
    checks.append(_model(found, settings))
    if found.test and found.test.is_ok:
        checks += [_schema(found), *_logprobs(found), _limits(found.test)]
    if found.ollama_version:
        checks.append(_parallel(found))
    return checks


def _reach(found: Findings, settings: Settings) -> Check:
    answer, endpoint = found.models, found.endpoint
    if answer.error:
        return Check("reach", "wrong", answer.error)
    if answer.status in (401, 403):
        return Check("reach", "wrong", _said(refused_key(endpoint, answer.status, settings)))
    connect = "" if answer.connect_s is None else f"connected in {answer.connect_s * 1000:.0f} ms"
    secure = ", TLS" if endpoint.url.startswith("https") else ""
    return Check("reach", "ok", f"{endpoint.url}: {connect}{secure}, HTTP {answer.status}")


def _model(found: Findings, settings: Settings) -> Check:
    names, model = model_names(found.models.body), found.endpoint.model
    listed = ", ".join(names[:MODELS_SHOWN]) + (" ..." if len(names) > MODELS_SHOWN else "")
    if not model:
        how = f"there are {listed}" if names else "the endpoint does not list its models"
        return Check("model", "wrong", f"none chosen; {how}; name one with --model")
    test = found.test
    if test is None or test.error:
        return Check("model", "wrong", f"{model}: {test.error if test else 'not asked'}")
    if test.status in (401, 403):
        return Check("model", "wrong", _said(refused_key(found.endpoint, test.status, settings)))
    if not test.is_ok:
        there = f"; there are {listed}" if names and model not in names else ""
        return Check("model", "wrong", f"{model}: HTTP {test.status}: {test.complaint}{there}")
    known = "" if not names or model in names else ", though its list of models does not name it"
    return Check("model", "ok", f"{model} answers in {test.seconds:.2f} s{known}")


def _said(error: ConfigError) -> str:
    return str(error.named(as_flag))


def _schema(found: Findings) -> Check:
    answer = found.schema
    if answer is None or not answer.is_ok:
        return Check("schema", "note", "JSON schemas are not supported; replies are asked for in words")
    try:
        is_kept = isinstance(json.loads(_text(answer.body)).get("ok"), bool)
    except (ValueError, AttributeError):
        is_kept = False
    if is_kept:
        return Check("schema", "ok", "replies follow a JSON schema")
    return Check(
        "schema", "note", "JSON schemas are accepted but not followed; more replies may be unreadable"
    )


def _logprobs(found: Findings) -> list[Check]:
    if found.logprobs is None:
        return []
    choice = _first_choice(found.logprobs.body) if found.logprobs.is_ok else {}
    if choice.get("logprobs"):
        return [Check("logprobs", "ok", "log-probabilities are given")]
    return [Check("logprobs", "note", "no log-probabilities; the judge `yes` needs them")]


def _limits(answer: Answer) -> Check:
    told = {name.lower(): value for name, value in answer.headers.items()}
    limits = [f"{name} {told[name]}" for name in sorted(told) if "ratelimit" in name]
    return Check("limits", "ok", ", ".join(limits) if limits else "the endpoint tells none")


def _parallel(found: Findings) -> Check:
    if not found.alone_s or not found.together_s:
        return Check("ollama", "note", f"version {found.ollama_version}; parallel requests were not measured")
    ratio = TOGETHER * found.alone_s / found.together_s
    times = found.together_s / found.alone_s
    text = (
        f"version {found.ollama_version}; {TOGETHER} requests at once take {times:.1f} times as long as one"
    )
    if ratio >= PARALLEL_ENOUGH:
        return Check("ollama", "ok", text)
    return Check(
        "ollama",
        "note",
        f"{text}: it answers one after another; restart it with OLLAMA_NUM_PARALLEL=4 ollama serve "
        "(each slot takes memory for its own context)",
    )


def _first_choice(body: Any) -> Mapping[str, Any]:
    choices = body.get("choices") if isinstance(body, dict) else None
    return choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}


def _text(body: Any) -> str:
    message = _first_choice(body).get("message") or (body.get("message") if isinstance(body, dict) else None)
    text = message.get("content") if isinstance(message, dict) else None
    return text if isinstance(text, str) else ""
