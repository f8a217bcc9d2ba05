"""A transport that replies when it is let go: each call by a word in its text, or all at once."""

from __future__ import annotations

import threading

from until import auntil

from plaudit.types import ChatRequest, Reply, Request

GOOD = Reply('{"reason": "right", "score": 7}')


class Held:
    """Keeps every call until `all` is set, or a word of `some` is in what it asks."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.all = threading.Event()
        self.some: set[str] = set()

    async def send(self, request: Request) -> Reply:
        assert isinstance(request, ChatRequest)
        text = request.messages[-1]["content"]
        self.sent.append(text)
        await auntil(lambda: self.all.is_set() or any(word in text for word in self.some))
        return GOOD

    async def close(self) -> None:
        """Nothing to free."""
