"""The OpenAI dialect: chat completions, completions and embeddings, as every compatible server speaks it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import msgspec

from plaudit.config import Price
from plaudit.transports.complaint import Complaint
from plaudit.transports.dialect import (
    Token,
    check_vectors,
    choices_of,
    decode_json,
    encode_json,
    error_in,
    usage_of,
)
from plaudit.transports.shape import FULL, Shape
from plaudit.types import (
    EmbedRequest,
    GenerateRequest,
    RateHeaders,
    Reply,
    Request,
    Usage,
)


@dataclass(frozen=True, slots=True)
class OpenAI:
    """Requests for one model of an OpenAI-compatible endpoint."""

    model: str = ""
    price: Price | None = None
    shape: Shape = FULL

    def encode(self, request: Request) -> tuple[str, bytes]:
        body: dict[str, Any] = {"model": self.model} if self.model else {}  # one model needs no name
        if isinstance(request, EmbedRequest):
            body["input"] = request.texts
            return "/embeddings", encode_json(body)
        shape = self.shape
        body[shape.limit_name] = request.max_tokens
        if shape.has_temperature:
            body["temperature"] = request.temperature
        if isinstance(request, GenerateRequest):
            body["prompt"] = request.prompt
            return "/completions", encode_json(body)
        body["messages"] = request.messages
        if request.schema is not None and shape.has_schema:
            schema = {"name": "verdict", "strict": True, "schema": dict(request.schema)}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        if request.top_logprobs > 0 and shape.has_logprobs:
            body["logprobs"] = True
            body["top_logprobs"] = request.top_logprobs
        return "/chat/completions", encode_json(body)

    def decode(self, request: Request, body: bytes, rate: RateHeaders | None) -> Reply:
        if isinstance(request, EmbedRequest):
            return self._embeddings(request, body, rate)
        found = decode_json(_completion, body)
        if found.error or not found.choices:
            raise error_in(found.error, "it holds no choices")
        choice = found.choices[0]
        if choice.error or (choice.message is None and choice.text is None):
            raise error_in(choice.error, "its first choice holds neither a message nor a text")
        message = choice.message or _Message(content=choice.text)
        content = message.content
        if isinstance(content, list):  # some gateways give the text in parts
            content = "".join(part.text or "" for part in content)
        logprobs = choice.logprobs
        return Reply(
            content or "",
            model=found.model or self.model,
            finish_reason=choice.finish_reason or "stop",
            refusal=message.refusal or None,
            usage=self._usage(found.usage),
            tokens=choices_of(logprobs.content) if logprobs and logprobs.content else (),
            rate=rate,
        )

    def adapted(self, complaint: Complaint) -> OpenAI | None:
        shape = self.shape.adapted(complaint)
        return None if shape is None else replace(self, shape=shape)

    def _embeddings(self, request: EmbedRequest, body: bytes, rate: RateHeaders | None) -> Reply:
        found = decode_json(_embeddings, body)
        if found.error:
            raise error_in(found.error)
        data = sorted(found.data or (), key=lambda item: item.index)  # keeps the order of those not numbered
        vectors = tuple(item.embedding for item in data)
        check_vectors(vectors, expected=len(request.texts))
        return Reply(
            "", model=found.model or self.model, usage=self._usage(found.usage), vectors=vectors, rate=rate
        )

    def _usage(self, found: _AnyUsage) -> Usage:
        if not isinstance(found, _Usage):
            return Usage()
        return usage_of(found.prompt_tokens, found.completion_tokens, cost=found.cost, price=self.price)


class _Part(msgspec.Struct, gc=False):
    text: str | None = None


class _Message(msgspec.Struct, gc=False):
    content: str | list[_Part] | None = None
    refusal: str | None = None


class _Logprobs(msgspec.Struct, gc=False):
    content: list[Token] | None = None


class _Choice(msgspec.Struct, gc=False):
    message: _Message | None = None
    text: str | None = None
    finish_reason: str | None = None
    logprobs: _Logprobs | None = None
    error: Any = None


class _Usage(msgspec.Struct, gc=False):
    """Read as it comes: a count in the wrong form must not cost the reply."""

    prompt_tokens: Any = None
    completion_tokens: Any = None
    cost: Any = None


_AnyUsage = _Usage | list[Any] | str | float | bool | None


class _Completion(msgspec.Struct, gc=False):
    choices: list[_Choice] | None = None
    model: str | None = None
    usage: _AnyUsage = None
    error: Any = None


class _Vector(msgspec.Struct, gc=False):
    embedding: tuple[float, ...]
    index: int = 0


class _Embeddings(msgspec.Struct, gc=False):
    data: list[_Vector] | None = None
    model: str | None = None
    usage: _AnyUsage = None
    error: Any = None


_completion = msgspec.json.Decoder(_Completion)
_embeddings = msgspec.json.Decoder(_Embeddings)
