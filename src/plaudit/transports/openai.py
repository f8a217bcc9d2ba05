"""The OpenAI dialect: chat completions, completions and embeddings, as every compatible server speaks it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import msgspec

from plaudit.config import Price
from plaudit.transports.complaint import Complaint
from plaudit.transports.dialect import (
    BadReply,
    Token,
    check_error,
    check_vectors,
    choices_of,
    encode_json,
    usage_of,
)
from plaudit.transports.shape import FULL, Shape
from plaudit.types import (
    ChatRequest,
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
        if isinstance(request, ChatRequest):
            return "/chat/completions", encode_json(self._chat(request))
        if isinstance(request, GenerateRequest):
            body = self._sampled(request, {"prompt": request.prompt})
            return "/completions", encode_json(body)
        return "/embeddings", encode_json(self._named({"input": request.texts}))

    def decode(self, request: Request, body: bytes, rate: RateHeaders | None) -> Reply:
        if isinstance(request, EmbedRequest):
            return self._embeddings(request, body, rate)
        found = _decode_completion(body)
        check_error(found.error)
        if not found.choices:
            raise BadReply("it holds no choices")
        choice = found.choices[0]
        check_error(choice.error)
        message = choice.message
        if message is not None:
            text, refusal = _text_of(message.content), message.refusal
        elif choice.text is not None:
            text, refusal = choice.text, None
        else:
            raise BadReply("its first choice holds neither a message nor a text")
        logprobs = choice.logprobs
        return Reply(
            text,
            model=found.model or self.model,
            finish_reason=choice.finish_reason or "stop",
            refusal=refusal or None,
            usage=self._usage(found.usage),
            tokens=choices_of(logprobs.content) if logprobs and logprobs.content else (),
            rate=rate,
        )

    def adapted(self, complaint: Complaint) -> OpenAI | None:
        shape = self.shape.adapted(complaint)
        return None if shape is None else replace(self, shape=shape)

    def _chat(self, request: ChatRequest) -> dict[str, Any]:
        body = self._sampled(request, {"messages": request.messages})
        if request.schema is not None and self.shape.has_schema:
            schema = {"name": "verdict", "strict": True, "schema": dict(request.schema)}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        if request.top_logprobs > 0 and self.shape.has_logprobs:
            body["logprobs"] = True
            body["top_logprobs"] = request.top_logprobs
        return body

    def _sampled(self, request: ChatRequest | GenerateRequest, body: dict[str, Any]) -> dict[str, Any]:
        body[self.shape.limit_name] = request.max_tokens
        if self.shape.has_temperature:
            body["temperature"] = request.temperature
        return self._named(body)

    def _named(self, body: dict[str, Any]) -> dict[str, Any]:
        if self.model:  # a server with one model needs no name
            body["model"] = self.model
        return body

    def _embeddings(self, request: EmbedRequest, body: bytes, rate: RateHeaders | None) -> Reply:
        found = _decode_embeddings(body)
        check_error(found.error)
        data = sorted(found.data or (), key=lambda item: item.index)
        if [item.index for item in data] != list(range(len(data))):
            data = found.data or []  # a server that numbers nothing answers in order
        vectors = tuple(item.embedding for item in data)
        check_vectors(vectors, expected=len(request.texts))
        return Reply(
            "", model=found.model or self.model, usage=self._usage(found.usage), vectors=vectors, rate=rate
        )

    def _usage(self, found: _Usage | None) -> Usage:
        if found is None:
            return Usage()
        return usage_of(found.prompt_tokens, found.completion_tokens, cost=found.cost, price=self.price)


class _Part(msgspec.Struct):
    text: str | None = None


class _Message(msgspec.Struct):
    content: str | list[_Part] | None = None
    refusal: str | None = None


class _Logprobs(msgspec.Struct):
    content: list[Token] | None = None


class _Choice(msgspec.Struct):
    message: _Message | None = None
    text: str | None = None
    finish_reason: str | None = None
    logprobs: _Logprobs | None = None
    error: Any = None


class _Usage(msgspec.Struct):
    prompt_tokens: float | None = None
    completion_tokens: float | None = None
    cost: float | None = None


class _Completion(msgspec.Struct):
    choices: list[_Choice] | None = None
    model: str | None = None
    usage: _Usage | None = None
    error: Any = None


class _Vector(msgspec.Struct):
    embedding: tuple[float, ...]
    index: int = 0


class _Embeddings(msgspec.Struct):
    data: list[_Vector] | None = None
    model: str | None = None
    usage: _Usage | None = None
    error: Any = None


_decode_completion = msgspec.json.Decoder(_Completion).decode
_decode_embeddings = msgspec.json.Decoder(_Embeddings).decode


def _text_of(content: str | list[_Part] | None) -> str:
    if isinstance(content, list):  # some gateways give the text in parts
        return "".join(part.text or "" for part in content)
    return content or ""
