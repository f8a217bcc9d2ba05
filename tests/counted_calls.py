"""How often plaudit's functions run: for tests that nothing is done twice."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


@contextmanager
def counted_calls() -> Iterator[Counter[str]]:
    """Calls by `module.function` while the block lasts, here and on threads that begin meanwhile."""
    calls: Counter[str] = Counter()

    def note(frame: FrameType, event: str, _: Any) -> None:
        module = frame.f_globals.get("__name__", "")
        if event == "call" and module.startswith("plaudit."):
            calls[f"{module.removeprefix('plaudit.')}.{frame.f_code.co_name}"] += 1

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield calls
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
