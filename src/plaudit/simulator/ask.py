"""What a simulated server is asked, and what becomes of it: an answer, an error, a broken connection."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import force_setattr

from plaudit.types import (
    ChatRequest,
    EmbedRequest,
    GenerateRequest,
    LikelihoodRequest,
    RateHeaders,
    Reply,
    Request,
)


class Ask(Struct, frozen=True):
    """One request, reduced to what the answer depends on."""

    kind: Literal["chat", "generate", "embed"]
    model: str
    texts: tuple[str, ...]
    """Roles and contents of the messages in turn, the prompt, or the texts to embed."""
    max_tokens: int | None = None
    schema: Mapping[str, Any] | None = None
    top_logprobs: int = 0
    dimensions: int | None = None
    echo: bool = False
    """Whether the prompt itself is to be repeated, with the log-probabilities of its tokens."""
    key: bytes = b""
    """Derived: the same for the same question to the same model, over HTTP and in memory alike."""
    prompt_tokens: int = 0
    """Derived: about four characters each, as English has it."""

    def __post_init__(self) -> None:
        lengths = [len(text) for text in self.texts]
        data = "\0".join((self.kind, self.model, repr(lengths), *self.texts))
        force_setattr(self, "key", blake2b(data.encode("utf-8", "surrogatepass"), digest_size=16).digest())
        force_setattr(self, "prompt_tokens", max(1, sum(lengths) // 4))

    @property
    def wants_yes_or_no(self) -> bool:
        """Whether a log-probability of yes or no is asked for, rather than a number."""
        if not self.top_logprobs or self.schema is not None:
            return False
        words = set(re.findall(r"[a-z]+", " ".join(self.texts).lower()))
        return {"yes", "no"} <= words

    @property
    def digits(self) -> tuple[int, int] | None:
        """The ends of the scale, where one digit of it is asked for with its log-probability."""
        if not self.top_logprobs or self.schema is not None:
            return None
        found = re.search(r"one digit from (\d) to (\d)", " ".join(self.texts[-1:]))
        return (int(found[1]), int(found[2])) if found else None


def ask_of(request: Request, *, model: str) -> Ask:
    """A plaudit request, as the server sees it."""
    if isinstance(request, EmbedRequest):
        return Ask("embed", model, request.texts)
    if isinstance(request, ChatRequest):
        texts = tuple(part for message in request.messages for part in (message["role"], message["content"]))
        return Ask(
            "chat",
            model,
            texts,
            max_tokens=request.max_tokens,
            schema=request.schema,
            top_logprobs=request.top_logprobs,
        )
    if isinstance(request, LikelihoodRequest):
        return Ask(
            "generate", model, (request.prompt + request.text,), max_tokens=1, top_logprobs=1, echo=True
        )
    assert isinstance(request, GenerateRequest), "a raw request is read like one over HTTP"
    return Ask("generate", model, (request.prompt,), max_tokens=request.max_tokens)


BROKEN = frozenset({"down", "reset", "cut", "hang", "bad_json", "html"})
"""Faults after which there is no reply to read, whatever was computed."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the server sends back, before it is put in the words of a protocol."""

    status: int = 200
    reply: Reply | None = None
    message: str = ""
    """What an error reply says."""
    code: str = ""
    """What it is, for programs; empty: what its status says."""
    fault: str = ""
    """The kind of fault that the sending side has to act out, or an empty string."""
    retry_after: float | None = None
    """Seconds, exactly as the headers tell them."""
    rate: RateHeaders | None = None
