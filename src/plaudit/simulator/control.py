"""The paths beside the model: the list of models, statistics, and the scenario, which can be changed live."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import unquote

import msgspec

from plaudit.errors import ConfigError
from plaudit.simulator import ollama_wire, openai_wire
from plaudit.simulator.live import LiveServer
from plaudit.simulator.presets import scenario_from
from plaudit.simulator.protocol import HttpRequest, Response
from plaudit.simulator.routes import bearer

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
