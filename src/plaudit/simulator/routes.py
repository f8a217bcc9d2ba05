"""What is served where: the paths at which a model answers, with how bodies are read and replies written.

Beside them: the list of models, statistics, and the scenario, which can be changed live (`control`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import msgspec

from plaudit.errors import ConfigError
from plaudit.simulator import ollama_wire, openai_wire
from plaudit.simulator.ask import Outcome
from plaudit.simulator.live import LiveServer
from plaudit.simulator.presets import scenario_from
from plaudit.simulator.protocol import HttpRequest, Response
from plaudit.types import Reply

HTML = b"<html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1></body></html>"


@dataclass(frozen=True, slots=True)
class Route:
    """One path that a model answers at."""

    decoder: msgspec.json.Decoder[Any]
    """Gives the body: `body.ask()` is the question, `body.stream` whether it is to be streamed."""
    write: Callable[[Reply], bytes]
    write_error: Callable[[int, str, str], bytes]
    write_stream: Callable[[Reply], bytes] | None = None
    stream_type: str = "text/event-stream"


def _openai(
    body: type, write: Callable[[Reply], bytes], stream: Callable[[Reply], bytes] | None = None
) -> Route:
    return Route(msgspec.json.Decoder(body), write, openai_wire.error_reply, stream)


def _ollama(
    body: type, write: Callable[[Reply], bytes], stream: Callable[[Reply], bytes] | None = None
) -> Route:
    return Route(msgspec.json.Decoder(body), write, ollama_wire.error_reply, stream, "application/x-ndjson")


ROUTES = {
    "/v1/chat/completions": _openai(openai_wire.ChatBody, openai_wire.chat_reply, openai_wire.chat_stream),
    "/v1/completions": _openai(openai_wire.CompletionBody, openai_wire.completion_reply),
    "/v1/responses": _openai(openai_wire.ResponsesBody, openai_wire.responses_reply),
    "/v1/embeddings": _openai(openai_wire.EmbeddingBody, openai_wire.embedding_reply),
    "/api/chat": _ollama(ollama_wire.OllamaChatBody, ollama_wire.chat_reply, ollama_wire.chat_stream),
    "/api/generate": _ollama(
        ollama_wire.GenerateBody, ollama_wire.generate_reply, ollama_wire.generate_stream
    ),
    "/api/embed": _ollama(openai_wire.EmbeddingBody, ollama_wire.embed_reply),
}


def render(route: Route, outcome: Outcome, *, streams: bool, speed: float) -> Response:
    """An outcome as the route's protocol writes it. What breaks connections is left to the caller."""
    headers = rate_headers(outcome, speed=speed)
    if outcome.reply is None:
        body = route.write_error(outcome.status, outcome.message, outcome.code)
        return Response(outcome.status, body, headers=headers)
    if streams and route.write_stream is not None:
        body, content_type = route.write_stream(outcome.reply), route.stream_type
    else:
        body, content_type = route.write(outcome.reply), "application/json"
    match outcome.fault:
        case "bad_json":
            body = body[: len(body) // 2]
        case "html":
            body, content_type = HTML, "text/html"
        case "plain_text":
            content_type = "text/plain"
    return Response(200, body, content_type, headers)


def bearer(request: HttpRequest) -> str | None:
    """The key that came with a request, if one did."""
    scheme, _, key = request.headers.get(b"authorization", b"").decode("latin-1").partition(" ")
    return key.strip() if scheme.lower() == "bearer" else None


def rate_headers(outcome: Outcome, *, speed: float = 1.0) -> tuple[tuple[str, str], ...]:
    """Retry-After and x-ratelimit-*, in seconds of the client's clock."""
    headers: list[tuple[str, str]] = []
    if outcome.retry_after is not None:
        is_exact = outcome.rate is not None
        seconds = math.ceil(outcome.retry_after) if is_exact else outcome.retry_after
        headers.append(("retry-after", f"{seconds / speed:.6g}"))
        if is_exact:
            headers.append(("retry-after-ms", f"{outcome.retry_after * 1000 / speed:.6g}"))
    if (rate := outcome.rate) is not None:
        for what in ("requests", "tokens"):
            for name in ("limit", "remaining"):
                if (count := getattr(rate, f"{name}_{what}")) is not None:
                    headers.append((f"x-ratelimit-{name}-{what}", str(count)))
            if (reset := getattr(rate, f"reset_{what}")) is not None:
                headers.append((f"x-ratelimit-reset-{what}", duration(reset / speed)))
    return tuple(headers)


def duration(seconds: float) -> str:
    """`120ms`, `1.5s`, `6m0s`, `1h0m12s`: whole milliseconds, rounded up."""
    milliseconds = math.ceil(seconds * 1000 - 1e-6)
    if milliseconds < 1000:
        return f"{milliseconds}ms"
    minutes, rest = divmod(milliseconds, 60_000)
    hours, minutes = divmod(minutes, 60)
    text = f"{rest / 1000:g}s"
    if minutes or hours:
        text = f"{minutes}m{text}"
    return f"{hours}h{text}" if hours else text


# -- the paths beside the model ----------------------------------------------------------------------------


VERSION = "0.0.0-simulated"


def control(live: LiveServer, request: HttpRequest) -> Response:
    """Answer a request that no model has to answer."""
    handler = _HANDLERS.get((request.method, request.path))
    if handler is None and request.method == "GET" and request.path.startswith("/v1/models/"):
        handler = _model
    if handler is not None:
        return handler(live, request)
    message = f"{request.method} {request.path} is not served here"
    return Response(404, openai_wire.error_reply(404, message, code="unknown_url"))


def _models(live: LiveServer, request: HttpRequest) -> Response:
    scenario = live.server.scenario
    if scenario.api_key is not None and bearer(request) != scenario.api_key:
        return Response(401, openai_wire.error_reply(401, "the API key is missing or wrong"))
    return Response(200, openai_wire.model_list(scenario.models))


def _model(live: LiveServer, request: HttpRequest) -> Response:
    """One model, by its name: any is served but `missing`."""
    listed = _models(live, request)
    name = unquote(request.path.removeprefix("/v1/models/"))
    if listed.status == 200 and name == "missing":
        return Response(404, openai_wire.error_reply(404, f"the model '{name}' does not exist"))
    return listed if listed.status != 200 else Response(200, openai_wire.model_card(name))


def _show(_: LiveServer, request: HttpRequest) -> Response:
    try:
        body = msgspec.json.decode(request.body, type=dict[str, object])
    except msgspec.DecodeError as error:
        return Response(400, ollama_wire.error_reply(400, f"the body cannot be used: {error}"))
    model = str(body.get("model", body.get("name", "")))
    if model in ("", "missing"):
        return Response(404, ollama_wire.error_reply(404, f"model '{model}' not found"))
    return Response(200, ollama_wire.model_card(model))


def _stats(live: LiveServer, _: HttpRequest) -> Response:
    return Response(200, msgspec.json.encode(live.server.stats.as_dict()))


def _reset(live: LiveServer, request: HttpRequest) -> Response:
    live.server.stats = live.server.stats.reset()
    return _stats(live, request)


def _scenario(live: LiveServer, _: HttpRequest) -> Response:
    scenario = live.server.scenario
    shown = scenario.replace(api_key="***" if scenario.api_key is not None else None)
    return Response(200, msgspec.json.encode(shown))


def _change(live: LiveServer, request: HttpRequest) -> Response:
    try:
        scenario = scenario_from(msgspec.json.decode(request.body))
    except (msgspec.DecodeError, ConfigError) as error:
        return Response(400, openai_wire.error_reply(400, str(error)))
    live.become(scenario)
    return _scenario(live, request)


_HANDLERS: dict[tuple[str, str], Callable[[LiveServer, HttpRequest], Response]] = {
    ("GET", "/"): lambda *_: Response(200, b"Ollama is running", content_type="text/plain"),
    ("GET", "/v1/models"): _models,
    ("GET", "/api/tags"): lambda live, _: Response(200, ollama_wire.tag_list(live.server.scenario.models)),
    ("POST", "/api/show"): _show,
    ("GET", "/api/version"): lambda *_: Response(200, msgspec.json.encode({"version": VERSION})),
    ("GET", "/stats"): _stats,
    ("POST", "/stats/reset"): _reset,
    ("GET", "/scenario"): _scenario,
    ("POST", "/scenario"): _change,
}
