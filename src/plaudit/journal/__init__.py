"""The journal: every verdict with the evidence behind it, on file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plaudit.journal.index import JournalIndex, Record
    from plaudit.journal.writer import JournalWriter

__all__ = ["JournalIndex", "JournalWriter", "Record"]


def __getattr__(name: str) -> Any:
    """Load what reads and writes when it is asked for: it needs numpy, which takes a while to load."""
    if name not in __all__:
        raise AttributeError(f"module 'plaudit.journal' has no attribute {name!r}")
    from plaudit.journal import index, writer

    return getattr(writer if name == "JournalWriter" else index, name)
