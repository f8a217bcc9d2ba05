"""An endpoint whose model says what a test wants, behind a server: for judges that others wrote."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from typing import Any

from service_client import ScriptedClient, scripted
from wire_server import Exchange, Step

KEY = "sk-of-the-client-0123456789"


def saying(text: str = "", **arguments: str) -> Step:
    """An endpoint whose model says this text, or calls the first tool that it has with these arguments.

    Every fifth answer is a 429 or a 500: nothing that those who ask may notice.
    """
    count = 0

    async def step(exchange: Exchange) -> None:
        nonlocal count
        count += 1
        if count % 5 == 1:
            await exchange.answer(429 if count % 2 else 500, b'{"error": {"message": "later"}}')
            return
        asked = exchange.request.json()
        answer = _response if exchange.request.target.endswith("/responses") else _completion
        body = answer(text, asked.get("tools") if arguments else None, json.dumps(arguments))
        await exchange.answer(200, json.dumps(body).encode())

    return step


def _completion(text: str, tools: list[dict[str, Any]] | None, arguments: str) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if tools:
        called = {"name": tools[0]["function"]["name"], "arguments": arguments}
        message = {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "call_1", "type": "function", "function": called}],
        }
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15},
    }


def _response(text: str, tools: list[dict[str, Any]] | None, arguments: str) -> dict[str, Any]:
    said = {"type": "output_text", "text": text, "annotations": []}
    item: dict[str, Any] = {
        "type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [said],
    }  # fmt: skip
    if tools:
        name = tools[0].get("name") or tools[0]["function"]["name"]
        item = {"type": "function_call", "id": "f", "call_id": "c", "name": name, "arguments": arguments}
    return {
        "id": "resp_1", "object": "response", "created_at": 1, "model": "m", "status": "completed",
        "output": [item], "parallel_tool_calls": True, "tool_choice": "auto", "tools": tools or [],
        "usage": {"input_tokens": 12, "output_tokens": 3, "total_tokens": 15,
                  "input_tokens_details": {"cached_tokens": 0},
                  "output_tokens_details": {"reasoning_tokens": 0}},
    }  # fmt: skip


def judged(test: Callable[[str], Coroutine[Any, Any, None]], step: Step) -> None:
    """Run a test with the server's URL, in front of that endpoint."""

    async def main(client: ScriptedClient) -> None:
        await test(client.url)
        assert all(
            request.headers["authorization"] != f"Bearer {KEY}" for request in client.endpoint.requests
        )

    scripted(main, step)
