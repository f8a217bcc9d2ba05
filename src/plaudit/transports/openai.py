"""The OpenAI dialect: chat completions, completions and embeddings, as every compatible server speaks it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from plaudit.config import Price
from plaudit.transports.complaint import Complaint
from plaudit.transports.dialect import (
    FULL,
    BadReply,
    ErrorReply,
    Shape,
    Token,
    check_vectors,
    choices_of,
    decode_json,
    encode_json,
    error_in,
    usage_of,
)
from plaudit.types import (
    ChatRequest,
    EmbedRequest,
    GenerateRequest,
    LikelihoodRequest,
    RateHeaders,
    RawRequest,
    Reply,
    Request,
    TokenChoice,
    Usage,
)


@dataclass(frozen=True, slots=True)
class OpenAI:
    """Requests for one model of an OpenAI-compatible endpoint."""

    model: str = ""
    price: Price | None = None
    shape: Shape = FULL

    def encode(self, request: Request) -> tuple[str, bytes]:
        if isinstance(request, RawRequest):
            return request.route, request.body
        body: dict[str, Any] = {"model": self.model} if self.model else {}  # one model needs no name
        if isinstance(request, EmbedRequest):
            body["input"] = request.texts
            return "/embeddings", encode_json(body)
        if isinstance(request, LikelihoodRequest):
            return "/completions", encode_json(body | self._given_text(request))
        shape = self.shape
        body[shape.limit_name] = request.max_tokens
        if shape.has_temperature:
            body["temperature"] = request.temperature
        if isinstance(request, GenerateRequest):
            body["prompt"] = request.prompt
            return "/completions", encode_json(body)
        body["messages"] = _with_images(request) if request.images else request.messages
        if request.top_p is not None:
            body["top_p"] = request.top_p
        if request.seed is not None:
            body["seed"] = request.seed
        if request.reasoning_effort is not None:
            body["reasoning_effort"] = request.reasoning_effort
        if request.schema is not None and shape.has_schema:
            schema = {"name": "verdict", "strict": True, "schema": dict(request.schema)}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        if request.top_logprobs > 0 and shape.has_logprobs:
            body["logprobs"] = True
            body["top_logprobs"] = request.top_logprobs
        return "/chat/completions", encode_json({**body, **request.extra} if request.extra else body)

    def decode(self, request: Request, body: bytes, rate: RateHeaders | None) -> Reply:
        if isinstance(request, RawRequest):
            return raw_reply(body, rate, price=self.price)
        if isinstance(request, EmbedRequest):
            return self._embeddings(request, body, rate)
        found = decode_json(_completion, body)
        if found.error or not found.choices:
            raise error_in(found.error, "it holds no choices", body)
        choice = found.choices[0]
        if choice.error or (choice.message is None and choice.text is None):
            raise error_in(choice.error, "its first choice holds neither a message nor a text")
        message = choice.message or _ReplyMessage(content=choice.text)
        content = message.content
        if isinstance(content, list):  # some gateways give the text in parts
            content = "".join(part.text or "" for part in content)
        logprobs = choice.logprobs
        if isinstance(request, LikelihoodRequest):
            tokens = self._tokens_given(request, choice)
        else:
            tokens = choices_of(logprobs.content) if logprobs and logprobs.content else ()
        usage = self._usage(found.usage)
        reason = choice.finish_reason or "stop"
        if not content and isinstance(request, ChatRequest) and usage.completion_tokens >= request.max_tokens:
            reason = "length"  # some servers call it a stop
        return Reply(
            content or "",
            found.model or self.model,
            _FINISH_REASONS.get(reason.casefold(), reason),
            message.refusal or None,
            message.thoughts if message.reasoning_content or message.reasoning else "",
            usage,
            tokens,
            (),
            rate,
        )

    def _given_text(self, request: LikelihoodRequest) -> dict[str, Any]:
        """A completion that has to repeat the text: as a prompt's echo, or forced by a grammar."""
        asked: dict[str, Any] = {"temperature": 0.0, "logprobs": 1}
        if self.shape.has_echo:
            return asked | {"prompt": request.prompt + request.text, "max_tokens": 1, "echo": True}
        most = len(request.text.encode("utf-8", "replace")) + 1  # a token has a byte or more
        grammar = f"root ::= {json.dumps(request.text, ensure_ascii=False)}"
        return asked | {"prompt": request.prompt, "max_tokens": most, "grammar": grammar}

    def _tokens_given(self, request: LikelihoodRequest, choice: _Choice) -> tuple[TokenChoice, ...]:
        """The tokens of the text. Where the server has not repeated it, that is a complaint about the way."""
        logprobs = choice.logprobs or _Logprobs()
        if self.shape.has_echo:
            found = _after(len(request.prompt), len(request.text), logprobs)
            way = "echo"
        else:
            found = [token for token in choices_of(logprobs.content or []) if token.token]
            way = "grammar"
        if not found or "".join(token.token for token in found).strip() != request.text.strip():
            trouble = "the server does not support log-probabilities of a given text"
            raise ErrorReply(Complaint(f"{trouble} (by {way})", code="400", param=way))
        return tuple(found)

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
        if not isinstance(found, _ReplyUsage):
            return Usage()
        return found.counted(self.price)


_FINISH_REASONS = {
    **dict.fromkeys(("max_tokens", "max_output_tokens", "model_length"), "length"),
    **dict.fromkeys(("safety", "prohibited_content", "refusal"), "content_filter"),
}
"""What gateways pass on from Anthropic, Gemini and Mistral, in OpenAI's words."""


def _with_images(request: ChatRequest) -> list[Any]:
    """The messages with the pictures in the last one, behind its text; a PDF goes as a file."""
    *before, last = request.messages
    parts: list[Any] = [{"type": "text", "text": last["content"]}]
    for number, image in enumerate(request.images, start=1):
        if image.startswith("data:application/pdf"):
            parts.append({"type": "file", "file": {"filename": f"{number}.pdf", "file_data": image}})
        else:
            parts.append({"type": "image_url", "image_url": {"url": image}})
    return [*before, {**last, "content": parts}]


class _ReplyPart(msgspec.Struct, gc=False):
    text: str | None = None


class _ReplyMessage(msgspec.Struct, gc=False):
    content: str | list[_ReplyPart] | None = None
    refusal: str | None = None
    reasoning_content: Any = None
    """As vLLM, SGLang and DeepSeek call it; OpenRouter and newer servers: `reasoning`."""
    reasoning: Any = None

    @property
    def thoughts(self) -> str:
        found = self.reasoning_content or self.reasoning
        return found if isinstance(found, str) else ""


class _Logprobs(msgspec.Struct, gc=False):
    content: list[Token] | None = None
    """In chats, and in completions of llama.cpp."""
    tokens: list[str] | None = None
    token_logprobs: list[float | None] | None = None
    """In completions of OpenAI, vLLM and others, with `echo` also those of the prompt; none for the first."""


class _Choice(msgspec.Struct, gc=False):
    message: _ReplyMessage | None = None
    text: str | None = None
    finish_reason: str | None = None
    logprobs: _Logprobs | None = None
    error: Any = None


class _ReplyUsage(msgspec.Struct, gc=False):
    """Read as it comes: a count in the wrong form must not cost the reply."""

    prompt_tokens: Any = None
    completion_tokens: Any = None
    input_tokens: Any = None
    output_tokens: Any = None
    """As the responses route calls them."""
    prompt_tokens_details: Any = None
    completion_tokens_details: Any = None
    input_tokens_details: Any = None
    output_tokens_details: Any = None
    prompt_cache_hit_tokens: Any = None
    """DeepSeek's name for the cached ones."""
    cost: Any = None

    def counted(self, price: Price | None) -> Usage:
        prompt = self.input_tokens if self.prompt_tokens is None else self.prompt_tokens
        completion = self.output_tokens if self.completion_tokens is None else self.completion_tokens
        of_prompt = self.prompt_tokens_details or self.input_tokens_details
        of_completion = self.completion_tokens_details or self.output_tokens_details
        cached = of_prompt.get("cached_tokens") if isinstance(of_prompt, dict) else None
        reasoning = of_completion.get("reasoning_tokens") if isinstance(of_completion, dict) else None
        return usage_of(
            prompt,
            completion,
            cost=self.cost,
            price=price,
            cached=self.prompt_cache_hit_tokens if cached is None else cached,
            reasoning=reasoning,
        )


_AnyUsage = _ReplyUsage | list[Any] | str | float | bool | None


class _Completion(msgspec.Struct, gc=False):
    choices: list[_Choice] | None = None
    model: str | None = None
    usage: _AnyUsage = None
    error: Any = None


class _RawAnswer(msgspec.Struct, gc=False):
    """What limits and budgets need to know of an answer, whichever route it came from."""

    type: Any = None
    """Of an event of the responses route."""
    status: Any = None
    """Of a response, where it is one of the responses route."""
    model: Any = None
    usage: _AnyUsage = None
    error: Any = None
    response: Any = None
    """In the last event of a stream of the responses route."""
    choices: Any = None


LAST_EVENTS = ("response.completed", "response.incomplete")
"""With which a stream of the responses route ends; the others end with [DONE]."""
UNFINISHED = ("queued", "in_progress")
"""Statuses of a response that the endpoint is still at work on: with `background`."""


def raw_reply(body: bytes, rate: RateHeaders | None, *, price: Price | None) -> Reply:
    """An answer that is handed on unread, with its usage; of a stream, the usage is in one of its events."""
    usage = Usage()
    model = ""
    finish_reason = "stop"
    body.decode()  # raises what a broken reply raises: JSON is UTF-8
    if not body.strip():
        raise BadReply("it is empty")
    is_whole = body.lstrip()[:1] == b"{"
    for data in (body,) if is_whole else _events(body):
        if data == b"[DONE]":
            is_whole = True
            continue
        found = decode_json(_raw_answer, data)
        is_whole = is_whole or found.type in LAST_EVENTS
        if isinstance(found.response, dict):
            found = msgspec.convert(found.response, _RawAnswer)
        if found.error:
            raise error_in(found.error)
        if data is body and found.choices == []:
            raise BadReply("it holds no choices")
        if isinstance(found.status, str):
            finish_reason = found.status
        model = found.model if isinstance(found.model, str) else model
        if isinstance(found.usage, _ReplyUsage):
            usage = found.usage.counted(price)
    if not is_whole and not _is_finished(body):
        raise BadReply("the stream ends before its last event")
    return Reply("", model=model, finish_reason=finish_reason, usage=usage, rate=rate, body=body)


def _is_finished(stream: bytes) -> bool:
    """Whether every choice of a stream has its reason to finish: some servers end theirs without [DONE]."""
    finished: dict[Any, bool] = {}
    for data in _events(stream):
        choices = decode_json(_raw_answer, data).choices
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, dict) and isinstance(index := choice.get("index", 0), int):
                finished[index] = finished.get(index, False) or bool(choice.get("finish_reason"))
    return bool(finished) and all(finished.values())


def _events(stream: bytes) -> Iterator[bytes]:
    """The data of each server-sent event; it may be in several lines."""
    lines: list[bytes] = []
    for line in (*stream.splitlines(), b""):
        if line.startswith(b"data:"):
            lines.append(line.removeprefix(b"data:").strip())
        elif not line:
            data = b"\n".join(lines)
            lines = []
            if data.startswith(b"{") or data == b"[DONE]":
                yield data


class _Vector(msgspec.Struct, gc=False):
    embedding: tuple[float, ...]
    index: int = 0


class _Embeddings(msgspec.Struct, gc=False):
    data: list[_Vector] | None = None
    model: str | None = None
    usage: _AnyUsage = None
    error: Any = None


def _after(start: int, length: int, logprobs: _Logprobs) -> list[TokenChoice]:
    """The tokens of an echoed prompt from a place on. One that stretches over the place belongs to them."""
    found = []
    at = 0
    for token, logprob in zip(logprobs.tokens or (), logprobs.token_logprobs or (), strict=False):
        begin, at = at, at + len(token)
        if at > start and begin < start + length and logprob is not None:
            found.append(TokenChoice(token[max(start - begin, 0) :][: start + length - begin], logprob))
    return found


_completion = msgspec.json.Decoder(_Completion)
_embeddings = msgspec.json.Decoder(_Embeddings)
_raw_answer = msgspec.json.Decoder(_RawAnswer)
