"""A judge that gives each response the score it asks for (`worth 7`), and none to those that say `lost`."""

from __future__ import annotations

import asyncio
import re
from concurrent.futures import Future
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


class Unhurried(Choosy):
    """One that keeps what it is worth to itself until it is released; what is lost is lost at once."""

    def __init__(self) -> None:
        super().__init__()
        self.released: Future[None] = Future()

    async def send(self, request: Request) -> Reply:
        if "worth" in str(request):
            await asyncio.wrap_future(self.released)
        return await super().send(request)
