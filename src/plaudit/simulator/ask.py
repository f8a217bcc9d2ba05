"""What a simulated server is asked, whichever protocol it came by."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any, Literal

from plaudit.types import ChatRequest, EmbedRequest, Request


@dataclass(frozen=True)
class Ask:
    """One request, reduced to what the answer depends on."""

    kind: Literal["chat", "generate", "embed"]
    model: str
    texts: tuple[str, ...]
    """Roles and contents of the messages in turn, the prompt, or the texts to embed."""
    max_tokens: int | None = None
    schema: Mapping[str, Any] | None = None
    top_logprobs: int = 0
    dimensions: int | None = None

    @cached_property
    def key(self) -> bytes:
        """The same for the same question to the same model, over HTTP and in memory alike."""
        digest = blake2b(digest_size=16)
        for text in (self.kind, self.model, *self.texts):
            data = text.encode("utf-8", "surrogatepass")
            digest.update(b"%d:" % len(data))
            digest.update(data)
        return digest.digest()

    @cached_property
    def prompt_tokens(self) -> int:
        """About four characters each, as English has it."""
        return max(1, sum(map(len, self.texts)) // 4)

    @property
    def wants_yes_or_no(self) -> bool:
        """Whether a log-probability of yes or no is asked for, rather than a number."""
        if not self.top_logprobs or self.schema is not None or not self.texts:
            return False
        words = set(re.findall(r"[a-z]+", " ".join(self.texts).lower()))
        return {"yes", "no"} <= words


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
    return Ask("generate", model, (request.prompt,), max_tokens=request.max_tokens)
