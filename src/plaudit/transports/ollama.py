"""The Ollama dialect: its native chat, generate and embed routes.

No `num_ctx` is ever sent: a changed runner option makes Ollama load the model anew.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import msgspec

from plaudit.config import Price
from plaudit.errors import Unsendable
from plaudit.transports.complaint import Complaint
from plaudit.transports.dialect import (
    FULL,
    BadReply,
    Shape,
    Token,
    check_vectors,
    choices_of,
    decode_json,
    encode_json,
    error_in,
    usage_of,
)
from plaudit.transports.openai import raw_reply
from plaudit.types import (
    ChatRequest,
    EmbedRequest,
    GenerateRequest,
    LikelihoodRequest,
    RateHeaders,
    RawRequest,
    Reply,
    Request,
)

KEEP_ALIVE = "30m"
"""How long the model stays loaded after a call: longer than a training step, shorter than a night."""


@dataclass(frozen=True, slots=True)
class Ollama:
    """Requests for one model of an Ollama server."""

    model: str = ""
    price: Price | None = None
    shape: Shape = FULL

    def encode(self, request: Request) -> tuple[str, bytes]:
        if isinstance(request, RawRequest):
            return f"/v1{request.route}", request.body
        if isinstance(request, ChatRequest):
            messages = _with_images(request) if request.images else request.messages
            body = self._sampled(request, {"messages": messages})
            if request.schema is not None and self.shape.has_schema:
                body["format"] = dict(request.schema)
            if request.top_logprobs > 0 and self.shape.has_logprobs:
                body["logprobs"] = True
                body["top_logprobs"] = request.top_logprobs
            if request.reasoning_effort is not None:
                body["think"] = False if request.reasoning_effort == "none" else request.reasoning_effort
            more = {name: value for name, value in request.extra.items() if name != "options"}
            body["options"] |= request.extra.get("options") or {}
            return "/api/chat", encode_json({**body, **more})
        if isinstance(request, GenerateRequest):
            body = self._sampled(request, {"prompt": request.prompt, "raw": True})
            return "/api/generate", encode_json(body)
        if isinstance(request, LikelihoodRequest):
            raise Unsendable(
                "Ollama cannot tell the log-probability of a given text; use llama.cpp, vLLM, or "
                "another server whose completions take `echo`"
            )
        return "/api/embed", encode_json(
            {"model": self.model, "input": request.texts, "keep_alive": KEEP_ALIVE}
        )

    def decode(self, request: Request, body: bytes, rate: RateHeaders | None) -> Reply:
        if isinstance(request, RawRequest):
            return raw_reply(body, rate, price=self.price)
        found = decode_json(_answer, body)
        if found.error:
            raise error_in(found.error)
        vectors: tuple[tuple[float, ...], ...] = ()
        text = reasoning = ""
        if isinstance(request, EmbedRequest):
            vectors = found.embeddings or ()
            check_vectors(vectors, expected=len(request.texts))
        elif found.message is not None:
            text = found.message.content or ""
            reasoning = found.message.thinking or ""
        elif found.response is not None:
            text = found.response
        else:
            raise BadReply("it holds neither a message nor a response")
        return Reply(
            text,
            model=found.model or self.model,
            finish_reason=found.done_reason or "stop",
            reasoning=reasoning,
            usage=usage_of(found.prompt_eval_count, found.eval_count, cost=None, price=self.price),
            tokens=choices_of(found.logprobs) if found.logprobs else (),
            vectors=vectors,
            rate=rate,
        )

    def adapted(self, complaint: Complaint) -> Ollama | None:
        shape = self.shape.adapted(complaint)
        return None if shape is None else replace(self, shape=shape)

    def _sampled(self, request: ChatRequest | GenerateRequest, body: dict[str, Any]) -> dict[str, Any]:
        options: dict[str, Any] = {"num_predict": request.max_tokens}
        if self.shape.has_temperature:
            options["temperature"] = request.temperature
        if isinstance(request, ChatRequest):
            sampled = {"top_p": request.top_p, "seed": request.seed}
            options |= {name: value for name, value in sampled.items() if value is not None}
        return body | {"model": self.model, "stream": False, "options": options, "keep_alive": KEEP_ALIVE}


def _with_images(request: ChatRequest) -> list[Any]:
    """The messages with the pictures in the last one, as base64. Raises Unsendable for a link or a PDF."""
    *before, last = request.messages
    pictures = []
    for image in request.images:
        head, _, data = image.partition(";base64,")
        if head == "data:application/pdf":
            raise Unsendable("Ollama takes no PDF files; give the text of the file instead")
        if not head.startswith("data:image/") or not data:
            raise Unsendable("Ollama takes pictures as data, not as links; give data:image/png;base64,...")
        pictures.append(data)
    return [*before, {**last, "images": pictures}]


class _OllamaReplyMessage(msgspec.Struct, gc=False):
    content: str | None = None
    thinking: str | None = None


class _Answer(msgspec.Struct, gc=False):
    """The three routes answer with different fields of one object."""

    message: _OllamaReplyMessage | None = None
    response: str | None = None
    embeddings: tuple[tuple[float, ...], ...] | None = None
    model: str | None = None
    done_reason: str | None = None
    prompt_eval_count: Any = None
    eval_count: Any = None
    logprobs: list[Token] | None = None
    error: Any = None


_answer = msgspec.json.Decoder(_Answer)
