"""A spending limit that holds exactly: a call leaves only if it fits at its dearest."""

from __future__ import annotations

from plaudit.config import Price
from plaudit.types import ChatRequest, EmbedRequest, GenerateRequest, Request

TEMPLATE_TOKENS = 64
"""What a chat template and a default system prompt may add to a request."""


def token_bound(request: Request) -> tuple[int, int]:
    """Upper bounds (prompt, completion) for the tokens of a request: a token is at least one byte."""
    match request:
        case ChatRequest():
            size = sum(len(message["content"].encode(errors="replace")) + 8 for message in request.messages)
            return size + TEMPLATE_TOKENS, request.max_tokens
        case GenerateRequest():
            return len(request.prompt.encode(errors="replace")) + TEMPLATE_TOKENS, request.max_tokens
        case EmbedRequest():
            return sum(len(text.encode(errors="replace")) + 8 for text in request.texts), 0


def cost_of(price: Price, *, prompt_tokens: int, completion_tokens: int) -> float:
    """US dollars."""
    return (prompt_tokens * price.prompt + completion_tokens * price.completion) / 1e6


class Spending:
    """Dollars spent and promised against a limit. None: no limit, but the sum is kept."""

    def __init__(self, limit: float | None = None) -> None:
        self._limit = limit
        self.spent = 0.0
        self.promised = 0.0

    def fits(self, bound: float) -> bool:
        """Whether a call that may cost `bound` can leave without any chance of crossing the limit."""
        return self._limit is None or self.spent + self.promised + bound <= self._limit + 1e-12

    def is_exhausted(self, bound: float) -> bool:
        """Whether it cannot leave even once all that is on its way has turned out free."""
        return self._limit is not None and self.spent + bound > self._limit + 1e-12

    def on_send(self, bound: float) -> None:
        self.promised += bound

    def on_reply(self, *, bound: float, cost: float) -> None:
        """Settle a call: what it cost takes the place of what it might have cost."""
        self.promised = max(0.0, self.promised - bound)
        self.spent += cost
