"""Room for large bodies: where there is none, a body stays unread until other requests are answered."""

from __future__ import annotations

import asyncio
from collections import deque


class Room:
    """So many bytes; they are handed out in the order of asking."""

    def __init__(self, size: int) -> None:
        self._left = size
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    async def take(self, size: int) -> None:
        """Wait until there is room for so many bytes, and take it."""
        if not self._waiting and size <= self._left:
            self._left -= size
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((size, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.give_back(size)  # it had just been given
            raise

    def give_back(self, size: int) -> None:
        """Let others have it."""
        self._left += size
        while self._waiting:
            wanted, turn = self._waiting[0]
            if not turn.done():
                if wanted > self._left:
                    return
                self._left -= wanted
                turn.set_result(None)
            self._waiting.popleft()
