"""OpenAI's JSON: bodies of requests read into asks, replies written as OpenAI writes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from plaudit.simulator.ask import Ask
from plaudit.types import Reply

CREATED = 1_700_000_000
"""The moment every reply claims to be from: the same request gets the same bytes."""


class _MessagePart(Struct):
    text: str = ""


class _ChatMessage(Struct):
    role: str
    content: str | list[_MessagePart] | None = None


class ChatBody(Struct):
    """POST /v1/chat/completions, as far as the answer depends on it."""

    model: str
    messages: list[_ChatMessage]
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    response_format: dict[str, Any] | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None
    stream: bool | None = None

    def ask(self) -> Ask:
        texts: list[str] = []
        for message in self.messages:
            texts += (message.role, _text_of(message.content))
        return Ask(
            "chat",
            self.model,
            tuple(texts),
            max_tokens=self.max_tokens or self.max_completion_tokens,
            schema=_schema_in(self.response_format),
            top_logprobs=(self.top_logprobs or 1) if self.logprobs else 0,
        )


class CompletionBody(Struct):
    """POST /v1/completions."""

    model: str
    prompt: str | list[str]
    max_tokens: int | None = None
    echo: bool = False
    logprobs: int | None = None
    stream: bool | None = None

    def ask(self) -> Ask:
        texts = (self.prompt,) if isinstance(self.prompt, str) else tuple(self.prompt)
        return Ask(
            "generate",
            self.model,
            texts,
            max_tokens=self.max_tokens,
            top_logprobs=self.logprobs or 0,
            echo=self.echo,
        )


class ResponsesBody(Struct):
    """POST /v1/responses."""

    model: str
    input: str | list[_ChatMessage]
    instructions: str | None = None
    max_output_tokens: int | None = None
    stream: bool | None = None

    def ask(self) -> Ask:
        texts = ["system", self.instructions] if self.instructions else []
        turns = [_ChatMessage("user", self.input)] if isinstance(self.input, str) else self.input
        for turn in turns:
            texts += (turn.role, _text_of(turn.content))
        return Ask("chat", self.model, tuple(texts), max_tokens=self.max_output_tokens)


class EmbeddingBody(Struct):
    """POST /v1/embeddings, and Ollama's /api/embed."""

    model: str
    input: str | list[str]
    dimensions: int | None = None
    stream: bool | None = None

    def ask(self) -> Ask:
        texts = (self.input,) if isinstance(self.input, str) else tuple(self.input)
        return Ask("embed", self.model, texts, dimensions=self.dimensions)


def chat_reply(reply: Reply) -> bytes:
    choice = {
        "index": 0,
        "message": {
            "role": "assistant",
            "content": None if reply.refusal is not None else reply.text,
            "refusal": reply.refusal,
            **({"reasoning_content": reply.reasoning} if reply.reasoning else {}),
        },
        "logprobs": {"content": logprob_entries(reply)} if reply.tokens else None,
        "finish_reason": reply.finish_reason,
    }
    return _encode("chat.completion", reply, choices=[choice])


def chat_stream(reply: Reply) -> bytes:
    """The same reply as server-sent events, a few words each."""
    words = reply.text.split(" ")
    pieces = [" ".join(words[i : i + 4]) + " " * (i + 4 < len(words)) for i in range(0, len(words), 4)]
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": "", "refusal": reply.refusal}]
    deltas += [{"content": piece} for piece in pieces if piece]
    events = [
        _encode("chat.completion.chunk", reply, choices=[{"index": 0, "delta": d, "finish_reason": None}])
        for d in deltas
    ]
    last = {"index": 0, "delta": {}, "finish_reason": reply.finish_reason}
    events += [_encode("chat.completion.chunk", reply, choices=[last]), b"[DONE]"]
    return b"".join(b"data: " + event + b"\n\n" for event in events)


def completion_reply(reply: Reply) -> bytes:
    logprobs = {
        "tokens": [choice.token for choice in reply.tokens],
        "token_logprobs": [choice.logprob for choice in reply.tokens],
    }
    choice = {
        "index": 0,
        "text": reply.text,
        "logprobs": logprobs if reply.tokens else None,
        "finish_reason": reply.finish_reason,
    }
    return _encode("text_completion", reply, choices=[choice])


def responses_reply(reply: Reply) -> bytes:
    content = [{"type": "output_text", "text": reply.text, "annotations": []}]
    message = {"type": "message", "id": "msg", "role": "assistant", "status": "completed", "content": content}
    usage = {
        "input_tokens": reply.usage.prompt_tokens,
        "output_tokens": reply.usage.completion_tokens,
        "total_tokens": reply.usage.prompt_tokens + reply.usage.completion_tokens,
    }
    fields = {"id": "simulated", "object": "response", "created_at": CREATED, "status": "completed"}
    return msgspec.json.encode({**fields, "model": reply.model, "output": [message], "usage": usage})


def embedding_reply(reply: Reply) -> bytes:
    data = [
        {"object": "embedding", "index": index, "embedding": vector}
        for index, vector in enumerate(reply.vectors)
    ]
    return _encode("list", reply, data=data)


def error_reply(status: int, message: str, code: str = "") -> bytes:
    kind, usual = _ERRORS.get(status, ("server_error", None))
    error = {"message": message, "type": kind, "param": None, "code": code or usual}
    return msgspec.json.encode({"error": error})


def model_list(models: tuple[str, ...]) -> bytes:
    return msgspec.json.encode({"object": "list", "data": [_model(name) for name in models]})


def model_card(name: str) -> bytes:
    return msgspec.json.encode(_model(name))


def _model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": CREATED, "owned_by": "plaudit"}


_ERRORS: Mapping[int, tuple[str, str | None]] = {
    400: ("invalid_request_error", None),
    401: ("invalid_request_error", "invalid_api_key"),
    404: ("invalid_request_error", "model_not_found"),
    429: ("requests", "rate_limit_exceeded"),
}


def _encode(kind: str, reply: Reply, **fields: Any) -> bytes:
    usage = reply.usage
    details = {"reasoning_tokens": usage.reasoning_tokens}
    return msgspec.json.encode(
        {
            "id": "simulated",
            "object": kind,
            "created": CREATED,
            "model": reply.model,
            **fields,
            "usage": {
                "prompt_tokens": usage.prompt_tokens,
                "completion_tokens": usage.completion_tokens,
                "total_tokens": usage.prompt_tokens + usage.completion_tokens,
                **({"completion_tokens_details": details} if usage.reasoning_tokens else {}),
            },
        }
    )


def logprob_entries(reply: Reply) -> list[dict[str, Any]]:
    """A reply's tokens, each with what stood in its place; Ollama writes them the same way."""

    def entry(token: str, logprob: float) -> dict[str, Any]:
        return {"token": token, "logprob": logprob, "bytes": list(token.encode())}

    return [
        {**entry(choice.token, choice.logprob), "top_logprobs": [entry(*other) for other in choice.top]}
        for choice in reply.tokens
    ]


def _text_of(content: str | list[_MessagePart] | None) -> str:
    if isinstance(content, str):
        return content
    return "".join(part.text for part in content or ())


def _schema_in(response_format: dict[str, Any] | None) -> dict[str, Any] | None:
    wrapper = (response_format or {}).get("json_schema")
    schema = wrapper.get("schema") if isinstance(wrapper, dict) else None
    return schema if isinstance(schema, dict) else None
