"""What becomes of a request at a simulated server: an answer, an error, or a broken connection."""

from __future__ import annotations

from dataclasses import dataclass

from plaudit.types import RateHeaders, Reply

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
