"""A spending limit that holds exactly: a call leaves only if it fits at its dearest."""

from __future__ import annotations

import msgspec

from plaudit.config import Price
from plaudit.types import (
    ChatRequest,
    EmbedRequest,
    GenerateRequest,
    LikelihoodRequest,
    RawRequest,
    Request,
    Usage,
)

TEMPLATE_TOKENS = 64
"""What a chat template and a default system prompt may add to a request."""
TURN_TOKENS = 8
"""What marks the beginning and the end of a turn, or of a text to be embedded."""
IMAGE_TOKENS = 50_000
"""What a picture may count for: the dearest known model takes about 48,000 for a large one."""


def token_bound(request: Request) -> tuple[int, int]:
    """Upper bounds (prompt, completion) for the tokens of a request: a token is at least one byte."""
    match request:
        case ChatRequest():
            turns = sum(
                _bytes(turn["role"]) + _bytes(turn["content"]) + TURN_TOKENS for turn in request.messages
            )
            # Endpoints that enforce a schema put it into the prompt, and charge for it.
            schema = len(msgspec.json.encode(request.schema)) if request.schema is not None else 0
            pictures = IMAGE_TOKENS * len(request.images)
            pictures += sum(len(image) for image in request.images if image.startswith("data:application/"))
            return turns + schema + pictures + TEMPLATE_TOKENS, request.max_tokens
        case GenerateRequest():
            return _bytes(request.prompt) + TEMPLATE_TOKENS, request.max_tokens
        case LikelihoodRequest():
            size = _bytes(request.text)
            return _bytes(request.prompt) + size + TEMPLATE_TOKENS, size + 1
        case RawRequest():
            return len(request.body) + TEMPLATE_TOKENS, request.max_tokens
        case EmbedRequest():
            return sum(_bytes(text) + TURN_TOKENS for text in request.texts), 0


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def counted(usage: Usage, bound: tuple[int, int]) -> tuple[int, int]:
    """The tokens (prompt, completion) that a reply is charged for.

    A count of nothing, or less, is no count: the bound takes its place.
    """
    prompt, completion = usage.prompt_tokens, usage.completion_tokens
    return prompt if prompt > 0 else bound[0], completion if completion > 0 else bound[1]


def charge(usage: Usage, price: Price | None, bound: tuple[int, int]) -> float:
    """US dollars that a reply is charged at: as stated, else by its price.

    Where tokens were not counted the stated sum may be by the same counts: the dearer of the two holds.
    """
    stated = usage.cost if usage.cost is not None and usage.cost > 0 else 0.0
    if price is None:
        return stated
    prompt, completion = counted(usage, bound)
    if stated and (prompt, completion) == (usage.prompt_tokens, usage.completion_tokens):
        return stated
    by_price = price.cost(
        prompt_tokens=prompt, completion_tokens=completion, cached_tokens=usage.cached_tokens
    )
    return max(stated, by_price)


class Spending:
    """Dollars spent and promised against a limit. None: no limit, but the sum is kept.

    Where a sum has to be written down before it is spent, that is done in steps of a fiftieth of the limit:
    who finds the last entry after a crash knows that no more was spent, and hardly less.
    """

    def __init__(self, limit: float | None = None) -> None:
        self._limit = limit
        self._step = (limit or 0.0) / 50
        self.spent = 0.0
        self.assumed = 0.0
        """The part of it for calls that were cut off: the most that they may have cost."""
        self.promised = 0.0
        self.written = 0.0
        """The sum that was written down last."""

    def fits(self, bound: float) -> bool:
        """Whether a call that may cost `bound` can leave without any chance of crossing the limit."""
        return self._limit is None or self.spent + self.promised + bound <= self._limit + 1e-12

    def is_exhausted(self, bound: float) -> bool:
        """Whether it cannot leave even once all that is on its way has turned out free."""
        return self._limit is not None and self.spent + bound > self._limit + 1e-12

    def to_write(self, bound: float) -> float | None:
        """The sum to write down before a call that may cost `bound` leaves; None: the last one will do."""
        due = self.spent + self.promised + bound
        if self.written - 3 * self._step <= due <= self.written:
            return None
        return due + self._step if self._limit is None else max(due, min(due + self._step, self._limit))

    def on_send(self, bound: float) -> None:
        self.promised += bound

    def on_reply(self, *, bound: float, cost: float) -> None:
        """Settle a call: what it cost takes the place of what it might have cost."""
        self.promised = max(0.0, self.promised - bound)
        self.spent += cost

    def on_cut_off(self, *, bound: float) -> None:
        """Settle a call whose reply never came, and which may have been charged all the same."""
        self.on_reply(bound=bound, cost=bound)
        self.assumed += bound

    def __str__(self) -> str:
        cut_off = f", of which ${self.assumed:.6g} is the most that calls without a reply may have cost"
        return f"${self.spent:.6g} spent{cut_off if self.assumed else ''}"
