"""A judge that gives each response the score it asks for (`worth 7`), and none to those that say `lost`."""

from __future__ import annotations

import re
from typing import Any

from plaudit import Rubric
from plaudit.errors import RequestRefused
from plaudit.types import ChatRequest, Reply, Request

JUDGE = Rubric("Is it correct and brief?", scale=(0, 10))


class Choosy:
    """A transport that answers at once, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def send(self, request: Request) -> Reply:
        assert isinstance(request, ChatRequest)
        text = request.messages[-1]["content"]
        self.asked.append(text)
        if "lost" in text:
            raise RequestRefused("the request is too long")
        worth = re.search(r"worth (\d+)", text)
        return Reply(self.verdict(int(worth[1]) if worth else 5))

    def verdict(self, worth: int) -> str:
        """What it replies about a response that says what it is worth."""
        return f'{{"reason": "so it says", "score": {worth}}}'

    async def close(self) -> None:
        """Nothing to free."""

    @property
    def options(self) -> dict[str, Any]:
        """What makes an engine ask it."""
        return {
            "url": "http://judge.test/v1",
            "model": "m",
            "cache": "memory",
            "transport": lambda _endpoint: self,
        }
