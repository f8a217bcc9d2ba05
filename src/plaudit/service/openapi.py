"""The server's routes as an OpenAPI document, for programs and for the pages that draw one."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from plaudit.service.relay import ROUTES

SAMPLE: dict[str, Any] = {
    "type": "object",
    "required": ["prompt", "response"],
    "properties": {
        "prompt": {"description": "Text, or messages with role and content."},
        "response": {"type": "string"},
        "reference": {"type": "string"},
        "group": {"type": "string", "description": "Responses to one prompt share a group."},
    },
    "additionalProperties": True,
}
ASKED: dict[str, Any] = {
    "type": "object",
    "required": ["samples"],
    "properties": {
        "samples": {"type": "array", "items": SAMPLE},
        "judge": {"description": "A judge's name, or a table with its kind and options."},
        "deadline": {
            "type": "number",
            "description": "Seconds; unfinished samples then get status deadline.",
        },
    },
}
VERDICT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "score": {"type": ["number", "null"], "description": "On the judge's scale; null without a verdict."},
        "status": {"type": "string"},
        "reason": {"type": "string"},
        "error": {"type": ["string", "null"]},
        "cause": {"type": ["string", "null"], "description": "Why there is no score, for programs."},
    },
}


def description() -> dict[str, Any]:
    streamed = {"stream": {"type": "boolean", "description": "One line per verdict, as they arrive."}}
    score = {**ASKED, "properties": {**ASKED["properties"], **streamed}}
    wanted = {"on_failure": {"description": "null, group-mean, raise or a number; null if left out."}}
    reward = {**ASKED, "properties": {**ASKED["properties"], **wanted}}
    verdicts = {"type": "object", "properties": {"verdicts": {"type": "array", "items": VERDICT}}}
    number = {"type": ["number", "null"]}
    rewards = {"type": "object", "properties": {"rewards": {"type": "array", "items": number}}}
    texts = {"type": "array", "items": {"type": "string"}}
    openrlhf = {"type": "object", "properties": dict.fromkeys(("query", "prompts", "labels"), texts)}
    row = {"type": "object", "properties": {name: {} for name in ("prompt", "response", "label")}}
    anything = {"type": "object"}
    return {
        "openapi": "3.1.0",
        "info": {"title": "plaudit", "version": version("plaudit")},
        "paths": {
            "/score": _post("Judge samples.", score, verdicts),
            "/reward": _post("Rewards from 0 to 1 for samples.", reward, rewards),
            "/get_reward": _post("The same, as OpenRLHF posts it.", openrlhf, rewards),
            "/remote_rm": _post("The same, as slime posts it.", row, number),
            "/verify": _post("The same, as NeMo-Gym posts it.", anything, anything),
            **{
                f"/v1{route}": _post("OpenAI's route, passed through.", anything, anything)
                for route in ROUTES
            },
            "/v1/models": {"get": _operation("The available models.", anything)},
            "/metrics": {"get": _operation("Metrics for Prometheus.", {}, "text/plain")},
            "/health": {"get": _operation("Health check.", anything)},
        },
    }


def _post(summary: str, body: dict[str, Any], reply: dict[str, Any]) -> dict[str, Any]:
    content = {"application/json": {"schema": body}}
    return {"post": {**_operation(summary, reply), "requestBody": {"required": True, "content": content}}}


def _operation(summary: str, reply: dict[str, Any], kind: str = "application/json") -> dict[str, Any]:
    content = {kind: {"schema": reply} if reply else {}}
    return {"summary": summary, "responses": {"200": {"description": "OK", "content": content}}}
