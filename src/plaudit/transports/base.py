"""What the scheduler needs of a transport: send one request, and close."""

from __future__ import annotations

from typing import Protocol

from plaudit.types import Reply, Request


class Transport(Protocol):
    """One endpoint, reached over one protocol. Lives on one event loop.

    `send` raises only errors of plaudit.errors: foreign exceptions are translated here, once.
    It keeps no time: the scheduler cancels it when the request's timeout is over.
    """

    async def send(self, request: Request) -> Reply:
        """Send one request, once, and give its reply. SendAgain: the caller may send it again."""
        ...

    async def close(self) -> None:
        """Free every socket. Safe to call twice."""
        ...
