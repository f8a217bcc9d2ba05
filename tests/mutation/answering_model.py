"""A model in memory: a function from what it is asked to what it says, behind a real engine."""

from __future__ import annotations

from collections.abc import Callable

from plaudit import Endpoint, Engine
from plaudit.types import ChatRequest, EmbedRequest, Reply, Request

Says = Callable[[str], Reply | str | Exception]


class ChatModel:
    """Answers the last message of every conversation, and keeps what it was asked."""

    def __init__(self, says: Says) -> None:
        self._says = says
        self.asked: list[ChatRequest] = []

    async def send(self, request: Request) -> Reply:
        assert isinstance(request, ChatRequest)
        self.asked.append(request)
        said = self._says(request.messages[-1]["content"])
        if isinstance(said, Exception):
            raise said
        return Reply(said) if isinstance(said, str) else said

    async def close(self) -> None:
        """Nothing to free."""


class EmbeddingModel:
    """Embeds by a function, and keeps the texts of each call."""

    def __init__(self, embed: Callable[[tuple[str, ...]], Reply | Exception]) -> None:
        self._embed = embed
        self.calls: list[tuple[str, ...]] = []

    async def send(self, request: Request) -> Reply:
        assert isinstance(request, EmbedRequest)
        self.calls.append(request.texts)
        reply = self._embed(request.texts)
        if isinstance(reply, Exception):
            raise reply
        return reply

    async def close(self) -> None:
        """Nothing to free."""


def engine_over(model: ChatModel | EmbeddingModel, *, cache: str | None = None) -> Engine:
    return Engine(endpoints=[Endpoint("http://model/v1", model="m")], cache=cache, transport=lambda _: model)
