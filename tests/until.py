"""Waiting in a test for what another thread or process does: until it is so, and never for ever."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable

PATIENCE_S = 600.0
"""Only against a hang: pytest's own timeout is longer, and no test should ever need a part of this."""
_LOOK_EVERY_S = 0.002


def until(is_so: Callable[[], object], within: float = PATIENCE_S) -> None:
    """Return as soon as it is so; fail the test if that takes too long."""
    give_up = time.monotonic() + within
    never = threading.Event()
    while not is_so():
        assert time.monotonic() < give_up, f"not so after {within:g} s"
        never.wait(_LOOK_EVERY_S)


async def auntil(is_so: Callable[[], object]) -> None:
    """The same on an event loop, for what another thread does; as long as the task is not cancelled."""
    never = asyncio.get_running_loop().create_future()
    while not is_so():
        await asyncio.wait({never}, timeout=_LOOK_EVERY_S)
