"""Ollama's JSON: bodies of requests read into asks, replies written as Ollama writes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct

from plaudit.simulator.ask import Ask
from plaudit.simulator.openai_wire import logprob_entries
from plaudit.types import Reply

CREATED = "2023-11-14T22:13:20Z"


class _OllamaMessage(Struct):
    role: str
    content: str = ""


class _Options(Struct, frozen=True):
    num_predict: int | None = None


class OllamaChatBody(Struct):
    """POST /api/chat. Ollama streams unless told otherwise."""

    model: str
    messages: list[_OllamaMessage] = []
    stream: bool = True
    format: dict[str, Any] | str | None = None
    options: _Options = _Options()
    logprobs: bool = False
    top_logprobs: int | None = None

    def ask(self) -> Ask:
        texts = tuple(part for message in self.messages for part in (message.role, message.content))
        return Ask(
            "chat",
            self.model,
            texts,
            max_tokens=_limit(self.options),
            schema=self.format if isinstance(self.format, dict) else None,
            top_logprobs=(self.top_logprobs or 1) if self.logprobs else 0,
        )


class GenerateBody(Struct):
    """POST /api/generate."""

    model: str
    prompt: str = ""
    stream: bool = True
    format: dict[str, Any] | str | None = None
    options: _Options = _Options()

    def ask(self) -> Ask:
        schema = self.format if isinstance(self.format, dict) else None
        return Ask("generate", self.model, (self.prompt,), max_tokens=_limit(self.options), schema=schema)


def chat_reply(reply: Reply) -> bytes:
    fields = _message(_text(reply), reply.reasoning)
    if reply.tokens:
        fields["logprobs"] = logprob_entries(reply)
    return msgspec.json.encode(_final(reply, fields))


def chat_stream(reply: Reply) -> bytes:
    return _stream(reply, _message)


def generate_reply(reply: Reply) -> bytes:
    return msgspec.json.encode(_final(reply, _response(_text(reply))))


def generate_stream(reply: Reply) -> bytes:
    return _stream(reply, _response)


def _stream(reply: Reply, part: Callable[[str], dict[str, Any]]) -> bytes:
    """The same reply as lines of JSON: the text, then the end with its counts."""
    first = {"model": reply.model, "created_at": CREATED, **part(_text(reply)), "done": False}
    return msgspec.json.Encoder().encode_lines([first, _final(reply, part(""))])


def embed_reply(reply: Reply) -> bytes:
    count = reply.usage.prompt_tokens
    return msgspec.json.encode(
        {"model": reply.model, "embeddings": reply.vectors, "prompt_eval_count": count}
    )


def error_reply(status: int, message: str, code: str = "") -> bytes:  # noqa: ARG001 - as OpenAI's
    return msgspec.json.encode({"error": message})


def tag_list(models: tuple[str, ...]) -> bytes:
    entries = [{"name": name, "model": name, "modified_at": CREATED, "size": 0} for name in models]
    return msgspec.json.encode({"models": entries})


def model_card(model: str) -> bytes:
    details = {"family": "simulated", "parameter_size": "0B", "quantization_level": "none"}
    capabilities = ["completion", "embedding"]
    return msgspec.json.encode({"model": model, "details": details, "capabilities": capabilities})


def _limit(options: _Options) -> int | None:
    limit = options.num_predict
    return limit if limit is not None and limit > 0 else None  # -1 and -2 mean "as long as it takes"


def _text(reply: Reply) -> str:
    return reply.refusal or reply.text  # there is no field of its own for a refusal


def _message(text: str, thinking: str = "") -> dict[str, Any]:
    thoughts = {"thinking": thinking} if thinking else {}
    return {"message": {"role": "assistant", "content": text, **thoughts}}


def _response(text: str) -> dict[str, Any]:
    return {"response": text}


def _final(reply: Reply, fields: dict[str, Any]) -> dict[str, Any]:
    return {
        "model": reply.model,
        "created_at": CREATED,
        **fields,
        "done": True,
        "done_reason": reply.finish_reason,
        "prompt_eval_count": reply.usage.prompt_tokens,
        "eval_count": reply.usage.completion_tokens,
    }
